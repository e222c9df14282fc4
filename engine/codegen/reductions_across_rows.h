// Reductions along an axis that memory does not run along, as those of columns:
// vectors go along the rows of what is read then, and step from row to row.
//
//   y[i, m] = sum[j](g[i, j] * (x[i, m] - z[j, m]))
//
// is given as reduce_sum over the last axis of [i, m, j], where a vector of z
// would be gathered from as many rows. Over axis 1 of [i, j, m] it lies in one.

#ifndef CLEAVE_ENGINE_CODEGEN_REDUCTIONS_ACROSS_ROWS_H_
#define CLEAVE_ENGINE_CODEGEN_REDUCTIONS_ACROSS_ROWS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with the last two axes exchanged of what such sums, maxima and
// minima reduce: where the value is computed for that alone, something that is
// read lies across the last axis, and all lies along the axis before it or does
// not vary there. Sums have the order of those of columns, and thousands of
// terms at most, a known number. O(nodes).
Graph ReductionsAcrossRows(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_REDUCTIONS_ACROSS_ROWS_H_
