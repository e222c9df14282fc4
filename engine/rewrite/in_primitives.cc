#include "engine/rewrite/in_primitives.h"

#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<Graph> InPrimitives(const Graph& graph, const RuleSet& rules,
                                   const InPrimitivesOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph expanded,
                          Expand(graph, rules, options.expand));
  return Simplify(expanded, rules, options.simplify);
}

}  // namespace cleave
