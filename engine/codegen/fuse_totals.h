// FuseTotals: one kernel for a reduction of reductions, such as a mean over the
// losses of rows.

#ifndef CLEAVE_ENGINE_CODEGEN_FUSE_TOTALS_H_
#define CLEAVE_ENGINE_CODEGEN_FUSE_TOTALS_H_

#include <vector>

#include "engine/codegen/fusion.h"
#include "engine/ir/graph.h"

namespace cleave {

// Groups whose nodes cost more than this together spill their registers and
// compile slowly.
inline constexpr int kMaxGroupCost = 384;

// The cost of an element of all these nodes.
int CostOfNodes(const Graph& graph, const std::vector<Value>& nodes);

// Makes one group of a group that makes values per row (or column) and those
// that reduce all of them, to scalars alone, where nobody else reads the rows.
// The rows are stored between the two, for the kernel itself.
FusionPlan FuseTotals(const Graph& graph, FusionPlan plan);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FUSE_TOTALS_H_
