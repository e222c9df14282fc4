// Matrices that each round of a scan multiplies by, laid out for that once: a
// contraction over their rows would transpose them in every round.
//
//   scan(%w, ..., body: {
//     %1 = dot_general(%h, %w, contract_a: [1], contract_b: [1])
//   }, consts: 1)
//   -> scan(stored(transpose(%w)), ..., body: {
//     %1 = dot_general(%h, %w, contract_a: [1], contract_b: [0])
//   }, consts: 1)

#ifndef CLEAVE_ENGINE_CODEGEN_TRANSPOSE_LOOP_WEIGHTS_H_
#define CLEAVE_ENGINE_CODEGEN_TRANSPOSE_LOOP_WEIGHTS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with the constant matrices of its scans in that order, where
// nothing else reads them. A graph with composite nodes comes back as it is.
// O(nodes), those of bodies too.
Graph TransposeLoopWeights(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_TRANSPOSE_LOOP_WEIGHTS_H_
