// Sums, products and quotients of intervals, and what their functions share.
// Internal to interval.h.

#ifndef CLEAVE_TESTING_CHECK_INTERVAL_ARITHMETIC_H_
#define CLEAVE_TESTING_CHECK_INTERVAL_ARITHMETIC_H_

#include <limits>

#include "testing/check/interval.h"

// Its functions have the names of primitives.
namespace cleave::interval_arithmetic {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Twice half a unit, as the sum that widens rounds, too.
inline constexpr double kArithmeticError = 0x1p-52;
// 16 units in the last place of the C library's functions.
inline constexpr double kFunctionError = 16 * 0x1p-52;

bool IsInfinite(const Interval& x);
bool IsZero(const Interval& x);

// Below and above x by its part `error`. An endpoint that overflowed is of
// numbers that are finite.
double Down(double x, double error);
double Up(double x, double error);
// [low, high] exp(scale), widened; unknown where one of them is NaN.
Interval Widened(double low, double high, double error, double scale = 0);
// The part of x, without a scale, that lies in [least, most].
Interval Clamped(const Interval& x, double least, double most);
// The number, or NaN: what IEEE arithmetic gives for infinities and zeros, over
// the reals, too.
Interval Exactly(double value);
// Whether one of them is unknown or NaN, so that the result is.
bool TakeStates(const Interval& a, const Interval& b, Interval& result);
// exp(x) lies between.
struct Ends {
  double low;
  double high;
};
Ends ExpEnds(double x);

Interval Neg(const Interval& x);
Interval Abs(const Interval& x);
Interval Add(const Interval& a, const Interval& b);
Interval Sub(const Interval& a, const Interval& b);
Interval Mul(const Interval& a, const Interval& b);
Interval Div(const Interval& a, const Interval& b);

}  // namespace cleave::interval_arithmetic

#endif  // CLEAVE_TESTING_CHECK_INTERVAL_ARITHMETIC_H_
