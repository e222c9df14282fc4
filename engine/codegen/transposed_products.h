// Transposed products as products of the operands in the other order, as
// gradients of products are.
//
//   transpose(dot_general(%a, %b, ..), axes: [1, 0])    // %a: [m, k], %b: [n,
//   k]
//   -> dot_general(%b, %a, ..)                          // [n, m]

#ifndef CLEAVE_ENGINE_CODEGEN_TRANSPOSED_PRODUCTS_H_
#define CLEAVE_ENGINE_CODEGEN_TRANSPOSED_PRODUCTS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with each transpose that swaps the axes of a contraction's
// operands, and reads nothing but that contraction, in that form: the same
// bits. A graph with composite nodes comes back as it is. O(nodes).
Graph TransposedProducts(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_TRANSPOSED_PRODUCTS_H_
