// CotangentGraph: the walk of reverse mode, which copies a graph and carries
// its cotangents back through it. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_COTANGENT_GRAPH_H_
#define CLEAVE_TRANSFORMS_VJP_COTANGENT_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"
#include "transforms/vjp/guarded.h"

namespace cleave {

struct CotangentGraphResult {
  std::vector<Value> outputs;
  // Per input; invalid: a symbolic zero, or not active.
  std::vector<Guarded> cotangents;
};

// Copies `graph` into `builder` with `primals` for its inputs; `cotangents` are
// those of its outputs, invalid for symbolic zeros. `active` are the inputs
// whose cotangents are asked for. Unimplemented("impossible: ...") where a
// cotangent reaches a node that has no derivative.
absl::StatusOr<CotangentGraphResult> CotangentGraph(
    GraphBuilder& builder, const Graph& graph, absl::Span<const Value> primals,
    const std::vector<bool>& active, absl::Span<const Value> cotangents,
    RuleTable& rules);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_COTANGENT_GRAPH_H_
