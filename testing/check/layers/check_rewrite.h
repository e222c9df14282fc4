// `rewrite` items: whether both sides are the same, bit for bit, or over the
// reals.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_REWRITE_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_REWRITE_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Each takes every choice of dtypes at which the sides type; `context.item` is
// the rewrite, which is looked at alone: no other rewrite is applied.
//
// How many choices there are.
Verdict CheckRewriteTypes(const OpContext& context);
// A `real` rewrite at random points, in 400 bits, wherever the left side has a
// finite value. Another one is not checked here: its bits are compared.
Verdict CheckRewriteReals(const OpContext& context);
// Another rewrite: the same bits, NaN being one value; at all values of a
// single operand of 16 bits or fewer, else at random ones.
Verdict CheckRewriteBits(const OpContext& context);
// The same at special values of each operand, crossed.
Verdict CheckRewriteEdges(const OpContext& context);
// Derivatives of both sides over the reals, at random points and at zeros and
// ties, wherever that of the left side is finite: a graph may be simplified
// before it is differentiated.
Verdict CheckRewriteJvp(const OpContext& context);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_REWRITE_H_
