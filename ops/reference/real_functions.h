// Functions on MPFR numbers that MPFR lacks, and the unary primitives by name.
// Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_REAL_FUNCTIONS_H_
#define CLEAVE_OPS_REFERENCE_REAL_FUNCTIONS_H_

#include <mpfr.h>

#include "absl/status/status.h"
#include "ops/primitive.h"

namespace cleave {

// Orders of polygamma beyond this one are not supported.
inline constexpr int kMaxPolygammaOrder = 65536;

// Sets `out` to a unary floating-point primitive of `x`, to the precision of
// `out` (a few units in its last place). False if `primitive` is none.
// Arguments and results at the edges are those of IEEE 754: rsqrt(-0) = -inf.
bool RealUnary(Primitive primitive, mpfr_ptr out, mpfr_srcptr x);

// The inverse of erf: +-inf at +-1, NaN beyond.
void RealErfinv(mpfr_ptr out, mpfr_srcptr x);

// The m-th derivative of digamma. NaN unless m is an integer >= 0. At a pole
// x = 0, -1, ..: +inf for odd m; for even m the limit from the side of the sign
// of a zero (-inf at +0, +inf at -0), NaN at the negative integers.
// Unimplemented for m beyond kMaxPolygammaOrder.
absl::Status RealPolygamma(mpfr_ptr out, mpfr_srcptr m, mpfr_srcptr x);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_REAL_FUNCTIONS_H_
