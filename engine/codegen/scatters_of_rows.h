// Scatters of one update for each row into zeros, as choices by the place: they
// share a kernel with what reads them, as the gradient of a loss that picks an
// element of each row does.
//
//   scatter(0, %t, %u, axes: [1], batch: 1, mode: "add")  // %t: [b, 1], %u:
//   [b]
//   -> select(eq(broadcast_in_dim(%t), broadcast_in_dim(iota(n))),
//             broadcast_in_dim(%u), 0)                     // [b, n]

#ifndef CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_ROWS_H_
#define CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_ROWS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with such scatters along one axis, behind those of the batch, as
// choices. An index that is out of range meets no place, as it is dropped by
// the scatter. A graph with composite nodes comes back as it is. O(nodes).
Graph ScattersOfRows(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_ROWS_H_
