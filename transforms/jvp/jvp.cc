#include "transforms/jvp/jvp.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/status_macros.h"
#include "transforms/jvp/tangent_graph.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/table/rule_tables.h"

namespace cleave {

absl::StatusOr<JvpResult> Jvp(const Graph& graph,
                              const std::vector<bool>& active,
                              const RuleSet& rules, const JvpOptions& options) {
  const BudgetScope scope;
  CLEAVE_ASSIGN_OR_RETURN(RuleTable * table, TableOf(rules, options.transform));
  GraphBuilder builder(graph.context());
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Value> primals,
      AddActiveInputs(builder, graph, active, rules, "jvp", "no tangents"));
  absl::flat_hash_set<std::string> taken = NamesOf(graph.inputs());
  std::vector<Value> tangents(active.size());
  for (size_t i = 0; i < active.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    if (active[i]) {
      tangents[i] = builder.Input(NameWith(input.name, kTangent, taken),
                                  graph.type(input.value));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(
      TangentGraphResult both,
      TangentGraph(builder, graph, primals, tangents, *table));
  JvpResult result;
  taken = NamesOf(graph.outputs());
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < both.outputs.size(); ++i) {
    outputs.push_back({graph.outputs()[i].name, both.outputs[i]});
  }
  for (size_t i = 0; i < both.outputs.size(); ++i) {
    const TensorType type = builder.type(both.outputs[i]);
    Value& tangent = both.tangents[i];
    if (!tangent.valid() && options.instantiate_zeros &&
        emit::IsInexact(type.dtype)) {
      tangent = builder.Zeros(type);
    }
    result.has_tangent.push_back(tangent.valid());
    if (tangent.valid()) {
      outputs.push_back(
          {NameWith(graph.outputs()[i].name, kTangent, taken), tangent});
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(result.graph,
                          std::move(builder).Build(std::move(outputs)));
  return result;
}

}  // namespace cleave
