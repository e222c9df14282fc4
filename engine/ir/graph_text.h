// The text of a graph, printed and parsed back:
//
//   graph (%x: f32[n]) -> (y: f32[n]) {
//     %1: f32[n] = exp(%x)
//     %2: f32[n], i64[n] = sort(%1, axis: 0, descending: false)
//     %3: f32[n] = result(%2, index: 0)
//     guard n >= 2: "why"
//     return y = %3
//   }
//
// Inputs go by their names, other nodes by their place. Attributes are written
//   none  true  2*n + 1  0.5  1.0  "text"  f32  [1, n]  (a = 1)  graph (..)
//   {..}
// where a real number has a point, an exponent, a `/` or a `#`, or is `inf`,
// `-inf` or `nan`; a dim that would read as another value is `dim(nan)`.
// Names that are not [A-Za-z_][A-Za-z0-9_.@]* are quoted: `%"x y"`. Guards
// are sorted. `//` begins a comment where a line of the graph may begin or has
// ended.

#ifndef CLEAVE_ENGINE_IR_GRAPH_TEXT_H_
#define CLEAVE_ENGINE_IR_GRAPH_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "ops/static_value.h"

namespace cleave {

struct PrintOptions {
  bool provenance = false;  // `// softplus, activation.rules:12` behind nodes
};

// Levels of regions and lists within each other that ParseGraph reads.
inline constexpr int kMaxTextNesting = 64;

// Deterministic: depends on the nodes alone, not on ids of the context.
std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

// An attribute's value as PrintGraph writes it.
std::string PrintAttribute(const StaticValue& value);

// A guard as PrintGraph writes it: `n >= 2: "why"`.
std::string PrintGuard(const ShapeGuard& guard);

// Reads PrintGraph's text. InvalidArgument, with line and column, where it is
// malformed, a name is not defined before its use, or a primitive's operands
// and attributes do not give the type that is written. Nodes that are equal
// become one; the guards of the primitives join those written.
absl::StatusOr<Graph> ParseGraph(absl::string_view text,
                                 std::shared_ptr<Context> context);

// The value of an attribute that owns `graph`: the body of a scan or a cond.
// The region borrows the graph's context, whose tables it becomes a part of;
// the builder of the node owns it. Using the region after the context is gone
// is a CHECK; *region.graph copied is a graph that owns the context again.
Region MakeRegion(Graph graph);
// The region of what the builder builds.
absl::StatusOr<Region> BuildRegion(GraphBuilder builder,
                                   std::vector<NamedValue> outputs);

// Internal if a node's type is not what inference gives, an operand does not
// precede its user, a result index is out of range, a region is not closed, of
// another context or not made by MakeRegion, or the guards of a node are
// missing. Composite calls are checked for operand order only: rules type them.
absl::Status Verify(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_TEXT_H_
