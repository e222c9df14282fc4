// Vjp: reverse-mode differentiation, and Linearize, its forward half.
//
//   Vjp(f, {true, false}, rules)
//       inputs  x, w, y.cotangent        outputs  y, x.cotangent

#ifndef CLEAVE_TRANSFORMS_VJP_VJP_H_
#define CLEAVE_TRANSFORMS_VJP_VJP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/transform_options.h"

namespace cleave {

struct VjpResult {
  Graph graph;
  // Per active input, in order: whether an output that has a cotangent depends
  // on it. Where none does, its cotangent is a symbolic zero.
  std::vector<bool> depends;
};

// `active[i]`: the cotangent of input i is asked for (inexact inputs only:
// InvalidArgument otherwise). Inputs: those of the graph, then a
// `<name>.cotangent` for each inexact output. Outputs: those of the graph, then
// a `<name>.cotangent` for each active input, zeros where it is symbolically
// zero. Where a nested transform made that name before, `.cotangent` is
// repeated. An op's `vjp` override is used where it has one; else the transpose
// of its `jvp` override; else what follows from its body.
// Unimplemented("impossible: ...") where a cotangent reaches what has no
// derivative; FailedPrecondition for rules without transforms
// (LoadOptions::derive).
absl::StatusOr<VjpResult> Vjp(const Graph& graph,
                              const std::vector<bool>& active,
                              const RuleSet& rules,
                              const TransformOptions& options = {});

// A function at a point: what it gives there, and its derivative there as a
// linear function of the tangents, which may be applied, or transposed, many
// times.
struct Linearization {
  // Inputs: those of the graph. Outputs: those of the graph, then the residuals
  // that `linear` needs.
  Graph primal;
  // Inputs: `<name>.tangent` for each active input, then the residuals.
  // Outputs: `<name>.tangent` for each inexact output.
  Graph linear;
  int residuals = 0;
};

// jvp, then partial evaluation: `jvp` overrides are used, `vjp` ones are not.
// Errors as of Jvp.
absl::StatusOr<Linearization> Linearize(const Graph& graph,
                                        const std::vector<bool>& active,
                                        const RuleSet& rules,
                                        const TransformOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_VJP_H_
