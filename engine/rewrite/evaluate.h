// Evaluate: the values of a graph of calls, as a `fn` or a transform gives it.
//
//   Graph f = *rules->Function("f");       // y = softplus(x), a call
//   absl::StatusOr<std::vector<Tensor>> y = Evaluate(f, *rules, {x});
//
// It is Expand and Interpret: for values that are needed once, or to compare
// with. A program that runs a graph often compiles it (engine/runtime).

#ifndef CLEAVE_ENGINE_REWRITE_EVALUATE_H_
#define CLEAVE_ENGINE_REWRITE_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"

namespace cleave {

// One tensor per output. Calls of the ops that have a host kernel in `options`
// are run by it, whether the op has a body or not; all others are expanded.
// Errors of Expand and of Interpret: InvalidArgument for a call of an op that
// has neither a body nor a host kernel.
absl::StatusOr<std::vector<Tensor>> Evaluate(
    const Graph& graph, const RuleSet& rules, absl::Span<const Tensor> inputs,
    const InterpretOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_EVALUATE_H_
