// RoundTensor and MoveTensor: the tensors of a case rounded to another dtype,
// or moved by a little, to see how far the truth moves.

#ifndef CLEAVE_TESTING_CONFORMANCE_CASE_ROUNDING_H_
#define CLEAVE_TESTING_CONFORMANCE_CASE_ROUNDING_H_

#include "absl/functional/function_ref.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/conformance/case_suite.h"

namespace cleave {

// A float tensor with its values rounded to `rounded` and kept in `kept`;
// others as they are.
Tensor RoundTensor(const Tensor& tensor, DType rounded, DType kept);

// A float tensor whose elements are moved by `unit` times their size, up or
// down: the signs are those of `seed`. Others as they are.
Tensor MoveTensor(const Tensor& tensor, double unit, uint64_t seed);

// The arguments, and those of a section with its tangents and cotangents, with
// each tensor replaced by what `change` makes of it.
using ChangeTensor = absl::FunctionRef<Tensor(const Tensor&)>;
CaseArguments ChangeArguments(CaseArguments arguments, ChangeTensor change);
CaseSection ChangeSection(CaseSection section, ChangeTensor change);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_CASE_ROUNDING_H_
