// PyTorch's type promotion.

#ifndef CLEAVE_ENGINE_ELABORATE_PROMOTE_H_
#define CLEAVE_ENGINE_ELABORATE_PROMOTE_H_

#include <vector>

#include "ops/dtype.h"

namespace cleave {

struct PromotionOperand {
  enum class Kind { kTensor, kScalarTensor, kNumber };
  DType dtype = DType::kF32;
  Kind kind = Kind::kTensor;
};

// The dtype that operands compute in. Tensors with axes decide, then tensors
// without, then numbers: a weaker one counts only where its category (bool <
// integer < float < complex) is higher. A number that decides has the default
// dtype of its category: i64, f32 or c64.
DType PromoteLikeAten(const std::vector<PromotionOperand>& operands);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_PROMOTE_H_
