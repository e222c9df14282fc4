// Scatters that add zeros of a padding, without these: the gradient of a top-k
// is scattered to the places of k elements, not of all that were sorted.
//
//   scatter(0, %i, pad(%u, 0, high: [0, 1016]), axes: [1], batch: 1,
//           mode: "add")                    // i: [m, 1024, 1], u: [m, 8]
//   -> scatter(0, %i[:, :8, :], %u, ..)

#ifndef CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_PADDING_H_
#define CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_PADDING_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with such scatters into zeros, where the padding lies along axes of
// the indices behind those of the batch. O(nodes).
Graph ScattersOfPadding(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_PADDING_H_
