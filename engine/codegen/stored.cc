#include "engine/codegen/stored.h"

#include "ops/primitive.h"

namespace cleave {

Value Stored(GraphBuilder& builder, Value x) {
  const TensorType type = builder.type(x);
  Attributes same;
  same.Set("dtype", type.dtype);
  // Apply would leave it out.
  return builder.AddTyped(
      ToOpId(Primitive::kConvert), builder.context()->Intern(same),
      builder.context()->Intern(type), {x}, builder.provenance());
}

bool IsStored(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kConvert) &&
         graph.type(v).dtype == graph.type(graph.operands(v)[0]).dtype;
}

}  // namespace cleave
