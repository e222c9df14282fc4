// Reductions that vectors or threads do not serve as they are.
//
//   argmax(%x, axes: [1])            // x: f32[m, n]
//   -> the least number of an element that equals reduce_max(%x, axes: [1])
//
//   reduce_sum(%x, axes: [1])        // x: f32[m, 3]
//   -> add(add(x[:, 0], x[:, 1]), x[:, 2])

#ifndef CLEAVE_ENGINE_CODEGEN_REDUCTIONS_OF_LINES_H_
#define CLEAVE_ENGINE_CODEGEN_REDUCTIONS_OF_LINES_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with each argmax and argmin along the last axis as two reductions,
// which run in vectors, and each reduction of what is read along axes of a few
// elements, as the windows of a pooling are, as operations on its slices,
// which run in vectors over the axes before. A reduction of many rows of few
// columns is one of blocks of rows, which threads share: how many follows from
// the extents alone. All results stay the same, but for the order of a sum.
// O(nodes). With open extents, code is to serve all numbers that stand in the
// graph's types: what follows from these stays as it is.
Graph ReductionsOfLines(const Graph& graph, bool open_extents);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_REDUCTIONS_OF_LINES_H_
