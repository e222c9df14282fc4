// The derivative of a primitive graph over the reals, by differences.

#ifndef CLEAVE_TESTING_CHECK_DERIVATIVE_H_
#define CLEAVE_TESTING_CHECK_DERIVATIVE_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/real.h"
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

// `directions[k]` belongs to operand k: empty (of shape [0]) where it stays.
// The step is 2^-100 of each element (of 1 where that is smaller), so that
// bits must be well above 300.
absl::StatusOr<Slopes> SlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, int bits,
    bool elementwise);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_DERIVATIVE_H_
