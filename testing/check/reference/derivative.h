// The derivative of a primitive graph over the reals, by differences.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_DERIVATIVE_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_DERIVATIVE_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"

namespace cleave {

// A function over the reals: the interpretation of a graph.
using RealFunction = std::function<absl::StatusOr<std::vector<RealTensor>>(
    const std::vector<RealTensor>& inputs, int bits)>;

// Along a direction, at each element of each result: the mean of the two
// one-sided differences, or nullopt where they differ (a kink, a jump, a pole)
// or are not finite. Results that are not floats have no entries.
struct Slopes {
  std::vector<std::vector<std::optional<Real>>> values;
};

// The differences' step is 2^step_exponent of each element (of 1 where that is
// smaller; of 1 for functions that are not elementwise), so that `bits` must be
// well above twice the step's.
struct DifferencePrecision {
  int bits;
  int step_exponent;
};
inline constexpr DifferencePrecision kCoarseDifferences = {512, -100};

// `directions[k]` belongs to operand k: empty (of shape [0]) where it stays.
absl::StatusOr<Slopes> SlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, bool elementwise,
    DifferencePrecision precision = kCoarseDifferences);

// The same by steps so fine that a jump near by, or one that is odd about the
// point, is not taken for a slope: nullopt, too, where two fine steps tell two
// slopes. For what the coarse ones leave open.
absl::StatusOr<Slopes> FineSlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, bool elementwise);

// For each element of each float result: whether it has no one-sided derivative
// along the direction or against it, as cbrt at 0 and asin at 1, since finer
// steps tell other differences, or since the function ends there. abs at 0 has
// both of them.
absl::StatusOr<std::vector<std::vector<bool>>> SteepAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions);

// Whether no float among the elements is NaN or infinite.
bool AllFinite(const std::vector<Tensor>& tensors);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_DERIVATIVE_H_
