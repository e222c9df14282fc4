// Pointwise functions of intervals. Internal to ops.
//
// The value at a point is that of MPFR, rounded once, and the neighbours of
// what was rounded. Over bounds a rising or falling function has its values at
// the ends; sums, products, quotients, sines and cosines are those of MPFI.
// erfinv, polygamma, lgamma between its ends and sigmoid are enclosed by what
// encloses their parts: their own errors are proved, not estimated.

#ifndef CLEAVE_OPS_REFERENCE_INTERVAL_FUNCTIONS_H_
#define CLEAVE_OPS_REFERENCE_INTERVAL_FUNCTIONS_H_

#include "absl/status/status.h"
#include "ops/primitive.h"
#include "ops/reference/interval.h"

namespace cleave {

// `out` encloses the result to the precision that it has. It may be an operand.
void AddIntervals(RealInterval& out, const RealInterval& a,
                  const RealInterval& b);
void MultiplyIntervals(RealInterval& out, const RealInterval& a,
                       const RealInterval& b);
void DivideIntervals(RealInterval& out, const RealInterval& a,
                     const RealInterval& b);
// a * b + c.
void FmaIntervals(RealInterval& out, const RealInterval& a,
                  const RealInterval& b, const RealInterval& c);
// x 2^exponent.
void ScaleInterval(RealInterval& out, const RealInterval& x, int64_t exponent);
// The greater (the lesser) of two; NaN wins.
void MaxOfIntervals(RealInterval& out, bool max, const RealInterval& a,
                    const RealInterval& b);

// Sets `out`, another one than `x`, to a unary floating-point primitive of `x`.
// False if `primitive` is none.
bool UnaryInterval(Primitive primitive, RealInterval& out,
                   const RealInterval& x);

// The same for binary ones. Unimplemented for orders of polygamma beyond
// kMaxPolygammaOrder, Internal for a primitive that is none.
absl::Status BinaryInterval(Primitive primitive, RealInterval& out,
                            const RealInterval& a, const RealInterval& b);

// polygamma: an order m and an argument.
absl::Status PolygammaInterval(RealInterval& out, const RealInterval& m,
                               const RealInterval& x);
void ErfinvInterval(RealInterval& out, const RealInterval& x);
void LgammaInterval(RealInterval& out, const RealInterval& x);
// x^n; x holds no zero where n < 0.
void PowerInterval(RealInterval& out, const RealInterval& x, long n);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_INTERVAL_FUNCTIONS_H_
