#include "engine/ir/substitute.h"

#include <utility>

#include "absl/status/statusor.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/map_dims.h"
#include "ops/check.h"

namespace cleave {

Attributes SubstituteDims(const Attributes& attributes,
                          const DimSubstitution& values) {
  absl::StatusOr<Attributes> result = internal_ir::MapDims(
      attributes, [&](const Dim& dim) { return dim.Substitute(values); },
      [&](const Region& region) {
        return MakeRegion(SubstituteDims(*region.graph, values));
      });
  CLEAVE_CHECK(result.ok()) << result.status();
  return *std::move(result);
}

std::vector<TensorType> SubstituteDims(const std::vector<TensorType>& types,
                                       const DimSubstitution& values) {
  std::vector<TensorType> result = types;
  for (TensorType& type : result) {
    for (Dim& dim : type.shape) dim = dim.Substitute(values);
  }
  return result;
}

ShapeGuard SubstituteDims(const ShapeGuard& guard,
                          const DimSubstitution& values) {
  ShapeGuard result = guard;
  result.lhs = guard.lhs.Substitute(values);
  result.rhs = guard.rhs.Substitute(values);
  return result;
}

Graph SubstituteDims(const Graph& graph, const DimSubstitution& values) {
  Context& context = *graph.context();
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    copies[input.value.id] = builder.Input(
        input.name, SubstituteDims(graph.types(input.value), values).front());
  }
  std::vector<Value> operands;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (node.op == ToOpId(Primitive::kInput)) continue;
    operands.clear();
    for (Value v : graph.operands(Value{id})) operands.push_back(copies[v.id]);
    copies[id] = builder.AddTyped(
        node.op,
        context.Intern(SubstituteDims(graph.attributes(Value{id}), values)),
        context.Intern(SubstituteDims(graph.types(Value{id}), values)),
        operands, node.provenance);
  }
  for (const ShapeGuard& guard : graph.guards()) {
    builder.AddGuard(SubstituteDims(guard, values));
  }
  std::vector<NamedValue> outputs = graph.outputs();
  for (NamedValue& output : outputs) output.value = copies[output.value.id];
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
