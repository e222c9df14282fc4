// Derivatives of whole functions: gradients, Jacobians, Hessians.
//
//   Grad(loss, {true, false}, rules)         // loss(w, x) -> f32[]
//       inputs  w, x                         outputs  w.gradient
//   JacobianForward(f, 0, rules)             // f(x: f32[n]) -> (y: f32[m])
//       inputs  x                            outputs  y.jacobian: f32[m, n]
//
// Each is a graph of the same inputs, so they nest, and batch, as any other.
// Extents may be symbolic. A Jacobian has the axes of the output, then those of
// the input. Complex inputs and outputs are InvalidArgument here; Vjp and Jvp
// take them.

#ifndef CLEAVE_TRANSFORMS_VJP_DERIVATIVES_H_
#define CLEAVE_TRANSFORMS_VJP_DERIVATIVES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/transform_options.h"

namespace cleave {

// The gradients of the one output, a float scalar, in the inputs that are
// active: outputs `<input>.gradient`. InvalidArgument for another number of
// outputs, or one that is no float scalar.
absl::StatusOr<Graph> Grad(const Graph& graph, const std::vector<bool>& active,
                           const RuleSet& rules,
                           const TransformOptions& options = {});
// The same with the value in front, under its own name.
absl::StatusOr<Graph> ValueAndGrad(const Graph& graph,
                                   const std::vector<bool>& active,
                                   const RuleSet& rules,
                                   const TransformOptions& options = {});

// The Jacobians of all float outputs in one input, `<output>.jacobian`: by jvp
// along each of the input's elements, or by vjp along each of the outputs'.
// The former costs as many evaluations as the input has elements, the latter
// as the outputs have; they agree but for rounding.
absl::StatusOr<Graph> JacobianForward(const Graph& graph, int input,
                                      const RuleSet& rules,
                                      const TransformOptions& options = {});
absl::StatusOr<Graph> JacobianReverse(const Graph& graph, int input,
                                      const RuleSet& rules,
                                      const TransformOptions& options = {});

// The Hessian of a float scalar in one input, forward over reverse: one output,
// `<output>.hessian`, with the axes of the input twice.
absl::StatusOr<Graph> Hessian(const Graph& graph, int input,
                              const RuleSet& rules,
                              const TransformOptions& options = {});

// The Hessian of a float scalar in the active inputs times a vector, forward
// over reverse, in a constant number of evaluations: further inputs
// `<input>.tangent`, outputs `<input>.product`.
absl::StatusOr<Graph> HessianVectorProduct(
    const Graph& graph, const std::vector<bool>& active, const RuleSet& rules,
    const TransformOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_DERIVATIVES_H_
