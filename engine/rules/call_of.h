// CallOf: the call that a signature stands for, made anew.
//
//   CallOf(rules, RuleSet::SignatureOf(graph, node))

#ifndef CLEAVE_ENGINE_RULES_CALL_OF_H_
#define CLEAVE_ENGINE_RULES_CALL_OF_H_

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// The call of a signature's op alone, checked and completed as RuleSet::Call
// does: a graph of one composite node whose inputs x0, x1, .. are its operands
// and whose outputs are its present results, by their names. Errors as of Call;
// NotFound for an op that is not declared; InvalidArgument where the operands
// are not those that the op takes.
absl::StatusOr<Graph> CallOf(const RuleSet& rules, const Signature& signature);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CALL_OF_H_
