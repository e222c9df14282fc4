// Noisy: a graph whose free operations are off by a little.
//
// A kernel may sum in another order than the interpreter, and compute exp by
// another polynomial. How far results may part because of that is seen in the
// results of the same graph where each element of each of these operations is
// moved by a few units in its last place, or of what it sums.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_NOISE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_NOISE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave::fuzz {

enum class NoiseOf : uint8_t {
  kFree,  // operations that are free in their rounding or their order
  // All that rounds: by how much results differ from those of exact arithmetic.
  kAll,
};

// The results of `graph`, of primitives, with noise that `seed` decides. A sum
// of whole numbers that are small for their dtype is exact in any order, and
// has no noise. Errors of EvaluateNodes; Unimplemented where the body of a
// region has a free operation. With kAll regions are off as a whole.
absl::StatusOr<std::vector<Tensor>> InterpretWithNoise(
    const Graph& graph, const std::vector<Tensor>& inputs, uint64_t seed,
    NoiseOf noise_of = NoiseOf::kFree);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_NOISE_H_
