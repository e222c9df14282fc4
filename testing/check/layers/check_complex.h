// L3 and L5 at complex numbers, of ops that take them: `op mean(x: T[S..])
// where T: inexact`.
//
// The reference of the other layers has real numbers alone. Here the spec and
// the body are evaluated in c128, at numbers of moderate size away from the
// axes, and agree to a part of the largest result: a lost conjugate is found,
// an error of some ULP is not.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_COMPLEX_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_COMPLEX_H_

#include <vector>

#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "ops/dtype.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// The complex dtypes of the first variable of the `where` clause; none where
// there is no clause.
std::vector<DType> ComplexDTypes(const Item& item);

// Whether the `where` clause has no other dtypes.
bool TakesComplexAlone(const Item& item);

// Calls in c128 that the op accepts, small ones first; none where it takes no
// complex numbers. Calls of an op with a `domain` clause are left out: its
// conditions are on real numbers.
std::vector<PreparedCall> PrepareComplexCalls(const OpContext& context);

// The values of the body are those of the spec.
Verdict CheckComplexValues(const OpContext& context,
                           const std::vector<PreparedCall>& calls);

// Tangents are differences of the spec (of the body, if there is none) along a
// complex direction, and reverse mode is the adjoint of the real linear map on
// real and imaginary parts: Re <Jv, w> = Re <v, J^T w>.
Verdict CheckComplexDerivatives(const OpContext& context,
                                const std::vector<PreparedCall>& calls,
                                const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_COMPLEX_H_
