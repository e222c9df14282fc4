// Contractions of tensors as products of matrices, where movement lies between
// an operand and its rows: the operand is put in order in memory once, rather
// than found anew by an index of several axes for each product.
//
//   // %o: [b, h, s, d], heads one behind the other
//   %p = reshape(transpose(%o, axes: [0, 2, 1, 3]))            // [b, s, h d]
//   dot_general(%p, %w, contract_a: [2], contract_b: [1])      // [b, s, n]
//   -> reshape(dot_general(stored(reshape(%p)), %w, ...))      // [b s, n]

#ifndef CLEAVE_ENGINE_CODEGEN_FLATTEN_PRODUCTS_H_
#define CLEAVE_ENGINE_CODEGEN_FLATTEN_PRODUCTS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with each dot_general, one of whose operands has axes of its own or
// contracted ones that do not lie one behind the other, with one such axis of
// each kind on either side. Products whose operands both lie in order, as
// movement of single axes leaves them, stay as they are. A graph with composite
// nodes comes back as it is. O(nodes).
Graph FlattenProducts(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FLATTEN_PRODUCTS_H_
