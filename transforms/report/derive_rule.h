// DeriveRule: what a transform derives, as rule text.
//
//   *DeriveRule(graph, "softmax", Transform::kJvp, {true}, rules)
//
//   language 1
//
//   /// The tangent of softmax along x.
//   def softmax_jvp(x, dx)
//   { .. }
//
//   /// softmax, with the rule above for an override.
//   op softmax_with_jvp(x: f64[n]) -> f64[n]
//   {
//     softmax(x, axis: 0)
//     jvp x = softmax_jvp(x, dx)
//   }
//
// The text loads, and the checker compares the override with the derivative,
// or the stack of single calls, of what it stands in.

#ifndef CLEAVE_TRANSFORMS_REPORT_DERIVE_RULE_H_
#define CLEAVE_TRANSFORMS_REPORT_DERIVE_RULE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/report/transform.h"

namespace cleave {

// The rule of `transform` for a function, at its dtypes and extents: `inputs`
// are those that are active, or batched. jvp is one def for each active input,
// as `jvp` lines are; vjp one with the cotangents of all of them; vmap one with
// the batch in front. `name` is what the function is called; a call of a host's
// op is written as its body is, since rules do not call it. Errors of the
// transform, and of GraphToOp for what rules cannot say.
absl::StatusOr<std::string> DeriveRule(const Graph& graph,
                                       absl::string_view name,
                                       Transform transform,
                                       const std::vector<bool>& inputs,
                                       const RuleSet& rules);

// The inputs of a call that are active, or batched.
using ChooseInputs =
    std::function<absl::StatusOr<std::vector<bool>>(const Graph& call)>;

// The rule of an op, at the first call that has one: of those that stand for
// all calls, with sizes for variables, or of those that a search finds; in f64
// where the op takes it. Errors
// of the first call where none has one; NotFound for no op.
absl::StatusOr<std::string> DeriveOpRule(absl::string_view op,
                                         Transform transform,
                                         const ChooseInputs& choose,
                                         const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_REPORT_DERIVE_RULE_H_
