// ResolveChoices: a graph without what its choices never let through.
//
//   select(x > 64, x, x * exp(-select(x > 64, 64, x)))
//   is   select(x > 64, x, x * exp(-x))
//
// Each operand of a `select` is taken for the elements that choose it: there
// the condition holds (or does not), and so do the conditions that follow from
// it. Rules guard their branches with numbers that never get out, 64 above; a
// mutant of such a number means what the rule means.

#ifndef CLEAVE_TESTING_MUTATE_RESOLVE_CHOICES_H_
#define CLEAVE_TESTING_MUTATE_RESOLVE_CHOICES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace cleave {

// `graph`, of primitives, in which every node under a `select` is what it is
// where it is chosen. Outputs are the same bits (NaN being one value). Nodes
// are in the order in which the outputs come to them, so that two graphs that
// differed in what is gone have one GraphKey. ResourceExhausted where a node
// would be taken under too many conditions.
//
// With `numbers`, no element of the inputs of these names is a NaN. A graph in
// which an element of an output depends on several of an input has elements of
// neither kind, so that looking at both proves nothing of it.
absl::StatusOr<Graph> ResolveChoices(const Graph& graph,
                                     const std::set<std::string>& numbers = {});

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_RESOLVE_CHOICES_H_
