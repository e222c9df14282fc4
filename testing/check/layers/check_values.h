// L2, L3, L4: spec against body, over the reals and in floating point.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_VALUES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_VALUES_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// L2: both over the reals, in f64 signatures, at points in each guard cell.
// kNotIndependent where the two are one graph.
Verdict CheckReals(const OpContext& context, const PreparedCalls& prepared);

// L3: the error of the body in each dtype, within the declared accuracy.
Verdict CheckRounding(const OpContext& context, const PreparedCalls& prepared);

// L4: infinities, NaN, zeros, denormals, guard constants and their neighbours.
Verdict CheckEdges(const OpContext& context, const PreparedCalls& prepared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_VALUES_H_
