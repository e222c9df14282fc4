#include "ops/element_cost.h"

namespace cleave {

int CostOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kDiv:
    case Primitive::kSqrt:
    case Primitive::kRsqrt:
      return 4;
    // Ten rounds of two products make the words of four elements, or of two.
    case Primitive::kRandomBits:
    case Primitive::kRandomUniform:
    case Primitive::kRandomSplit:
    case Primitive::kRandomFoldIn:
      return 40;
    case Primitive::kAbs:
    case Primitive::kNeg:
    case Primitive::kSign:
    case Primitive::kCeil:
    case Primitive::kFloor:
    case Primitive::kRoundNearestEven:
    case Primitive::kIsnan:
    case Primitive::kIsinf:
    case Primitive::kNot:
    case Primitive::kConvert:
    case Primitive::kBitcastConvert:
    case Primitive::kNograd:
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kMul:
    case Primitive::kMax:
    case Primitive::kMin:
    case Primitive::kEq:
    case Primitive::kNe:
    case Primitive::kLt:
    case Primitive::kLe:
    case Primitive::kGt:
    case Primitive::kGe:
    case Primitive::kAnd:
    case Primitive::kOr:
    case Primitive::kXor:
    case Primitive::kSelect:
    case Primitive::kShiftLeft:
    case Primitive::kShiftRight:
    case Primitive::kCopysign:
    case Primitive::kFma:
      return 1;
    default:
      return 16;
  }
}

}  // namespace cleave
