// Axes along which an op computes each slice by itself: slice i of each result
// depends on slices i of the operands alone, by one function for all i that
// does not know how many there are. Along such an axis n a batch of calls is
// one call on [B * n, ..]. Internal to transforms.
//
// The proof is a walk over the op's expansion with the axis's extent replaced
// by a new variable: each node must map slices to slices (one rule per class of
// primitives), and the variable must occur nowhere but as the extent of that
// axis: in no constant, index, other extent or guard.

#ifndef CLEAVE_TRANSFORMS_VMAP_PARALLEL_AXIS_H_
#define CLEAVE_TRANSFORMS_VMAP_PARALLEL_AXIS_H_

#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Whether the first axis of each batched operand of `signature` is one such
// axis, which comes out as the first one of each result in `batched_results`
// and in no other result: then merging a batch into it moves no data. False
// also where the op does not accept any extent there. The axes must have one
// extent in all of these operands.
bool IsParallelInFront(const Signature& signature,
                       const std::vector<bool>& batched,
                       const std::vector<bool>& batched_results,
                       const RuleSet& rules);

// The parallel axis of each output of `graph`, of primitives (-1: it has none);
// nullopt if it is not proved parallel. The parallel axis of an input is its
// axis of extent `extent`, a variable that stands for nothing else.
std::optional<std::vector<int>> ParallelOutputs(const Graph& graph,
                                                const Dim& extent);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_PARALLEL_AXIS_H_
