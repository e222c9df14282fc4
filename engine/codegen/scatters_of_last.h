// Choices of the last update of each place, as scatters that set: the runtime
// writes rows one after the other, where a scatter of their numbers and a
// gather of what these name go over the result twice more.
//
//   %l = scatter(-1, %i, iota(m), axes: [0], mode: "max")  // %i: [m, 1]
//   select(ge(%l, 0), gather(%u, reshape(%l)), %x)         // %u: [m, d]
//   -> scatter(%x, %i, %u, axes: [0], mode: "set")

#ifndef CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_LAST_H_
#define CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_LAST_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with such choices in that form, a batch of leading axes or not. A
// graph with composite nodes comes back as it is. O(nodes).
Graph ScattersOfLast(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SCATTERS_OF_LAST_H_
