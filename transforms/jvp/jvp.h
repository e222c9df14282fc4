// Jvp: forward-mode differentiation.
//
//   Jvp(f, {true, false}, rules)
//       inputs  x, w, x.tangent      outputs  y, y.tangent

#ifndef CLEAVE_TRANSFORMS_JVP_JVP_H_
#define CLEAVE_TRANSFORMS_JVP_JVP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/transform_options.h"

namespace cleave {

struct JvpResult {
  Graph graph;
  // Per output of the primal graph: whether it has a tangent output. False for
  // discrete outputs, and for those that no active input reaches (symbolic
  // zeros) unless `instantiate_zeros`.
  std::vector<bool> has_tangent;
};

struct JvpOptions {
  // Gives every inexact output a tangent, zeros where it is symbolically zero.
  bool instantiate_zeros = true;
  TransformOptions transform = {};
};

// `active[i]`: input i has a tangent, an input named `<name>.tangent` behind
// all primals (inexact inputs only: InvalidArgument otherwise). The outputs are
// the primal ones, then the tangents of those that have one, `<name>.tangent`.
// Where a nested jvp made that name before, `.tangent` is repeated.
// Unimplemented("impossible: ...") where a reached derivative has no rule;
// FailedPrecondition for rules without transforms (LoadOptions::derive).
absl::StatusOr<JvpResult> Jvp(const Graph& graph,
                              const std::vector<bool>& active,
                              const RuleSet& rules,
                              const JvpOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_JVP_JVP_H_
