// TangentGraph: the walk of jvp, which copies a graph with its tangents beside
// it. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_JVP_TANGENT_GRAPH_H_
#define CLEAVE_TRANSFORMS_JVP_TANGENT_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"

namespace cleave {

struct TangentGraphResult {
  std::vector<Value> outputs;
  std::vector<Value> tangents;  // per output; invalid: a symbolic zero
};

// Copies `graph` into `builder` with `primals` for its inputs; `tangents` are
// theirs, invalid where an input is not active. Nodes that depend on a tangent
// are linear in the tangents, loops and branches excepted, which compute both.
absl::StatusOr<TangentGraphResult> TangentGraph(
    GraphBuilder& builder, const Graph& graph, absl::Span<const Value> primals,
    absl::Span<const Value> tangents, RuleTable& rules);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_JVP_TANGENT_GRAPH_H_
