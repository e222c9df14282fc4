// Graphs as rule text: what a program found, written as a person would have.
//
//   WrittenOp op = *GraphToOp(graph, "softmax_jvp", {"The tangent."}, rules);
//   // /// The tangent.
//   // op softmax_jvp(x: f32[n, m], dx: f32[n, m]) -> f32[n, m]
//   // {
//   //   let v0 = softmax(x, axis: 1)
//   //   ...
//
// Pointwise nodes become operators and calls, those that index become index
// notation, loops and branches regions, calls of ops calls. The text may
// compile to another graph, which computes the same, bit by bit, with one
// exception: a `scatter` that adds to an operand is rounded once more.

#ifndef CLEAVE_ENGINE_RULE_TEXT_GRAPH_TO_RULE_H_
#define CLEAVE_ENGINE_RULE_TEXT_GRAPH_TO_RULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A line of an op beside its result, in the names of its inputs: `jvp x = ..`.
struct OverrideLine {
  std::string head;  // "jvp x", "vjp (dy)", "vmap (x, w@_)"
  std::string body;  // an expression
};

struct WrittenOp {
  std::string text;  // canonical, one item
  // The inputs of the graph that it takes, by place: those that are read.
  std::vector<int> inputs;
  std::vector<std::string> input_names;  // of these
  // Extents that no input has for an axis of its own: attributes of type `dim`;
  // of a `def`, all that it names.
  std::vector<std::string> sizes;
  std::vector<std::string> results;
};

struct GraphToOpOptions {
  std::vector<std::string> docs;
  // A `def` with a parameter for each extent that its body names, instead of an
  // op: it has no types, and the guards are its caller's.
  bool is_def = false;
  std::vector<OverrideLine> overrides;
  // Takes every input, so that overrides can name them; Unimplemented where the
  // graph does not read one.
  bool keep_inputs = false;
};

// An op named `name` with the inputs and outputs of `graph`, at its dtypes and
// extents. Names that rules may not have are changed: `S.0` to `S_0`. Guards
// become errors. Unimplemented for what rules cannot say: an extent known at
// run time only, a call of a host's op, `scatter` in mode "set", an absent
// element of a list, a condition of `while` that takes more than operators.
// InvalidArgument for a `name` that no op may have, and a graph without
// outputs.
absl::StatusOr<WrittenOp> GraphToOp(const Graph& graph, absl::string_view name,
                                    const RuleSet& rules,
                                    const GraphToOpOptions& options = {});

// The name that GraphToOp gives to an input, output or extent.
std::string RuleName(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULE_TEXT_GRAPH_TO_RULE_H_
