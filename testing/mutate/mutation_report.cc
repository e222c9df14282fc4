#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "testing/mutate/mutate.h"

namespace cleave {
namespace {

using json = nlohmann::ordered_json;

// Characters of a text before or after the mutation that are shown.
constexpr size_t kShownText = 100;

struct Tally {
  int killed = 0;
  int survived = 0;
  int proved_equivalent = 0;
  int allclose_killed = 0;

  void Add(const MutantReport& mutant) {
    killed += mutant.fate == MutantFate::kKilled;
    survived += mutant.fate == MutantFate::kSurvived;
    proved_equivalent += mutant.fate == MutantFate::kProvedEquivalent;
    allclose_killed +=
        mutant.fate != MutantFate::kProvedEquivalent && mutant.allclose_kills;
  }
  int Counted() const { return killed + survived; }
  json ToJson() const {
    return {{"killed", killed},
            {"survived", survived},
            {"proved_equivalent", proved_equivalent},
            {"allclose_killed", allclose_killed}};
  }
};

const char* PartName(MutatedPart part) {
  switch (part) {
    case MutatedPart::kValue:
      return "value";
    case MutatedPart::kJvp:
      return "jvp";
    case MutatedPart::kVjp:
      return "vjp";
    case MutatedPart::kVmap:
      return "vmap";
    case MutatedPart::kRewrite:
      return "rewrite";
  }
  return "";
}

json ToJson(const MutantReport& mutant) {
  return {{"rule", mutant.rule},
          {"operator", std::string(MutationOperatorName(mutant.op))},
          {"part", PartName(mutant.part)},
          {"place", mutant.place},
          {"before", mutant.before},
          {"after", mutant.after},
          {"text", mutant.text},
          {"verdicts", mutant.verdicts},
          {"elementwise", mutant.elementwise},
          {"allclose_kills", mutant.allclose_kills},
          {"seconds", mutant.seconds}};
}

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
  for (const std::string& rule : refuted) {
    absl::StrAppend(&text, "\n", rule,
                    " is refuted as it is: its mutants do not count\n");
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
      Percent(all.allclose_killed, all.Counted()), "); ", rejected,
      " rejected by the loader or L1; ", absl::StrFormat("%.0f s\n", seconds));
  return text;
}

std::string MutationReport::ToJson() const {
  Tally all;
  Tally elementwise;
  std::vector<Tally> by_operator(kNumMutationOperators);
  json layers = json::object();
  json survivors = json::array();
  json equivalents = json::array();
  for (const MutantReport& mutant : mutants) {
    all.Add(mutant);
    if (mutant.elementwise) elementwise.Add(mutant);
    by_operator[static_cast<int>(mutant.op)].Add(mutant);
    if (mutant.layer) {
      json& count = layers[std::string(LayerName(*mutant.layer))];
      count = (count.is_null() ? 0 : count.get<int>()) + 1;
    }
    if (mutant.fate == MutantFate::kSurvived) {
      survivors.push_back(cleave::ToJson(mutant));
    } else if (mutant.fate == MutantFate::kProvedEquivalent) {
      equivalents.push_back(cleave::ToJson(mutant));
    }
  }
  json operators = json::object();
  for (int op = 0; op < kNumMutationOperators; ++op) {
    operators[std::string(MutationOperatorName(
        static_cast<MutationOperator>(op)))] = by_operator[op].ToJson();
  }
  const json object = {{"seed", seed},
                       {"seconds", seconds},
                       {"mutations", mutations},
                       {"rejected", rejected},
                       {"totals", all.ToJson()},
                       {"elementwise_values", elementwise.ToJson()},
                       {"operators", std::move(operators)},
                       {"layers", std::move(layers)},
                       {"refuted_rules", refuted},
                       {"survivors", std::move(survivors)},
                       {"proved_equivalent", std::move(equivalents)}};
  return object.dump(2);
}

}  // namespace cleave
