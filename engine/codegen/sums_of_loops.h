// Sums that a scan carries along, as one product or sum of what its steps
// stack: the gradients of weights, which each step would read and write.
//
//   carry w = w + dot_general(%g, %h, contract_a: [0], contract_b: [0])
//   -> stack %g as %gs, %h as %hs
//      w + dot_general(%gs, %hs, contract_a: [0, 1], contract_b: [0, 1])

#ifndef CLEAVE_ENGINE_CODEGEN_SUMS_OF_LOOPS_H_
#define CLEAVE_ENGINE_CODEGEN_SUMS_OF_LOOPS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with each carry of f32 or f64 that steps only add products without
// a batch and sums to in that form, where that stacks no more elements than the
// carry has: what is sliced or stacked in any case is not stacked again. Sums
// have another order. O(nodes).
Graph SumsOfLoops(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SUMS_OF_LOOPS_H_
