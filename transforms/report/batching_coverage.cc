#include "transforms/report/batching_coverage.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/rules/call_search.h"
#include "engine/rules/rank_bound.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/rule_tables.h"

namespace cleave {
namespace {

using Answer = BatchingRow::Answer;
using Verdict = BatchingRow::Verdict;

// The call node of a graph of one call.
Value CallNode(const Graph& call) {
  for (uint32_t id = 0; id < call.size(); ++id) {
    if (!IsPrimitive(call.node(Value{id}).op)) return Value{id};
  }
  CLEAVE_CHECK(false) << "a graph of no call";
  return Value();
}

// `(f32[n, m], f32[n]; axis: 0)`: what one call is of.
std::string DescribeCall(const Graph& call) {
  const Value node = CallNode(call);
  std::vector<std::string> types;
  for (Value operand : call.operands(node)) {
    types.push_back(call.type(operand).ToString());
  }
  const std::string attributes = call.attributes(node).ToString();
  return absl::StrCat("(", absl::StrJoin(types, ", "),
                      attributes.empty() ? "" : "; ", attributes, ")");
}

std::vector<uint32_t> Subsets(int inputs) {
  std::vector<uint32_t> subsets;
  if (inputs <= kMaxSubsetInputs) {
    for (uint32_t mask = 1; mask < (1u << inputs); ++mask) {
      subsets.push_back(mask);
    }
    return subsets;
  }
  const int bits = std::min(inputs, 31);
  for (int i = 0; i < bits; ++i) subsets.push_back(1u << i);
  subsets.push_back((1u << bits) - 1);
  return subsets;
}

// Rows in the making, by the names in their subsets.
class Table {
 public:
  explicit Table(RuleTable& rules) : rules_(rules) {}

  void Add(const Graph& call) {
    const Value node = CallNode(call);
    const std::vector<NamedValue>& inputs = call.inputs();
    CLEAVE_CHECK(inputs.size() == call.operands(node).size())
        << call.context()->op_name(call.node(node).op);
    const uint32_t batch = rules_.BatchId(Dim::Variable("batch"));
    for (uint32_t mask : Subsets(static_cast<int>(inputs.size()))) {
      std::vector<std::string> names;
      absl::InlinedVector<bool, 8> batched;
      for (size_t i = 0; i < inputs.size(); ++i) {
        batched.push_back(i < 31 ? (mask >> i & 1) != 0 : mask != 0);
        if (batched.back()) names.push_back(inputs[i].name);
      }
      const auto rule = rules_.Batch(call, node, batched, batch);
      BatchingRow& row = RowOf(names);
      ++row.calls;
      if (!rule.ok()) {
        const absl::string_view message = rule.status().message();
        Lower(row, Answer::kRefused,
              std::string(message.substr(0, message.find('\n'))), call);
        continue;
      }
      switch ((*rule)->kind) {
        case BatchRule::Kind::kKept:
          if (row.kept_calls++ == 0 && row.calls == 1) row.why = (*rule)->how;
          break;
        case BatchRule::Kind::kGiven:
          Lower(row, Answer::kGiven, "", call);
          break;
        case BatchRule::Kind::kDerived:
          Lower(row, Answer::kExpanded, (*rule)->how, call);
          break;
      }
    }
  }

  std::vector<BatchingRow> Finish(const RankBound& bound, bool symbolic) && {
    for (BatchingRow& row : rows_) {
      const bool some = row.kept_calls > 0;
      if (some &&
          (row.answer == Answer::kExpanded || row.answer == Answer::kRefused)) {
        row.answer = Answer::kPartly;
      }
      if (row.answer != Answer::kKept) continue;
      row.verdict = !symbolic || !bound.exhaustive ? Verdict::kSampled
                    : bound.holds()                ? Verdict::kProved
                                                   : Verdict::kExhaustive;
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const BatchingRow& a, const BatchingRow& b) {
                       return a.batched.size() < b.batched.size();
                     });
    return std::move(rows_);
  }

 private:
  BatchingRow& RowOf(const std::vector<std::string>& names) {
    const auto [it, added] = places_.emplace(names, rows_.size());
    if (added) {
      rows_.emplace_back();
      rows_.back().batched = names;
    }
    return rows_[it->second];
  }

  // The first call that is not kept speaks for its row.
  static void Lower(BatchingRow& row, Answer answer, const std::string& why,
                    const Graph& call) {
    if (row.answer != Answer::kKept) return;
    row.answer = answer;
    row.why = why.empty() ? "" : absl::StrCat(DescribeCall(call), ": ", why);
  }

  RuleTable& rules_;
  std::vector<BatchingRow> rows_;
  std::map<std::vector<std::string>, size_t> places_;
};

}  // namespace

absl::StatusOr<BatchingCoverage> CoverBatching(const RuleSet& rules,
                                               absl::string_view op) {
  CLEAVE_ASSIGN_OR_RETURN(const RankBound bound, FindRankBound(rules, op));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  CLEAVE_ASSIGN_OR_RETURN(RuleTable * rule_table, TableOf(rules));
  Table table(*rule_table);
  bool any = false;
  for (const Graph& call : calls) {
    any = true;
    table.Add(call);
  }
  BatchingCoverage coverage;
  if (!any) {
    CLEAVE_ASSIGN_OR_RETURN(CallSearch search, CallSearch::Create(rules, op));
    while (const std::optional<Graph> call = search.Next()) {
      any = true;
      table.Add(*call);
    }
    if (!any) {
      coverage.why = std::string(search.Obstacle().message());
      return coverage;
    }
  }
  coverage.why = bound.why_not;
  coverage.rows = std::move(table).Finish(bound, !calls.empty());
  if (coverage.rows.empty()) coverage.why = "it has no tensor inputs";
  return coverage;
}

absl::string_view AnswerName(BatchingRow::Answer answer) {
  switch (answer) {
    case Answer::kKept:
      return "kept";
    case Answer::kPartly:
      return "partly";
    case Answer::kExpanded:
      return "expanded";
    case Answer::kGiven:
      return "given";
    case Answer::kRefused:
      return "refused";
  }
  return "";
}

std::string VerdictName(const BatchingRow& row) {
  switch (row.verdict) {
    case Verdict::kNone:
      return "";
    case Verdict::kProved:
      return "PROVED";
    case Verdict::kExhaustive:
      return absl::StrCat("EXHAUSTIVE(", kMaxSymbolicRank, ")");
    case Verdict::kSampled:
      return absl::StrCat("SAMPLED(", row.calls, ")");
  }
  return "";
}

}  // namespace cleave
