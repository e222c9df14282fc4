// FoldAt: a graph where one of its inputs is a number.

#ifndef CLEAVE_TESTING_MUTATE_FOLD_AT_H_
#define CLEAVE_TESTING_MUTATE_FOLD_AT_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace cleave {

// `graph`, of primitives, where every element of the input `name` is `number`,
// which the input's dtype holds: what pointwise primitives make of numbers
// alone is a number, and so is what arithmetic and comparisons make of a NaN;
// `select` by a number is the operand that it chooses.
// The input stays, unused. Errors of the reference kernels.
//
//   f(x, y) = select(x > 0, exp(x), 1) * y at x = 0 is f(x, y) = 1 * y.
absl::StatusOr<Graph> FoldAt(const Graph& graph, const std::string& name,
                             double number);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_FOLD_AT_H_
