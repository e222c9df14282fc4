// CompareMeaning: whether what a function computes over the reals is what it
// means. The values of nodes beside exact ones (debug.h) tell rounding from the
// formula, not whether the formula is right:
//
//   over the reals `wrong_silu` (mine.rules:4) gives y[0] = 0.81757448, where
//   its spec says 0.73105858
//
// Each call in a function is compared with the spec of its op, on the exact
// values of its operands. Each tangent of a derivative, and each cotangent at
// one element, is compared with differences of the function.

#ifndef CLEAVE_TESTING_DEBUG_MEANING_H_
#define CLEAVE_TESTING_DEBUG_MEANING_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/debug/debug.h"

namespace cleave {

// `function` is the graph of calls that was asked about, and `primitives` the
// graph whose `report` is, which it became: expanded, or its derivative by Jvp
// or Vjp, expanded. Adds findings to the report: each difference of more than
// DebugOptions::ulp, and notes of what agrees or cannot be compared. Errors of
// limits (ops/budget.h) alone.
absl::Status CompareMeaning(const Graph& function, const Graph& primitives,
                            const RuleSet& rules,
                            absl::Span<const Tensor> inputs,
                            const DebugOptions& options, DebugReport& report);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_MEANING_H_
