// FindCause: from an element of an output that is off, the way back through the
// graph to the first node that is off.
//
//   %1 = cos(%x)         0.08 ulp
//   %2 = sub(1, %1)      1.7e+07 ulp    the first: cancellation
//   %3 = div(%2, %x)     1.7e+07 ulp    inherits it
//
// At each node the way goes on to the operand that explains most: the one that
// changes the node's exact value most where it alone is as it was computed, and
// there to the element that changes it most. It ends where that operand is
// within the tolerance, or where the node is off on the very operands that it
// was given.

#ifndef CLEAVE_TESTING_DEBUG_FIND_CAUSE_H_
#define CLEAVE_TESTING_DEBUG_FIND_CAUSE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "ops/reference/real.h"
#include "testing/debug/element_error.h"
#include "testing/debug/node_values.h"

namespace cleave {

enum class Finding {
#define FINDING(enumerator, name) enumerator,
#include "testing/debug/finding.def"
};

// "ill-conditioned".
absl::string_view FindingName(Finding finding);

// An element of a node with one result.
struct DebugPlace {
  Value node;
  int64_t element = 0;
};

struct CauseStep {
  DebugPlace place;
  ElementError error;
  // On its operands as they were computed. Infinite where a number of the dtype
  // overflowed.
  ElementError own;
  // The operand that explains most of the error; nullopt for an input, and
  // where nothing among the operands is off by a bit.
  std::optional<DebugPlace> operand;
  ElementError operand_error;
};

struct Cause {
  Finding finding = Finding::kAccumulated;
  // From the output on.
  std::vector<CauseStep> path;
  size_t first = 0;  // in the path: the first node that is off
  // In the path: nodes before `first` that multiply the error again.
  std::vector<size_t> jumps;
  // The condition number of the first node at its element (ConditionOf), where
  // the node multiplies errors.
  std::optional<double> condition;

  const CauseStep& first_off() const { return path[first]; }
};

// `ulp` is the tolerance, as a part of a value in units of eps. Errors of the
// evaluation.
absl::StatusOr<Cause> FindCause(const Graph& graph, const NodeValues& values,
                                DebugPlace output, double ulp);

// The condition number of a node at an element: the sum over its operands of
// |x df/dx / f| over the reals; of sums and products of arrays the sum of the
// terms' absolute values beside the absolute value of the sum. Nullopt for what
// moves elements, decides or loops, and where the value is 0 or not finite.
absl::StatusOr<std::optional<double>> ConditionOf(const Graph& graph,
                                                  const NodeValues& values,
                                                  DebugPlace place);

// The exact value of a node at an element, a scalar, on the operands as they
// were computed; nullopt for inputs, and where there is none. Between it and
// the computed value is what the node adds, and between it and the exact value
// what it inherits.
absl::StatusOr<std::optional<RealTensor>> ExactOnComputed(
    const Graph& graph, const NodeValues& values, DebugPlace place);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_FIND_CAUSE_H_
