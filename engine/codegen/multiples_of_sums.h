// Sums of negated or doubled values, as the negated or doubled sum: a gradient
// of differences squared is summed over many pairs, and its factor is one for
// all of them.
//
//   reduce_sum(neg(add(%x, %x)))  // %x: f32[1024, 1000, 64], over axis 0
//   -> add(neg(add(%s, %s)), 0), %s = reduce_sum(%x)

#ifndef CLEAVE_ENGINE_CODEGEN_MULTIPLES_OF_SUMS_H_
#define CLEAVE_ENGINE_CODEGEN_MULTIPLES_OF_SUMS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with such sums of floats in that form. The bits are the same, but
// where a doubled term overflows and others make up for it: the sum is finite
// then. A graph with composite nodes comes back as it is. O(nodes).
Graph MultiplesOfSums(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_MULTIPLES_OF_SUMS_H_
