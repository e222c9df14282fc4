// CheckCalls: whether the calls in a graph that somebody wrote are calls of
// ops, as RuleSet::Call would have made them.
//
//   CLEAVE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, rules.context()));
//   CLEAVE_RETURN_IF_ERROR(CheckCalls(graph, rules));
//   // `softmax`: its result is f32[n], not f32[m]
//
// ParseGraph types primitives alone: a call's types are taken as written.
// Transforms and kernels rest on them.

#ifndef CLEAVE_ENGINE_RULES_CHECK_CALLS_H_
#define CLEAVE_ENGINE_RULES_CHECK_CALLS_H_

#include "absl/status/status.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `graph` is of the rules' context. Regions are looked at, too. NotFound for an
// op that is not declared; InvalidArgument where a call's operands, attributes
// or results are not those of its op. Bodies of derived calls ("vmap:f") are
// compiled.
absl::Status CheckCalls(const Graph& graph, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECK_CALLS_H_
