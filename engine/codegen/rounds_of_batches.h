// Products of matrices that lead to each other, some matrices at a time, or
// some rows of one: what lies between them, the scores of an attention, say,
// takes memory for one round only.
//
//   %1 = dot_general(%q, %k, batch_a: [0, 1], ..)      // [b, h, l, s]
//   %2 = softmax of the rows of %1
//   %3 = dot_general(%2, %v, batch_a: [0, 1], ..)      // [b, h, l, e]
//   -> scan over b h / c slices of %q, %k and %v, of c matrices each, whose
//      body has the three nodes; where b h = 1, a scan over slices of %q, of
//      rows, each with all of %k and %v
//
// Rounds do not read each other, and threads share them; but for products that
// add up rows, as gradients do: those take what the rounds before made.

#ifndef CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_
#define CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_

#include <cstdint>

#include "engine/ir/graph.h"

namespace cleave {

// The most memory that a value between products of one round is to take, and
// the least in all for which there are rounds, in bytes.
struct RoundBytes {
  int64_t most;
  int64_t least_in_all;
};
// Rows are as many as a product keeps its registers busy with; a round that has
// them is not cut again.
inline constexpr RoundBytes kRoundsOfMatrices = {int64_t{1} << 20,
                                                 int64_t{4} << 20};
inline constexpr RoundBytes kRoundsOfRows = {int64_t{2} << 20,
                                             int64_t{8} << 20};
// The same of rows where what all rounds read as a whole is small: at most
// kSmallMatrices for each product between the others. Then all of a round stays
// in the second cache.
inline constexpr RoundBytes kRoundsBesideSmall = {int64_t{1} << 19,
                                                  int64_t{2} << 20};
inline constexpr int64_t kSmallMatrices = int64_t{1} << 20;
// The most bytes of each such matrix.
inline constexpr int64_t kMostReadAsWhole = int64_t{4} << 20;

// The fewest rows of a round.
inline constexpr int64_t kLeastRows = 32;

// The graph with products of known extents in rounds: contractions of the same
// batch, or of the same rows of one matrix, and what lies between them, without
// a step that mixes its elements, where a value that nothing else reads takes
// that memory. The right operands of rows are at most kMostReadAsWhole: each
// round reads them. All values stay the same, but for products that add up
// rows, whose sums are added round by round. A graph with composite nodes comes
// back as it is. O(nodes) for each set of such nodes.
Graph RoundsOfBatches(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_ROUNDS_OF_BATCHES_H_
