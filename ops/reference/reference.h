// Reference kernels: slow, obvious evaluation of each primitive. The oracle for
// floating point (EvalReference) and for the reals (EvalReal, in
// ops/reference/real.h).
//
// f16, bf16 and f32 round once per primitive: sums and products of reductions,
// contractions and scans of these are kept in f64, those of f64 in 113 bits.
//
//   absl::StatusOr<std::vector<Tensor>> y =
//       EvalReference(Primitive::kExp, {}, {Tensor::Scalar(DType::kF32, 1)});

#ifndef CLEAVE_OPS_REFERENCE_REFERENCE_H_
#define CLEAVE_OPS_REFERENCE_REFERENCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

// Evaluates `primitive` (not input, scan, cond, while: those belong to the
// graph's interpreter) on operands whose types InferType accepts; every Dim
// among the attributes is constant. One tensor per result. OutOfRange for an
// index out of range in mode "error", OutOfRange for integer division by zero,
// ResourceExhausted for a result beyond kMaxTensorElements, Unimplemented for
// an order of polygamma beyond 65536. nonzero gives the rows that it finds; a
// constant `size` that differs from their number is InvalidArgument.
//
// A caller that knows what InferType says of these operands, with constant
// extents, may give it as `declared`: it is not inferred again then.
absl::StatusOr<std::vector<Tensor>> EvalReference(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const Tensor> operands,
    absl::Span<const TensorType> declared = {});

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_REFERENCE_H_
