#include "engine/rewrite/evaluate.h"

#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph,
                                             const RuleSet& rules,
                                             absl::Span<const Tensor> inputs,
                                             const InterpretOptions& options) {
  ExpandOptions expand;
  expand.preserve = options.host_kernels.Ops();
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives, Expand(graph, rules, expand));
  return Interpret(primitives, inputs, options);
}

}  // namespace cleave
