// Shrinking: the smallest and plainest inputs that still fail.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ops/tensor.h"

namespace cleave {

// Simplifies the values of `inputs`, shapes kept, as long as `fails` holds:
// elements become 0, 1, whole numbers, short decimals. At most `trials` calls.
std::vector<Tensor> ShrinkValues(
    std::vector<Tensor> inputs,
    const std::function<bool(absl::Span<const Tensor>)>& fails,
    int trials = 400);

// `x = [90], w = [1]`, then the hexadecimal values of floats that need them:
// `x = 0.1 (0x1.99999ap-4)`. Long tensors are cut.
std::string DescribeInputs(const std::vector<std::string>& names,
                           absl::Span<const Tensor> inputs);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_H_
