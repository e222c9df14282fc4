#include "engine/codegen/element_support.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/ir/filled_with.h"
#include "ops/exact.h"

namespace cleave {

bool HasElements(DType dtype) {
  return IsBool(dtype) || IsInt(dtype) || IsFloat(dtype) ||
         dtype == DType::kKey;
}

absl::Status CanLowerElement(Primitive primitive, DType result,
                             absl::Span<const DType> operands) {
  const auto no = [&](absl::string_view why) {
    return absl::UnimplementedError(
        absl::StrCat("`", PrimitiveName(primitive), "`: ", why));
  };
  if (!HasElements(result)) {
    return no(absl::StrCat("no vector code for ", DTypeName(result)));
  }
  for (const DType operand : operands) {
    if (!HasElements(operand)) {
      return no(absl::StrCat("no vector code for ", DTypeName(operand)));
    }
  }
  const DType dtype = operands.front();
  switch (primitive) {
    case Primitive::kPolygamma:
      return no("no vector code but for orders 0 and 1 of f32, f16 and bf16");
    case Primitive::kComplex:
    case Primitive::kReal:
    case Primitive::kImag:
      return no("no vector code");
    case Primitive::kPow:
      if (IsInt(dtype)) return no("integer powers have no vector code");
      return absl::OkStatus();
    case Primitive::kConvert:
      // By way of f64 it would be rounded twice.
      if (IsInt(dtype) && ByteSize(dtype) == 8 && result == DType::kBF16) {
        return no("64-bit integers to bf16 have no vector code");
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

bool IsOfLowOrder(const Graph& graph, Value node) {
  if (graph.node(node).op != ToOpId(Primitive::kPolygamma)) return false;
  const DType dtype = graph.type(node).dtype;
  const auto order = FilledWith(graph, graph.operands(node)[0]);
  return dtype != DType::kF64 && IsFloat(dtype) && order.has_value() &&
         (*order == Exact(0) || *order == Exact(1));
}

}  // namespace cleave
