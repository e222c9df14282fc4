#include "transforms/vjp/vjp.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/table/rule_tables.h"
#include "transforms/vjp/cotangent_graph.h"
#include "transforms/vjp/guarded.h"
#include "transforms/vjp/partial_evaluation.h"

namespace cleave {

absl::StatusOr<VjpResult> Vjp(const Graph& graph,
                              const std::vector<bool>& active,
                              const RuleSet& rules,
                              const TransformOptions& options) {
  const BudgetScope scope;
  CLEAVE_ASSIGN_OR_RETURN(RuleTable * table, TableOf(rules, options));
  GraphBuilder builder(graph.context());
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Value> primals,
      AddActiveInputs(builder, graph, active, rules, "vjp", "no cotangent"));
  absl::flat_hash_set<std::string> taken = NamesOf(graph.inputs());
  std::vector<Value> cotangents;
  for (const NamedValue& output : graph.outputs()) {
    const TensorType& type = graph.type(output.value);
    cotangents.push_back(
        emit::IsInexact(type.dtype)
            ? builder.Input(NameWith(output.name, kCotangent, taken), type)
            : Value());
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const CotangentGraphResult walked,
      CotangentGraph(builder, graph, primals, active, cotangents, *table));
  VjpResult result;
  taken = NamesOf(graph.outputs());
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < walked.outputs.size(); ++i) {
    outputs.push_back({graph.outputs()[i].name, walked.outputs[i]});
  }
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    const NamedValue& input = graph.inputs()[i];
    const Value cotangent = Unguarded(builder, walked.cotangents[i]);
    result.depends.push_back(cotangent.valid());
    outputs.push_back({NameWith(input.name, kCotangent, taken),
                       cotangent.valid()
                           ? cotangent
                           : builder.Zeros(graph.type(input.value))});
  }
  CLEAVE_ASSIGN_OR_RETURN(result.graph,
                          std::move(builder).Build(std::move(outputs)));
  return result;
}

absl::StatusOr<Linearization> Linearize(const Graph& graph,
                                        const std::vector<bool>& active,
                                        const RuleSet& rules,
                                        const TransformOptions& options) {
  const BudgetScope scope;
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult both,
                          Jvp(graph, active, rules, {true, options}));
  std::vector<bool> unknown(both.graph.inputs().size(), true);
  std::fill_n(unknown.begin(), graph.inputs().size(), false);
  std::vector<bool> outputs_unknown(both.graph.outputs().size(), true);
  std::fill_n(outputs_unknown.begin(), graph.outputs().size(), false);
  CLEAVE_ASSIGN_OR_RETURN(
      PartialEvaluation cut,
      PartiallyEvaluate(both.graph, unknown, outputs_unknown,
                        {options.recompute_loops}));
  return Linearization{std::move(cut.known), std::move(cut.unknown),
                       cut.residuals};
}

}  // namespace cleave
