// CompareComplexTangents: the tangents that a jvp graph computes of complex
// numbers against differences of the primal graph. There is no reference over
// the complex numbers, so this finds a wrong formula, and no rounding.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_COMPLEX_H_
#define CLEAVE_TESTING_CHECK_COMPARE_COMPLEX_H_

#include <complex>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

// A difference and a tangent further apart than this part of the larger are not
// the same.
inline constexpr double kComplexTolerance = 1e-6;

struct ComplexTangents {
  int64_t samples = 0;
  // Points beside a branch cut or a pole, where differences do not settle.
  int64_t rough = 0;
  struct Failure {
    int64_t element = 0;
    std::complex<double> expected;
    std::complex<double> got;
  };
  std::optional<Failure> failure;
};

// `count` numbers of c128 as a tensor of shape [count]: of magnitudes 1/16 to
// 4, in all directions.
Tensor ComplexPoints(int64_t count, std::mt19937_64& random);

// `primal` takes operands of shape [n] to one result, `jvp` the same and the
// tangent of operand `active` to the result and its tangent, both elementwise.
// `inputs` are one tensor per operand, `tangent` is as operand `active`. The
// derivative along `tangent` need not be linear over the complex numbers (that
// of the absolute value is not).
absl::StatusOr<ComplexTangents> CompareComplexTangents(
    const Graph& primal, const Graph& jvp, absl::Span<const Tensor> inputs,
    int active, const Tensor& tangent);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_COMPLEX_H_
