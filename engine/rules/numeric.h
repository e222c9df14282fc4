// A pointwise primitive as arithmetic, from its `numeric` item.

#ifndef CLEAVE_ENGINE_RULES_NUMERIC_H_
#define CLEAVE_ENGINE_RULES_NUMERIC_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/ir/graph.h"
#include "engine/rules/lower_term.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Operations of a numeric; more are ResourceExhausted, as are ops nested in it
// deeper than kMaxInliningDepth.
inline constexpr int kMaxNumericNodes = 10000;

// The body for one element, one level deep: inputs are the operands, 0-d of the
// declared dtypes; the output is the result; calls of ops stay calls.
// InvalidArgument where the body does not type as the primitive does.
absl::StatusOr<NumericBody> CompileNumeric(const Library& library,
                                           const Item& item,
                                           std::shared_ptr<Context> context,
                                           const Callees& callees);

// `graph` of 0-d values with calls of ops replaced by their bodies and
// primitives by their numerics, throughout. InvalidArgument for what is not
// pointwise.
absl::StatusOr<Graph> FlattenNumeric(const Graph& graph, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_NUMERIC_H_
