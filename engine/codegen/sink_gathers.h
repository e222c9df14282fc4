// Gathers of one element per row read what the row is computed from.
//
//   y = exp(x - m)                         // [n, c], m: [n, 1]
//   z = gather(y, t; axes: [1], batch: 1)  // [n]
// becomes
//   z = exp(gather(x, t) - m)
//
// so that a loss that picks an element of a log_softmax shares its kernel, and
// the log_softmax is not stored for it.

#ifndef CLEAVE_ENGINE_CODEGEN_SINK_GATHERS_H_
#define CLEAVE_ENGINE_CODEGEN_SINK_GATHERS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with gathers in mode "error" moved before the pointwise nodes that
// they read, where each element is read at most once by them: all its results
// and errors stay the same. Nodes that can fail stay before their gathers. A
// graph with composite nodes stays as it is. O(nodes).
Graph SinkGathers(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SINK_GATHERS_H_
