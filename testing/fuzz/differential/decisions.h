// DecisionsAt: what a graph decides at a point by the value of inexact numbers.
//
// Where a graph decides alike at several points that are near each other, what
// it computes there is one composition of smooth functions: differences between
// the points converge to its derivative. Where it does not, a kink or a jump is
// between them, and differences say nothing.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_DECISIONS_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_DECISIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave::fuzz {

// A hash of: the results of comparisons and of whatever makes integers or bools
// of inexact numbers; which operand of max and min, which elements of
// reductions and scans of these are the result; on which side of a kink, a
// jump, a pole or a branch cut operands are; the order of what is sorted.
// Errors of EvaluateNodes; Unimplemented for a region that decides so.
absl::StatusOr<uint64_t> DecisionsAt(const Graph& graph,
                                     const std::vector<Tensor>& inputs);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_DECISIONS_H_
