// The graphs that calls mean over the reals. A body that computes with the bit
// patterns of floats has no meaning there. Where its op says how near the
// result is to the spec (`approximates`), calls of that op mean the spec:
//
//   op fast_exp(x: f32[S..]) -> f32[S..]
//     spec y = exp(x)
//     approximates within 2^-23
//     = fma(..) * bitcast_convert(shift_left(..), dtype: f32)
//
// The derivatives of an op that calls `fast_exp` are those of `exp` then, to
// any number of digits.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_OVER_REALS_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_OVER_REALS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `graph` in primitives, its calls of such ops by their specs. Where it has
// none this is Expand.
absl::StatusOr<Graph> ExpandOverReals(const Graph& graph, const RuleSet& rules);
// nullopt there.
absl::StatusOr<std::optional<Graph>> ExpandIfOtherOverReals(
    const Graph& graph, const RuleSet& rules);

// The latter of the bodies of the calls in `graph`: what a call of such an op
// computes by itself stays.
absl::StatusOr<std::optional<Graph>> ExpandBodiesOverReals(
    const Graph& graph, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_OVER_REALS_H_
