// InPrimitives: a graph of calls as the graph of primitives that is printed,
// run and compiled.
//
//   CLEAVE_ASSIGN_OR_RETURN(Graph primitives, InPrimitives(graph, rules));

#ifndef CLEAVE_ENGINE_REWRITE_IN_PRIMITIVES_H_
#define CLEAVE_ENGINE_REWRITE_IN_PRIMITIVES_H_

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct InPrimitivesOptions {
  ExpandOptions expand;
  SimplifyOptions simplify;
};

// Expanded, then simplified: bodies are written to be read, and what one leaves
// for another (a broadcast of a broadcast, a product with 1) shows only once
// they stand beside each other. Calls that `options` keeps stay calls. Errors
// of Expand. Linear in the size of what was expanded.
absl::StatusOr<Graph> InPrimitives(const Graph& graph, const RuleSet& rules,
                                   const InPrimitivesOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_IN_PRIMITIVES_H_
