// The text of a graph, printed and parsed back:
//
//   graph (%x: f32[n]) -> (y: f32[n]) {
//     %1: f32[n] = exp(%x)
//     %2: f32[n], i64[n] = sort(%1, axis: 0, descending: false)
//     %3: f32[n] = result(%2, index: 0)
//     return y = %3
//   }

#ifndef CLEAVE_ENGINE_IR_GRAPH_TEXT_H_
#define CLEAVE_ENGINE_IR_GRAPH_TEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace cleave {

struct PrintOptions {
  bool provenance = false;  // `// softplus, activation.rules:12` behind nodes
};

// Deterministic: depends on the nodes alone. Regions are printed in braces.
std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

// Reads PrintGraph's text; InvalidArgument with line and column otherwise.
absl::StatusOr<Graph> ParseGraph(absl::string_view text,
                                 std::shared_ptr<Context> context);

// Internal if a node's type is not what inference gives, an operand does not
// precede its user, a result index is out of range, or a region is not closed.
// Composite calls are checked for operand order only: rules type them.
absl::Status Verify(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_TEXT_H_
