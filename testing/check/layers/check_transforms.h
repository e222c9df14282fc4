// L5: vmap against the stacked loop, jvp against derivatives over the reals,
// vjp against jvp.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_TRANSFORMS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_TRANSFORMS_H_

#include "engine/rules/rule_set.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Bitwise, over distinct slices, for subsets of the operands and batches of 0,
// 1 and 3. `concrete` has concrete shapes.
Verdict CheckVmap(const OpContext& context, const PreparedCalls& concrete,
                  const RuleSet& rules);

// The slopes of a pointwise op in ULP, in forward and in reverse mode, at the
// points of `prepared`; the tangents of the others, in f64 at `concrete`,
// against differences of the spec (of the body, if there is none). Tangents are
// linear; jvp of vmap is vmap of jvp.
Verdict CheckJvp(const OpContext& context, const PreparedCalls& prepared,
                 const PreparedCalls& concrete, const RuleSet& rules);

// The laws of reverse mode and of second derivatives, in f64 at `concrete`:
// <Jv, w> = <v, J^T w>; jvp of jvp is the derivative of jvp and symmetric, and
// jvp of vjp, vjp of jvp and vjp of vjp agree with it.
Verdict CheckVjp(const OpContext& context, const PreparedCalls& concrete,
                 const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_TRANSFORMS_H_
