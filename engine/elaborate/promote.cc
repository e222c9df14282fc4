#include "engine/elaborate/promote.h"

#include <optional>
#include <utility>

namespace cleave {
namespace {

int Category(DType dtype) { return static_cast<int>(KindOf(dtype)); }

// The smallest dtype that holds both.
DType Join(DType a, DType b) {
  if (a == b) return a;
  if (Category(a) < Category(b)) std::swap(a, b);
  if (IsComplex(a)) {
    const bool wide =
        a == DType::kC128 || b == DType::kC128 || b == DType::kF64;
    return wide ? DType::kC128 : DType::kC64;
  }
  if (Category(a) != Category(b)) return a;
  if (IsFloat(a)) {
    // f16 and bf16 meet in f32.
    if (ByteSize(a) == ByteSize(b)) return DType::kF32;
    return ByteSize(a) > ByteSize(b) ? a : b;
  }
  if (IsSigned(a) == IsSigned(b)) return ByteSize(a) > ByteSize(b) ? a : b;
  if (IsSigned(b)) std::swap(a, b);
  // a is signed: it must be wider than b, the unsigned one.
  if (ByteSize(a) > ByteSize(b)) return a;
  switch (ByteSize(b)) {
    case 1:
      return DType::kI16;
    case 2:
      return DType::kI32;
    case 4:
      return DType::kI64;
    default:
      return DType::kF32;
  }
}

}  // namespace

DType PromoteLikeAten(const std::vector<PromotionOperand>& operands) {
  std::optional<DType> result;
  using Kind = PromotionOperand::Kind;
  for (const Kind kind : {Kind::kTensor, Kind::kScalarTensor, Kind::kNumber}) {
    std::optional<DType> joined;
    for (const PromotionOperand& operand : operands) {
      if (operand.kind != kind) continue;
      DType dtype = operand.dtype;
      if (kind == Kind::kNumber && IsFloat(dtype)) dtype = DType::kF32;
      if (kind == Kind::kNumber && IsComplex(dtype)) dtype = DType::kC64;
      joined = joined.has_value() ? Join(*joined, dtype) : dtype;
    }
    if (!joined.has_value()) continue;
    if (!result.has_value()) {
      result = joined;
    } else if (Category(*joined) > Category(*result)) {
      result = Join(*result, *joined);
    }
  }
  return result.value_or(DType::kF32);
}

}  // namespace cleave
