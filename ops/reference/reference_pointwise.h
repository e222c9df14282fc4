// The pointwise part of EvalReference. Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_REFERENCE_POINTWISE_H_
#define CLEAVE_OPS_REFERENCE_REFERENCE_POINTWISE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/primitive.h"
#include "ops/tensor.h"

namespace cleave {

// A pointwise primitive on operands that InferType accepts, with a result of
// `dtype`. OutOfRange for integer division by zero.
absl::StatusOr<Tensor> EvalPointwise(Primitive primitive, DType dtype,
                                     absl::Span<const Tensor> operands);

// `x` with each element converted: to an integer truncates and saturates, NaN
// gives 0; to bool is true where the element is not 0.
Tensor ConvertTensor(const Tensor& x, DType dtype);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_REFERENCE_POINTWISE_H_
