// Products of many matrices that lead to each other, some matrices at a time:
// what lies between them, the scores of an attention, say, takes memory for one
// round only.
//
//   %1 = dot_general(%q, %k, batch_a: [0, 1], ..)      // [b, h, l, s]
//   %2 = softmax of the rows of %1
//   %3 = dot_general(%2, %v, batch_a: [0, 1], ..)      // [b, h, l, e]
//   -> scan over b h / c slices of %q, %k and %v, of c matrices each, whose
//      body has the three nodes

#ifndef CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_
#define CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_

#include <cstdint>

#include "engine/ir/graph.h"

namespace cleave {

// The most memory that a value between products of one round is to take, and
// the least in all for which there are rounds, in bytes.
inline constexpr int64_t kRoundBytes = int64_t{4} << 20;
inline constexpr int64_t kLeastBytesInRounds = int64_t{16} << 20;

// The graph with batches of products of known extents in rounds: contractions
// of the same batch and what lies between them, without a step that mixes its
// elements, where a value that nothing else reads takes kLeastBytesInRounds.
// All values stay the same. A graph with composite nodes comes back as it is.
// O(nodes) for each set of such nodes.
Graph RoundsOfBatches(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_
