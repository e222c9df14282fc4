#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "testing/mutate/mutate.h"
#include "testing/mutate/mutation_tally.h"

namespace cleave {
namespace {

// Characters of a text before or after the mutation that are shown.
constexpr size_t kShownText = 100;

std::string Cut(absl::string_view text, size_t length) {
  if (text.size() <= length) return std::string(text);
  return absl::StrCat(text.substr(0, length - 2), "..");
}

std::string Percent(int part, int whole) {
  if (whole == 0) return "-";
  // 100 % means all of them.
  const double percent = 100.0 * part / whole;
  return part < whole && percent > 99.95 ? "99.9 %"
                                         : absl::StrFormat("%.1f %%", percent);
}

// Rows of equal length; the first column is cut where the others need the room.
std::string Table(const std::vector<std::vector<std::string>>& rows,
                  int width) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  int others = 0;
  for (size_t c = 1; c < widths.size(); ++c) {
    others += static_cast<int>(widths[c]) + 2;
  }
  widths[0] = std::min<size_t>(widths[0], std::max(width - others, 8));
  std::string text;
  for (const auto& row : rows) {
    std::string line = absl::StrFormat("%-*s", static_cast<int>(widths[0]),
                                       Cut(row[0], widths[0]));
    for (size_t c = 1; c < row.size(); ++c) {
      absl::StrAppendFormat(&line, "  %*s", static_cast<int>(widths[c]),
                            row[c]);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Indented(absl::string_view text) {
  std::string result;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&result, "    ", line, "\n");
  }
  return result;
}

std::string Shown(const MutantReport& mutant) {
  std::string text = absl::StrCat(
      "\n", mutant.place, " ", mutant.rule, ", ",
      MutationOperatorName(mutant.op), ":\n  ", Cut(mutant.before, kShownText),
      "  ->  ", Cut(mutant.after, kShownText), "\n", Indented(mutant.text));
  for (const auto& [layer, verdict] : mutant.verdicts) {
    absl::StrAppend(&text, "  ", layer, ": ", verdict, "\n");
  }
  absl::StrAppend(&text,
                  "  allclose: ", mutant.allclose_kills ? "killed" : "survived",
                  "\n");
  return text;
}

}  // namespace

int MutationReport::Count(MutantFate fate) const {
  return static_cast<int>(std::count_if(
      mutants.begin(), mutants.end(),
      [&](const MutantReport& mutant) { return mutant.fate == fate; }));
}

std::vector<std::string> MutationReport::Refuted() const {
  std::set<std::string> rules;
  for (const RejectedMutant& one : rejected) {
    if (!one.refuted.empty()) rules.insert(one.refuted);
  }
  return std::vector<std::string>(rules.begin(), rules.end());
}

int MutationReport::AllcloseKilled() const {
  Tally tally;
  for (const MutantReport& mutant : mutants) tally.Add(mutant);
  return tally.allclose_killed;
}

std::string MutationReport::ToString(int width) const {
  std::vector<Tally> operators(kNumMutationOperators);
  std::map<Layer, int> layers;
  Tally all;
  Tally elementwise;
  for (const MutantReport& mutant : mutants) {
    operators[static_cast<int>(mutant.op)].Add(mutant);
    all.Add(mutant);
    if (mutant.elementwise) elementwise.Add(mutant);
    if (mutant.layer) ++layers[*mutant.layer];
  }
  std::vector<std::vector<std::string>> rows = {
      {"operator", "killed", "survived", "equivalent", "allclose"}};
  const auto add = [&](absl::string_view name, const Tally& tally) {
    rows.push_back({std::string(name), absl::StrCat(tally.killed),
                    absl::StrCat(tally.survived),
                    absl::StrCat(tally.proved_equivalent),
                    absl::StrCat(tally.allclose_killed)});
  };
  for (int op = 0; op < kNumMutationOperators; ++op) {
    const Tally& tally = operators[op];
    if (tally.Counted() + tally.proved_equivalent == 0) continue;
    add(MutationOperatorName(static_cast<MutationOperator>(op)), tally);
  }
  add("all", all);
  add("elementwise values", elementwise);
  std::string text = Table(rows, width);
  rows = {{"killed by", "mutants"}};
  for (const auto& [layer, count] : layers) {
    rows.push_back({std::string(LayerName(layer)), absl::StrCat(count)});
  }
  absl::StrAppend(&text, "\n", Table(rows, width));
  for (const std::string& rule : Refuted()) {
    absl::StrAppend(&text, "\n", rule,
                    " fails as it is: its mutants do not count\n");
  }
  for (const auto& [fate, title] :
       {std::pair(MutantFate::kSurvived, "survived"),
        std::pair(MutantFate::kProvedEquivalent, "proved equivalent")}) {
    if (Count(fate) == 0) continue;
    absl::StrAppend(&text, "\n", title, ":\n");
    for (const MutantReport& mutant : mutants) {
      if (mutant.fate == fate) absl::StrAppend(&text, Shown(mutant));
    }
  }
  absl::StrAppend(
      &text, "\n", all.Counted(), " mutants, seed ", seed, ": ", all.killed,
      " killed (", Percent(all.killed, all.Counted()), "), ", all.survived,
      " survived, ", all.proved_equivalent, " proved equivalent; allclose ",
      "kills ", all.allclose_killed, " (",
      Percent(all.allclose_killed, all.Counted()), "); ", rejected.size(),
      " rejected by the loader or L1; ", absl::StrFormat("%.0f s\n", seconds));
  return text;
}

}  // namespace cleave
