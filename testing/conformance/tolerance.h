// Difference: whether a computed tensor is the wanted one, within a tolerance.

#ifndef CLEAVE_TESTING_CONFORMANCE_TOLERANCE_H_
#define CLEAVE_TESTING_CONFORMANCE_TOLERANCE_H_

#include <optional>
#include <string>
#include <vector>

#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/conformance/case_suite.h"

namespace cleave {

// The distance of 1 to the next number.
double Epsilon(DType dtype);

// Units of the last place that a result of a section may be off: 16, or 64 in
// derivatives.
double UnitsFor(const std::string& section);

// The tolerance against an f64 truth for a result computed in `dtype`.
Tolerance ToleranceFor(DType dtype, const Tensor& want,
                       const std::string& section);

// The tensor that a result in `dtype` is compared with: the truth. Beyond the
// dtype's range it is infinite, or the largest number where `got` is.
Tensor WantedInDType(const Tensor& truth, const std::optional<Tensor>& got,
                     DType dtype);

// For each element what it may be off beside the tolerance; empty: nothing.
using Allowance = std::vector<double>;

// Empty if `got` is `want` within the tolerance, else where it is not.
std::string Difference(const Tensor& got, const Tensor& want,
                       Tolerance tolerance, bool same_dtype,
                       const Allowance& allowance = {});

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_TOLERANCE_H_
