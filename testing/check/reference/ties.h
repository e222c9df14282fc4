// Ties of max, min and sort, where a derivative is a convention of the rule
// (its @tie; that equal keys stay in order) and not a fact about the function.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_TIES_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_TIES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

// Whether some max or min of `graph` (primitives only) has two equal operands
// at an element, when it runs on `inputs` in their dtypes. Errors of Interpret.
absl::StatusOr<bool> HasTie(const Graph& graph,
                            absl::Span<const Tensor> inputs);

// Whether some sort of `graph` meets equal keys then. An element in the middle
// of equal ones moves with none of them alone, whichever way it is looked at.
// The keys of a sort within a loop are not known: true where an input has equal
// elements.
absl::StatusOr<bool> SortsEqualKeys(const Graph& graph,
                                    absl::Span<const Tensor> inputs);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_TIES_H_
