// Contractions that read each element of one operand once are sums: they run at
// the speed of memory, and share kernels with what they read, which a
// contraction reads from memory.
//
//   dot_general(%a, %b, batch_a: [0], batch_b: [0], contract_a: [1], ...)
//   -> reduce_sum(mul(%a, %b), axes: [1])
//
//   dot_general(%matrix, %vector, contract_a: [1], contract_b: [0], ...)
//   -> reduce_sum(mul(%matrix, broadcast_in_dim(%vector, axes: [1])), axes:
//   [1])
//
// So are those of one term for each element.
//
//   dot_general(%a, %b, ..)    // [b, m, 1], [b, n, 1]
//   -> add(mul(broadcast_in_dim(%a), broadcast_in_dim(%b)), 0)

#ifndef CLEAVE_ENGINE_CODEGEN_SUMS_OF_PRODUCTS_H_
#define CLEAVE_ENGINE_CODEGEN_SUMS_OF_PRODUCTS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with every dot_general as a sum of products, one of whose operands
// has no axes of its own but such as are known to have extent 1, or whose
// contracted axes are; sums of f16 and bf16 are kept in f32 and rounded once,
// as a contraction's are. A graph with composite nodes comes back as it is.
Graph SumsOfProducts(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SUMS_OF_PRODUCTS_H_
