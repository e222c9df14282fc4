#include "testing/check/reference/double_interval_arithmetic.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "testing/check/reference/double_interval_functions.h"

namespace cleave {
namespace interval_arithmetic {
namespace {

constexpr double kLeast = std::numeric_limits<double>::denorm_min();
// A product below it may have lost bits, which fma does not show then.
constexpr double kSafeProduct = 0x1p-900;

bool ContainsZero(const DoubleInterval& x) { return x.low <= 0 && x.high >= 0; }

// a + b where no bit of it is lost.
bool AddExactly(double a, double b, double& sum) {
  sum = a + b;
  const double part = sum - a;
  return (a - (sum - part)) + (b - part) == 0;
}

// 0 where one of them is: an infinite endpoint is of finite numbers.
double Product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

Ends ProductOf(const Ends& a, const Ends& b) {
  const double corners[] = {Product(a.low, b.low), Product(a.low, b.high),
                            Product(a.high, b.low), Product(a.high, b.high)};
  return {*std::min_element(corners, corners + 4),
          *std::max_element(corners, corners + 4)};
}

// a + b for numbers with a scale.
DoubleInterval AddScaled(const DoubleInterval& a, const DoubleInterval& b) {
  const DoubleInterval& big = a.scale >= b.scale ? a : b;
  const DoubleInterval& small = a.scale >= b.scale ? b : a;
  double apart = 0;
  if (!AddExactly(small.scale, -big.scale, apart))
    return DoubleInterval::Unknown();
  const Ends part = apart == 0
                        ? Ends{small.low, small.high}
                        : ProductOf({small.low, small.high}, ExpEnds(apart));
  return Widened(big.low + Down(part.low, kArithmeticError),
                 big.high + Up(part.high, kArithmeticError), kArithmeticError,
                 big.scale);
}

// The product or quotient `ends` with the scale a + b.
DoubleInterval WithScale(const Ends& ends, double a, double b) {
  double scale = 0;
  if (!AddExactly(a, b, scale) || !std::isfinite(ends.low) ||
      !std::isfinite(ends.high)) {
    return DoubleInterval::Unknown();
  }
  return Widened(ends.low, ends.high, kArithmeticError, scale);
}

}  // namespace

bool IsInfinite(const DoubleInterval& x) {
  return x.IsPoint() && std::isinf(x.low);
}
bool IsZero(const DoubleInterval& x) { return x.low == 0 && x.high == 0; }

// An endpoint that overflowed is of numbers that are finite.
double Down(double x, double error) {
  if (x == kInfinity) return DBL_MAX;
  return x - (std::abs(x) * error + kLeast);
}
double Up(double x, double error) {
  if (x == -kInfinity) return -DBL_MAX;
  return x + (std::abs(x) * error + kLeast);
}

DoubleInterval Widened(double low, double high, double error, double scale) {
  if (std::isnan(low) || std::isnan(high)) return DoubleInterval::Unknown();
  return {Down(low, error), Up(high, error), DoubleInterval::State::kReal,
          scale};
}

// Numbers between, the endpoints among them where a function attains them.
DoubleInterval Clamped(const DoubleInterval& x, double least, double most) {
  if (!x.IsReal()) return x;
  return {std::max(x.low, least), std::min(x.high, most)};
}

// A result of IEEE arithmetic on infinities and zeros: it holds over the reals,
// too.
DoubleInterval Exactly(double value) {
  return std::isnan(value) ? DoubleInterval::NaN() : DoubleInterval::Of(value);
}

// The operands of a sum, a product, .. that none of the rules below is for.
// True where `result` is set.
bool TakeStates(const DoubleInterval& a, const DoubleInterval& b,
                DoubleInterval& result) {
  if (a.state == DoubleInterval::State::kUnknown ||
      b.state == DoubleInterval::State::kUnknown) {
    result = DoubleInterval::Unknown();
    return true;
  }
  if (a.IsReal() && b.IsReal()) return false;
  result = DoubleInterval::NaN();
  return true;
}

DoubleInterval Neg(const DoubleInterval& x) {
  return x.IsReal() ? DoubleInterval{-x.high, -x.low, x.state, x.scale} : x;
}

DoubleInterval Abs(const DoubleInterval& x) {
  if (!x.IsReal() || x.low > 0) return x;
  if (x.high <= 0) return {std::abs(x.high), std::abs(x.low), x.state, x.scale};
  return {0, std::max(-x.low, x.high), x.state, x.scale};
}

// exp(x), between doubles.
Ends ExpEnds(double x) {
  const double value = std::exp(x);
  return {std::max(Down(value, kFunctionError), 0.0),
          Up(value, kFunctionError)};
}

DoubleInterval Add(const DoubleInterval& a, const DoubleInterval& b) {
  DoubleInterval result;
  if (TakeStates(a, b, result)) return result;
  if (IsInfinite(a) || IsInfinite(b)) {
    return Exactly((IsInfinite(a) ? a.low : 0) + (IsInfinite(b) ? b.low : 0));
  }
  if (a.scale != 0 || b.scale != 0) return AddScaled(a, b);
  double sum = 0;
  if (a.IsPoint() && b.IsPoint() && AddExactly(a.low, b.low, sum)) {
    return DoubleInterval::Of(sum);
  }
  return Widened(a.low + b.low, a.high + b.high, kArithmeticError);
}

DoubleInterval Sub(const DoubleInterval& a, const DoubleInterval& b) {
  return Add(a, Neg(b));
}

DoubleInterval Mul(const DoubleInterval& a, const DoubleInterval& b) {
  DoubleInterval result;
  if (TakeStates(a, b, result)) return result;
  if (IsInfinite(a) || IsInfinite(b)) {
    const DoubleInterval& infinite = IsInfinite(a) ? a : b;
    const DoubleInterval& other = IsInfinite(a) ? b : a;
    if (IsZero(other)) return DoubleInterval::NaN();
    if (other.low > 0) return infinite;
    if (other.high < 0) return Neg(infinite);
    return DoubleInterval::Unknown();
  }
  if (a.scale != 0 || b.scale != 0) {
    const DoubleInterval& other = a.scale != 0 ? b : a;
    const DoubleInterval& scaled = a.scale != 0 ? a : b;
    if (IsZero(other) && !ContainsZero(scaled)) {
      return other.IsPoint() ? DoubleInterval::Of(other.low * scaled.low)
                             : DoubleInterval::Unknown();
    }
    return WithScale(ProductOf({a.low, a.high}, {b.low, b.high}), a.scale,
                     b.scale);
  }
  if (a.IsPoint() && b.IsPoint()) {
    const double product = a.low * b.low;
    if (a.low == 0 || b.low == 0 ||
        (std::abs(product) > kSafeProduct && std::isfinite(product) &&
         std::fma(a.low, b.low, -product) == 0)) {
      return DoubleInterval::Of(product);
    }
  }
  const Ends ends = ProductOf({a.low, a.high}, {b.low, b.high});
  return Widened(ends.low, ends.high, kArithmeticError);
}

DoubleInterval Div(const DoubleInterval& a, const DoubleInterval& b) {
  DoubleInterval result;
  if (TakeStates(a, b, result)) return result;
  if (a.IsPoint() && b.IsPoint()) {
    const double quotient = a.low / b.low;
    // A quotient of infinities and zeros is exact.
    if (a.low == 0 || b.low == 0 || std::isinf(a.low) || std::isinf(b.low)) {
      return Exactly(quotient);
    }
    if (std::abs(a.low) > kSafeProduct && std::isfinite(quotient) &&
        std::abs(quotient) > kSafeProduct &&
        std::fma(quotient, b.low, -a.low) == 0) {
      return DoubleInterval::Of(quotient);
    }
  }
  if (IsInfinite(b)) {
    // The sign of the zero is not known, but for that of a number's.
    if (a.low > 0) return DoubleInterval::Of(1 / b.low);
    if (a.high < 0) return DoubleInterval::Of(-1 / b.low);
    return DoubleInterval::Unknown();
  }
  if (ContainsZero(b)) return DoubleInterval::Unknown();
  if (IsInfinite(a)) return b.low > 0 ? a : Neg(a);
  if (a.IsPoint() && a.low == 0) return DoubleInterval::Of(a.low / b.low);
  const double corners[] = {a.low / b.low, a.low / b.high, a.high / b.low,
                            a.high / b.high};
  for (const double corner : corners) {
    if (std::isnan(corner)) return DoubleInterval::Unknown();
  }
  const Ends ends = {*std::min_element(corners, corners + 4),
                     *std::max_element(corners, corners + 4)};
  if (a.scale != 0 || b.scale != 0) {
    return WithScale(ends, a.scale, -b.scale);
  }
  return Widened(ends.low, ends.high, kArithmeticError);
}

}  // namespace interval_arithmetic

DoubleInterval Plain(const DoubleInterval& x) {
  if (x.scale == 0) return x;
  using interval_arithmetic::Ends;
  const Ends ends = interval_arithmetic::ProductOf(
      {x.low, x.high}, interval_arithmetic::ExpEnds(x.scale));
  DoubleInterval plain = interval_arithmetic::Widened(
      ends.low, ends.high, interval_arithmetic::kArithmeticError);
  // A number above 0 stays no less.
  if (x.low >= 0) plain.low = std::max(plain.low, 0.0);
  if (x.high <= 0) plain.high = std::min(plain.high, 0.0);
  return plain;
}

}  // namespace cleave
