// Sums, products and quotients of intervals, and what their functions share.
// Internal to double_interval.h.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_ARITHMETIC_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_ARITHMETIC_H_

#include <limits>

#include "testing/check/reference/double_interval.h"

// Its functions have the names of primitives.
namespace cleave::interval_arithmetic {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Twice half a unit, as the sum that widens rounds, too.
inline constexpr double kArithmeticError = 0x1p-52;
// 16 units in the last place of the C library's functions.
inline constexpr double kFunctionError = 16 * 0x1p-52;

bool IsInfinite(const DoubleInterval& x);
bool IsZero(const DoubleInterval& x);

// Below and above x by its part `error`. An endpoint that overflowed is of
// numbers that are finite.
double Down(double x, double error);
double Up(double x, double error);
// [low, high] exp(scale), widened; unknown where one of them is NaN.
DoubleInterval Widened(double low, double high, double error, double scale = 0);
// The part of x, without a scale, that lies in [least, most].
DoubleInterval Clamped(const DoubleInterval& x, double least, double most);
// The number, or NaN: what IEEE arithmetic gives for infinities and zeros, over
// the reals, too.
DoubleInterval Exactly(double value);
// Whether one of them is unknown or NaN, so that the result is.
bool TakeStates(const DoubleInterval& a, const DoubleInterval& b,
                DoubleInterval& result);
// exp(x) lies between.
struct Ends {
  double low;
  double high;
};
Ends ExpEnds(double x);

DoubleInterval Neg(const DoubleInterval& x);
DoubleInterval Abs(const DoubleInterval& x);
DoubleInterval Add(const DoubleInterval& a, const DoubleInterval& b);
DoubleInterval Sub(const DoubleInterval& a, const DoubleInterval& b);
DoubleInterval Mul(const DoubleInterval& a, const DoubleInterval& b);
DoubleInterval Div(const DoubleInterval& a, const DoubleInterval& b);

}  // namespace cleave::interval_arithmetic

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_ARITHMETIC_H_
