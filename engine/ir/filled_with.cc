#include "engine/ir/filled_with.h"

#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

std::optional<Exact> FilledWith(const Graph& graph, Value v) {
  while (graph.node(v).op == ToOpId(Primitive::kBroadcastInDim)) {
    v = graph.operands(v)[0];
  }
  if (graph.node(v).op != ToOpId(Primitive::kConstant)) return std::nullopt;
  const StaticValue& value = graph.attributes(v).Get("value");
  if (value.kind() != StaticValue::Kind::kReal) return std::nullopt;
  return value.AsReal();
}

}  // namespace cleave
