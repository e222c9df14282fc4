#include "engine/ir/substitute.h"

#include <utility>

#include "absl/status/statusor.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/map_dims.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<Attributes> SubstituteDims(const Attributes& attributes,
                                          const DimSubstitution& values) {
  return internal_ir::MapDims(
      attributes,
      [&](const Dim& dim) -> absl::StatusOr<Dim> {
        Dim result = dim.Substitute(values);
        if (!result.valid()) return result.status();
        return result;
      },
      [&](const Region& region) -> absl::StatusOr<Region> {
        CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                                SubstituteDims(*region.graph, values));
        return MakeRegion(std::move(graph));
      });
}

absl::StatusOr<std::vector<TensorType>> SubstituteDims(
    const std::vector<TensorType>& types, const DimSubstitution& values) {
  std::vector<TensorType> result = types;
  for (TensorType& type : result) {
    for (Dim& dim : type.shape) dim = dim.Substitute(values);
    CLEAVE_RETURN_IF_ERROR(CheckDims(type.shape));
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

absl::StatusOr<Graph> SubstituteDims(const Graph& graph,
                                     const DimSubstitution& values) {
  if (values.empty()) return graph;
  Context& context = *graph.context();
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                            SubstituteDims(graph.types(input.value), values));
    copies[input.value.id] = builder.Input(input.name, types.front());
  }
  std::vector<Value> operands;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (node.op == ToOpId(Primitive::kInput)) continue;
    operands.clear();
    for (Value v : graph.operands(Value{id})) operands.push_back(copies[v.id]);
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                            SubstituteDims(graph.types(Value{id}), values));
    CLEAVE_ASSIGN_OR_RETURN(
        const Attributes attributes,
        SubstituteDims(graph.attributes(Value{id}), values));
    copies[id] =
        builder.AddTyped(node.op, context.Intern(attributes),
                         context.Intern(types), operands, node.provenance);
  }
  for (const ShapeGuard& guard : graph.guards()) {
    builder.AddGuard(SubstituteDims(guard, values));
  }
  std::vector<NamedValue> outputs = graph.outputs();
  for (NamedValue& output : outputs) output.value = copies[output.value.id];
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
