#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/check/check.h"
#include "testing/check/layers/check_sweep.h"
#include "testing/check/layers/op_context.h"

namespace cleave {
namespace {

// 950, 17k, 3.2M.
std::string ShortCount(int64_t n) {
  if (n >= 1000000) return absl::StrFormat("%.1fM", n / 1e6);
  if (n >= 10000) return absl::StrCat(n / 1000, "k");
  return absl::StrCat(n);
}

std::string Cell(Layer layer, const Verdict& verdict) {
  switch (verdict.kind) {
    case VerdictKind::kAgrees: {
      if (verdict.strength == Strength::kProved) return "agrees";
      std::string text = absl::StrCat("agrees ", ShortCount(verdict.samples));
      if ((layer == Layer::kRounding || layer == Layer::kTransforms ||
           layer == Layer::kKernels || layer == Layer::kHostKernel) &&
          verdict.worst_ulp > 0) {
        // A count of ULPs alone says little beside a bound that grows with the
        // condition number or the extents, and nothing where no digit is right.
        constexpr double kNoDigit = 0x1p53;
        const bool has_part = verdict.worst_part > 0;
        const bool has_ulp = !has_part || verdict.worst_ulp < kNoDigit;
        if (has_ulp) {
          absl::StrAppend(&text,
                          absl::StrFormat(" %.3g ulp", verdict.worst_ulp));
        }
        if (has_part) {
          absl::StrAppend(
              &text, absl::StrFormat("%s %.2g of bound", has_ulp ? "," : "",
                                     verdict.worst_part));
        }
      }
      return text;
    }
    case VerdictKind::kDisagrees:
      return "DISAGREES";
    case VerdictKind::kInconclusive:
      return "INCONCLUSIVE";
    case VerdictKind::kNotIndependent:
      return "NOT INDEPENDENT";
    case VerdictKind::kNotChecked:
      return "-";
  }
  return "";
}

// The ops, the parts of each sweep as one.
std::vector<OpReport> WithWholeSweeps(const std::vector<OpReport>& ops) {
  std::vector<OpReport> rows;
  std::string last;
  int parts = 0;
  const auto end_sweep = [&] {
    if (!last.empty() && parts < kSweepParts) {
      absl::StrAppend(&rows.back().op, " (", parts, " of ", kSweepParts, ")");
    }
  };
  for (const OpReport& op : ops) {
    const std::string whole = WholeSweep(op.op);
    if (!whole.empty() && whole == last) {
      for (const auto& [layer, verdict] : op.layers) {
        Merge(rows.back().layers[layer], verdict);
      }
      ++parts;
      continue;
    }
    end_sweep();
    last = whole;
    parts = 1;
    rows.push_back(op);
    if (!whole.empty()) rows.back().op = whole;
  }
  end_sweep();
  return rows;
}

// The note of a layer on pairs of attributes that no call has, or "".
std::string UnmetPairs(const OpReport& op) {
  for (const auto& [layer, verdict] : op.layers) {
    for (const std::string& note : verdict.notes) {
      if (absl::StrContains(note, kOtherPairs)) return note;
    }
  }
  return "";
}

}  // namespace

std::string CheckReport::ToString() const {
  std::vector<std::vector<std::string>> rows = {{"op"}};
  std::vector<Layer> shown;
  for (int l = 0; l < kNumLayers; ++l) {
    const Layer layer = static_cast<Layer>(l);
    // Only where it was asked for.
    if ((layer == Layer::kKernels || layer == Layer::kHostKernel) &&
        std::none_of(ops.begin(), ops.end(), [layer](const OpReport& op) {
          return op.layers.count(layer) != 0;
        })) {
      continue;
    }
    shown.push_back(layer);
    rows[0].emplace_back(LayerName(layer));
  }
  const int certified = CountCertified();
  if (certified > 0) rows[0].emplace_back("certified");
  for (const OpReport& op : WithWholeSweeps(ops)) {
    std::vector<std::string> row = {op.op};
    for (const Layer layer : shown) {
      const auto it = op.layers.find(layer);
      row.push_back(it == op.layers.end() ? "" : Cell(it->first, it->second));
    }
    if (certified > 0) {
      row.push_back(
          op.certified.has_value()
              ? absl::StrCat(op.certified->by, " ", op.certified->date)
              : "");
    }
    rows.push_back(std::move(row));
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      absl::StrAppend(
          &line,
          absl::StrFormat("%-*s  ", static_cast<int>(widths[c]), row[c]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  int loose = 0;
  for (const OpReport& op : ops) {
    for (const auto& [layer, verdict] : op.layers) {
      if (verdict.kind == VerdictKind::kDisagrees) {
        absl::StrAppend(&text, "\n", op.op, " ", LayerName(layer),
                        " disagrees:\n", verdict.counterexample->ToString(),
                        "\n");
      } else if (verdict.kind == VerdictKind::kInconclusive) {
        absl::StrAppend(&text, "\n", op.op, " ", LayerName(layer),
                        " is inconclusive: ", verdict.why, "\n");
      } else if (verdict.kind == VerdictKind::kNotIndependent) {
        absl::StrAppend(&text, "\n", op.op, " ", LayerName(layer),
                        " is not independent: spec and body are one "
                        "computation once all ops in them are expanded, and no "
                        "evidence for each other\n");
      }
    }
    const std::string unmet = UnmetPairs(op);
    if (!unmet.empty()) {
      absl::StrAppend(&text, "\n", op.op, " ", unmet, "\n");
    }
    if (op.loose_claim) {
      ++loose;
      absl::StrAppend(
          &text, "\n", op.op,
          absl::StrFormat(" claims more than it needs: the largest error is "
                          "%.2g of its bound\n",
                          op.layers.at(Layer::kRounding).worst_part));
    }
  }
  const int parts = CountSweepParts();
  absl::StrAppend(&text, "\nchecked ",
                  static_cast<int>(ops.size()) - parts - certified, " rules, ");
  if (parts > 0) absl::StrAppend(&text, parts, " parts of sweeps, ");
  if (certified > 0) absl::StrAppend(&text, certified, " as certified, ");
  absl::StrAppend(&text, "seed ", seed, ": ", Count(VerdictKind::kDisagrees),
                  " disagree, ", Count(VerdictKind::kInconclusive),
                  " inconclusive, ", Count(VerdictKind::kNotIndependent),
                  " not independent, ", loose, " loose claims\n");
  return text;
}

}  // namespace cleave
