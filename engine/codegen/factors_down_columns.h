// Factors that a reduction over other axes than the last reads down their
// columns, one for each row of what is reduced, are stored transposed: each
// would lie in another line of the cache.
//
//   z[j, m] = sum[i](g[i, j] * (x[i, m] - z[j, m]))  // g: f32[1024, 1024]
//
//   reduce_sum(mul(broadcast_in_dim(%g, axes: [0, 1]), ..), axes: [0])
//   -> the same of transpose(%s), %s stored: transpose(%g)

#ifndef CLEAVE_ENGINE_CODEGEN_FACTORS_DOWN_COLUMNS_H_
#define CLEAVE_ENGINE_CODEGEN_FACTORS_DOWN_COLUMNS_H_

#include <cstdint>

#include "engine/ir/graph.h"

namespace cleave {

// The rows of what is reduced are as long at least, so that transposing one
// element is little beside the work on a row.
inline constexpr int64_t kLeastRowOfFactor = 32;
// Smaller factors stay in the first caches.
inline constexpr int64_t kLeastFactorBytes = 1 << 17;

// The graph with such factors stored, where all extents are known: the same
// bits. Values on the way to the reduction are computed for it alone, so only
// cheap ones are passed. O(nodes).
Graph FactorsDownColumns(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FACTORS_DOWN_COLUMNS_H_
