// Scatters along the first axis behind those of the batch, of indices with
// several axes, as scatters of one line of indices: rows are added by the
// runtime's own code then (RuntimeOperands).
//
//   scatter(%x, %i, %u, axes: [0])     // %i: [a, b, 1], %u: [a, b, d]
//   -> scatter(%x, reshape(%i), reshape(%u))    // [a b, 1], [a b, d]
//
// A sum of one with reshaped numbers, which is reshaped back, is made in their
// own shape, so that it need not be copied:
//
//   reshape(add(reshape(%x), scatter(..)))      // %x: [m, n]
//   -> add(%x, reshape(scatter(..)))

#ifndef CLEAVE_ENGINE_CODEGEN_FLATTEN_SCATTERS_H_
#define CLEAVE_ENGINE_CODEGEN_FLATTEN_SCATTERS_H_

#include "engine/ir/graph.h"

namespace cleave {

// Whether the node is a scatter along the axis behind those of the batch, or
// axis 0 without one, that adds, keeps the largest of integers, or sets.
bool ScattersRows(const Graph& graph, Value node);

// The graph with each scatter that ScattersRows, and each such sum, in that
// form; updates come in the same order. A graph with composite nodes comes back
// as it is. O(nodes).
Graph FlattenScatters(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FLATTEN_SCATTERS_H_
