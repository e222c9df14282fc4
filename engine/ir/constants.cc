#include "engine/ir/constants.h"

#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

// The number of a constant or of one broadcast; null for another value.
const StaticValue* NumberOf(const Graph& graph, Value v) {
  while (graph.node(v).op == ToOpId(Primitive::kBroadcastInDim)) {
    v = graph.operands(v)[0];
  }
  if (graph.node(v).op != ToOpId(Primitive::kConstant)) return nullptr;
  return graph.attributes(v).Find("value");
}

}  // namespace

std::optional<int64_t> IntegerConstant(const Graph& graph, Value v) {
  const StaticValue* const value = NumberOf(graph, v);
  if (value == nullptr) return std::nullopt;
  if (value->kind() == StaticValue::Kind::kReal) {
    return value->AsReal().ToInt64();
  }
  if (value->kind() != StaticValue::Kind::kInt) return std::nullopt;
  const auto integer = value->ToInt();
  return integer.ok() ? std::optional<int64_t>(*integer) : std::nullopt;
}

std::optional<bool> BoolConstant(const Graph& graph, Value v) {
  const StaticValue* const value = NumberOf(graph, v);
  if (value == nullptr || value->kind() != StaticValue::Kind::kBool) {
    return std::nullopt;
  }
  return value->AsBool();
}

std::optional<bool> ComparedConstants(const Graph& graph, Primitive primitive,
                                      absl::Span<const Value> operands) {
  if (operands.size() != 2 || !IsInt(graph.type(operands[0]).dtype)) {
    return std::nullopt;
  }
  const auto a = IntegerConstant(graph, operands[0]);
  const auto b = IntegerConstant(graph, operands[1]);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  switch (primitive) {
    case Primitive::kEq:
      return *a == *b;
    case Primitive::kNe:
      return *a != *b;
    case Primitive::kLt:
      return *a < *b;
    case Primitive::kLe:
      return *a <= *b;
    case Primitive::kGt:
      return *a > *b;
    case Primitive::kGe:
      return *a >= *b;
    default:
      return std::nullopt;
  }
}

std::optional<Value> FoldComparison(GraphBuilder& builder, Primitive primitive,
                                    absl::Span<const Value> operands) {
  const auto holds = ComparedConstants(builder.graph(), primitive, operands);
  if (!holds.has_value()) return std::nullopt;
  return builder.Constant(
      Exact(*holds ? 1 : 0),
      TensorType{DType::kBool, builder.type(operands[0]).shape});
}

}  // namespace cleave
