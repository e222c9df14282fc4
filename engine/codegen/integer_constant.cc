#include "engine/codegen/integer_constant.h"

#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

std::optional<int64_t> IntegerConstant(const Graph& graph, Value v) {
  while (graph.node(v).op == ToOpId(Primitive::kBroadcastInDim)) {
    v = graph.operands(v)[0];
  }
  if (graph.node(v).op != ToOpId(Primitive::kConstant)) return std::nullopt;
  const StaticValue& value = graph.attributes(v).Get("value");
  if (value.kind() == StaticValue::Kind::kReal) {
    return value.AsReal().ToInt64();
  }
  if (value.kind() != StaticValue::Kind::kInt) return std::nullopt;
  const auto integer = value.ToInt();
  return integer.ok() ? std::optional<int64_t>(*integer) : std::nullopt;
}

}  // namespace cleave
