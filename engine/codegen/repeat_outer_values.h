// RepeatOuterValues: values of all pairs are computed where they are read,
// rather than stored: x[i, m] - z[j, m], say, which has many more elements
// than x and z, and which sums over m, over i and over j read.

#ifndef CLEAVE_ENGINE_CODEGEN_REPEAT_OUTER_VALUES_H_
#define CLEAVE_ENGINE_CODEGEN_REPEAT_OUTER_VALUES_H_

#include "engine/codegen/fusion.h"
#include "engine/ir/graph.h"

namespace cleave {

// Makes each such value a node of all kernels that read it, and no result of
// its own any more: where it takes a few cheap operations from values that
// repeat along one of its axes, and each reader is a pointwise kernel or a
// reduction that reads each element once. A group that has no other result is
// left out. O(nodes) for each value that is stored.
FusionPlan RepeatOuterValues(const Graph& graph, FusionPlan plan);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_REPEAT_OUTER_VALUES_H_
