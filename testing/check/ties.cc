#include "testing/check/ties.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A graph of the same inputs whose outputs tell where operands of a max or min
// are equal; without outputs if there is none.
Graph TieGraph(const Graph& graph) {
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    copies[input.value.id] = builder.Input(input.name, graph.type(input.value));
  }
  std::vector<NamedValue> ties;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (copies[id].valid()) continue;
    const Node& node = graph.node(Value{id});
    std::vector<Value> operands;
    for (Value operand : graph.operands(Value{id})) {
      operands.push_back(copies[operand.id]);
    }
    copies[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
    if (!IsPrimitive(node.op)) continue;
    const Primitive primitive = ToPrimitive(node.op);
    if (primitive != Primitive::kMax && primitive != Primitive::kMin) continue;
    ties.push_back({absl::StrCat("tie", ties.size()),
                    builder.Apply(Primitive::kEq, operands)});
  }
  return std::move(builder).Build(std::move(ties));
}

}  // namespace

absl::StatusOr<bool> HasTie(const Graph& graph,
                            absl::Span<const Tensor> inputs) {
  const Graph ties = TieGraph(graph);
  if (ties.outputs().empty()) return false;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> equal,
                          Interpret(ties, inputs));
  for (const Tensor& tensor : equal) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.GetInt(i) != 0) return true;
    }
  }
  return false;
}

}  // namespace cleave
