#include "testing/check/interval_functions.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace cleave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
// Twice half a unit, as the sum that widens rounds, too.
constexpr double kArithmeticError = 0x1p-52;
// 16 units in the last place of the C library's functions.
constexpr double kFunctionError = 16 * 0x1p-52;
// A product below it may have lost bits, which fma does not show then.
constexpr double kSafeProduct = 0x1p-900;

bool IsInfinite(const Interval& x) { return x.IsPoint() && std::isinf(x.low); }
bool IsZero(const Interval& x) { return x.low == 0 && x.high == 0; }

// An endpoint that overflowed is of numbers that are finite.
double Down(double x, double error) {
  if (x == kInfinity) return DBL_MAX;
  return x - (std::abs(x) * error + kLeast);
}
double Up(double x, double error) {
  if (x == -kInfinity) return -DBL_MAX;
  return x + (std::abs(x) * error + kLeast);
}

Interval Widened(double low, double high, double error) {
  if (std::isnan(low) || std::isnan(high)) return Interval::Unknown();
  return {Down(low, error), Up(high, error)};
}

// Numbers between, the endpoints among them where a function attains them.
Interval Clamped(Interval x, double least, double most) {
  if (!x.IsReal()) return x;
  return {std::max(x.low, least), std::min(x.high, most)};
}

// What IEEE arithmetic gives for infinities and zeros over the reals, too.
Interval Exactly(double value) {
  return std::isnan(value) ? Interval::NaN() : Interval::Of(value);
}

// The operands of a sum, a product, .. that none of the rules below is for.
// True where `result` is set.
bool TakeStates(const Interval& a, const Interval& b, Interval& result) {
  if (a.state == Interval::State::kUnknown ||
      b.state == Interval::State::kUnknown) {
    result = Interval::Unknown();
    return true;
  }
  if (a.IsReal() && b.IsReal()) return false;
  result = Interval::NaN();
  return true;
}

Interval Neg(const Interval& x) {
  return x.IsReal() ? Interval{-x.high, -x.low} : x;
}

Interval Abs(const Interval& x) {
  if (!x.IsReal() || x.low > 0) return x;
  if (x.high <= 0) return {std::abs(x.high), std::abs(x.low)};
  return {0, std::max(-x.low, x.high)};
}

Interval Identity(const Interval& x) { return x; }

Interval Add(const Interval& a, const Interval& b) {
  Interval result;
  if (TakeStates(a, b, result)) return result;
  if (IsInfinite(a) || IsInfinite(b)) {
    return Exactly((IsInfinite(a) ? a.low : 0) + (IsInfinite(b) ? b.low : 0));
  }
  if (a.IsPoint() && b.IsPoint()) {
    const double sum = a.low + b.low;
    const double part = sum - a.low;
    const double lost = (a.low - (sum - part)) + (b.low - part);
    if (lost == 0) return Interval::Of(sum);
  }
  return Widened(a.low + b.low, a.high + b.high, kArithmeticError);
}

Interval Sub(const Interval& a, const Interval& b) { return Add(a, Neg(b)); }

// 0 where one of them is: an infinite endpoint is of finite numbers.
double Product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

Interval Mul(const Interval& a, const Interval& b) {
  Interval result;
  if (TakeStates(a, b, result)) return result;
  if (IsInfinite(a) || IsInfinite(b)) {
    const Interval& infinite = IsInfinite(a) ? a : b;
    const Interval& other = IsInfinite(a) ? b : a;
    if (IsZero(other)) return Interval::NaN();
    if (other.low > 0) return infinite;
    if (other.high < 0) return Neg(infinite);
    return Interval::Unknown();
  }
  if (a.IsPoint() && b.IsPoint()) {
    const double product = a.low * b.low;
    if (a.low == 0 || b.low == 0 ||
        (std::abs(product) > kSafeProduct && std::isfinite(product) &&
         std::fma(a.low, b.low, -product) == 0)) {
      return Interval::Of(product);
    }
  }
  const double corners[] = {Product(a.low, b.low), Product(a.low, b.high),
                            Product(a.high, b.low), Product(a.high, b.high)};
  return Widened(*std::min_element(corners, corners + 4),
                 *std::max_element(corners, corners + 4), kArithmeticError);
}

Interval Div(const Interval& a, const Interval& b) {
  Interval result;
  if (TakeStates(a, b, result)) return result;
  if (a.IsPoint() && b.IsPoint()) {
    const double quotient = a.low / b.low;
    // Of infinities and zeros it is exact.
    if (a.low == 0 || b.low == 0 || std::isinf(a.low) || std::isinf(b.low)) {
      return Exactly(quotient);
    }
    if (std::abs(a.low) > kSafeProduct && std::isfinite(quotient) &&
        std::abs(quotient) > kSafeProduct &&
        std::fma(quotient, b.low, -a.low) == 0) {
      return Interval::Of(quotient);
    }
  }
  if (IsInfinite(b)) {
    // The sign of the zero is not known, but for that of a number's.
    if (a.low > 0) return Interval::Of(1 / b.low);
    if (a.high < 0) return Interval::Of(-1 / b.low);
    return Interval::Unknown();
  }
  if (b.low <= 0 && b.high >= 0) return Interval::Unknown();
  if (IsInfinite(a)) return b.low > 0 ? a : Neg(a);
  const double corners[] = {a.low / b.low, a.low / b.high, a.high / b.low,
                            a.high / b.high};
  for (const double corner : corners) {
    if (std::isnan(corner)) return Interval::Unknown();
  }
  return Widened(*std::min_element(corners, corners + 4),
                 *std::max_element(corners, corners + 4), kArithmeticError);
}

// A function that grows, on its domain.
template <double (*kFunction)(double)>
Interval Growing(const Interval& x) {
  if (!x.IsReal()) return x;
  if (IsInfinite(x)) return Exactly(kFunction(x.low));
  return Widened(kFunction(x.low), kFunction(x.high), kFunctionError);
}

double LibraryExp(double x) { return std::exp(x); }
double LibraryExpm1(double x) { return std::expm1(x); }
double LibraryLog(double x) { return std::log(x); }
double LibraryLog1p(double x) { return std::log1p(x); }
double LibrarySqrt(double x) { return std::sqrt(x); }
double LibraryCbrt(double x) { return std::cbrt(x); }
double LibraryAsin(double x) { return std::asin(x); }
double LibrarySinh(double x) { return std::sinh(x); }
double LibraryTanh(double x) { return std::tanh(x); }
double LibraryAsinh(double x) { return std::asinh(x); }
double LibraryAcosh(double x) { return std::acosh(x); }
double LibraryAtanh(double x) { return std::atanh(x); }
double LibraryErf(double x) { return std::erf(x); }
double MinusErfc(double x) { return -std::erfc(x); }
double MinusAcos(double x) { return -std::acos(x); }
double LibrarySigmoid(double x) {
  const double small = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + small) : small / (1 + small);
}

// Of a function with the domain [least, most] what is wholly outside is NaN.
template <double (*kFunction)(double)>
Interval GrowingOn(const Interval& x, double least, double most) {
  if (!x.IsReal()) return x;
  if (x.high < least || x.low > most) return Interval::NaN();
  if (x.low < least || x.high > most) return Interval::Unknown();
  // At the ends of the domain infinities and zeros are exact: log(0).
  if (x.IsPoint() && (x.low == least || x.low == most)) {
    const double value = kFunction(x.low);
    if (std::isinf(value) || value == 0) return Exactly(value);
  }
  return Growing<kFunction>(x);
}

Interval Exp(const Interval& x) {
  return Clamped(Growing<LibraryExp>(x), 0, kInfinity);
}
Interval Expm1(const Interval& x) {
  return Clamped(Growing<LibraryExpm1>(x), -1, kInfinity);
}
Interval Log(const Interval& x) {
  return GrowingOn<LibraryLog>(x, 0, kInfinity);
}
Interval Log1p(const Interval& x) {
  return GrowingOn<LibraryLog1p>(x, -1, kInfinity);
}
Interval Sqrt(const Interval& x) {
  if (x.IsReal() && IsZero(x)) return x;  // with its sign
  return Clamped(GrowingOn<LibrarySqrt>(x, 0, kInfinity), 0, kInfinity);
}
Interval Rsqrt(const Interval& x) { return Div(Interval::Of(1), Sqrt(x)); }
Interval Cbrt(const Interval& x) { return Growing<LibraryCbrt>(x); }
Interval Asin(const Interval& x) { return GrowingOn<LibraryAsin>(x, -1, 1); }
Interval Acos(const Interval& x) { return Neg(GrowingOn<MinusAcos>(x, -1, 1)); }
Interval Atan(const Interval& x) {
  // At infinities it is half of pi, which no double is.
  if (!x.IsReal()) return x;
  return Widened(std::atan(x.low), std::atan(x.high), kFunctionError);
}
Interval Sinh(const Interval& x) { return Growing<LibrarySinh>(x); }
Interval Tanh(const Interval& x) {
  return Clamped(Growing<LibraryTanh>(x), -1, 1);
}
Interval Asinh(const Interval& x) { return Growing<LibraryAsinh>(x); }
Interval Acosh(const Interval& x) {
  return GrowingOn<LibraryAcosh>(x, 1, kInfinity);
}
Interval Atanh(const Interval& x) { return GrowingOn<LibraryAtanh>(x, -1, 1); }
Interval Sigmoid(const Interval& x) {
  return Clamped(Growing<LibrarySigmoid>(x), 0, 1);
}
Interval Erf(const Interval& x) {
  return Clamped(Growing<LibraryErf>(x), -1, 1);
}
Interval Erfc(const Interval& x) {
  return Clamped(Neg(Growing<MinusErfc>(x)), 0, 2);
}

Interval Cosh(const Interval& x) {
  const Interval size = Abs(x);
  if (!size.IsReal()) return size;
  if (IsInfinite(size)) return size;
  return Clamped(
      Widened(std::cosh(size.low), std::cosh(size.high), kFunctionError), 1,
      kInfinity);
}

// Its slope is 1 at most.
template <double (*kFunction)(double)>
Interval Wave(const Interval& x) {
  if (!x.IsReal()) return x;
  if (IsInfinite(x)) return Interval::NaN();
  if (!std::isfinite(x.low) || !std::isfinite(x.high)) return {-1, 1};
  const double value = kFunction(x.low);
  const double width = x.IsPoint() ? 0 : Up(x.high - x.low, kArithmeticError);
  return Clamped(Widened(value - width, value + width, kFunctionError), -1, 1);
}
double LibrarySin(double x) { return std::sin(x); }
double LibraryCos(double x) { return std::cos(x); }

Interval Tan(const Interval& x) {
  if (!x.IsReal()) return x;
  if (IsInfinite(x)) return Interval::NaN();
  if (!x.IsPoint()) return Interval::Unknown();
  const double value = std::tan(x.low);
  return Widened(value, value, kFunctionError);
}

// A function that is constant between jumps.
template <double (*kFunction)(double)>
Interval Steps(const Interval& x) {
  if (!x.IsReal()) return x;
  const double low = kFunction(x.low);
  return low == kFunction(x.high) && std::isfinite(low) == std::isfinite(x.low)
             ? Interval::Of(low)
             : Interval::Unknown();
}
double LibraryFloor(double x) { return std::floor(x); }
double LibraryCeil(double x) { return std::ceil(x); }
double LibraryRint(double x) { return std::nearbyint(x); }
double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

Interval Isnan(const Interval& x) {
  if (x.state == Interval::State::kUnknown) return x;
  return Interval::Bool(!x.IsReal());
}
Interval Isinf(const Interval& x) {
  if (x.state == Interval::State::kUnknown) return x;
  if (!x.IsReal()) return Interval::Bool(false);
  // An endpoint that overflowed is of finite numbers.
  return Interval::Bool(IsInfinite(x));
}
Interval Not(const Interval& x) {
  return x.IsPoint() ? Interval::Bool(x.low == 0) : Interval::Unknown();
}

// NaN where one is, as in MaxOf and MinOf.
Interval Max(const Interval& a, const Interval& b) {
  Interval result;
  if (TakeStates(a, b, result)) return result;
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}
Interval Min(const Interval& a, const Interval& b) {
  Interval result;
  if (TakeStates(a, b, result)) return result;
  return {std::min(a.low, b.low), std::min(a.high, b.high)};
}

// kTrue(a, b) where the comparison holds for all numbers of both, kFalse where
// it holds for none.
Interval Compared(const Interval& a, const Interval& b, bool holds, bool fails,
                  bool of_nan) {
  if (a.state == Interval::State::kUnknown ||
      b.state == Interval::State::kUnknown) {
    return Interval::Unknown();
  }
  if (!a.IsReal() || !b.IsReal()) return Interval::Bool(of_nan);
  if (holds) return Interval::Bool(true);
  return fails ? Interval::Bool(false) : Interval::Unknown();
}
Interval Lt(const Interval& a, const Interval& b) {
  return Compared(a, b, a.high < b.low, a.low >= b.high, false);
}
Interval Le(const Interval& a, const Interval& b) {
  return Compared(a, b, a.high <= b.low, a.low > b.high, false);
}
Interval Gt(const Interval& a, const Interval& b) { return Lt(b, a); }
Interval Ge(const Interval& a, const Interval& b) { return Le(b, a); }
bool Apart(const Interval& a, const Interval& b) {
  return a.high < b.low || b.high < a.low;
}
bool Same(const Interval& a, const Interval& b) {
  return a.IsPoint() && b.IsPoint() && a.low == b.low;
}
Interval Eq(const Interval& a, const Interval& b) {
  return Compared(a, b, Same(a, b), Apart(a, b), false);
}
Interval Ne(const Interval& a, const Interval& b) {
  return Compared(a, b, Apart(a, b), Same(a, b), true);
}

Interval And(const Interval& a, const Interval& b) {
  if ((a.IsPoint() && a.low == 0) || (b.IsPoint() && b.low == 0)) {
    return Interval::Bool(false);
  }
  return a.IsPoint() && b.IsPoint() ? Interval::Bool(true)
                                    : Interval::Unknown();
}
Interval Or(const Interval& a, const Interval& b) {
  return Not(And(Not(a), Not(b)));
}
Interval Xor(const Interval& a, const Interval& b) {
  return a.IsPoint() && b.IsPoint() ? Interval::Bool(a.low != b.low)
                                    : Interval::Unknown();
}

Interval Pow(const Interval& a, const Interval& b) {
  if (!a.IsReal() || !b.IsReal() || !b.IsPoint()) return Interval::Unknown();
  if (b.low == 1) return a;
  if (b.low == 2) {
    const Interval size = Abs(a);
    return Clamped(Mul(size, size), 0, kInfinity);
  }
  if (a.IsPoint()) {
    const double value = std::pow(a.low, b.low);
    if (a.low == 0 || std::isinf(a.low) || b.low == 0 || std::isinf(b.low) ||
        std::isnan(value)) {
      return Exactly(value);
    }
    return Clamped(Widened(value, value, kFunctionError),
                   value < 0 ? -kInfinity : 0, value < 0 ? 0 : kInfinity);
  }
  if (!(a.low > 0) || std::isinf(b.low)) return Interval::Unknown();
  const double x = std::pow(a.low, b.low);
  const double y = std::pow(a.high, b.low);
  return Clamped(Widened(std::min(x, y), std::max(x, y), kFunctionError), 0,
                 kInfinity);
}

Interval Atan2(const Interval& a, const Interval& b) {
  if (!a.IsPoint() || !b.IsPoint()) return Interval::Unknown();
  const double value = std::atan2(a.low, b.low);
  return value == 0 && a.low == 0 ? Interval::Of(value)
                                  : Widened(value, value, kFunctionError);
}

Interval Copysign(const Interval& a, const Interval& b) {
  if (!a.IsReal() || !b.IsReal()) return Interval::Unknown();
  const Interval size = Abs(a);
  if (b.low > 0 || (b.IsPoint() && !std::signbit(b.low))) return size;
  if (b.high < 0 || (b.IsPoint() && std::signbit(b.low))) return Neg(size);
  return Interval::Unknown();
}

}  // namespace

Interval Interval::Of(double value) {
  if (std::isnan(value)) return NaN();
  return {value, value, State::kReal};
}

Interval IntervalSelect(const Interval& c, const Interval& a,
                        const Interval& b) {
  if (c.IsPoint()) return c.low != 0 ? a : b;
  // It is one of them.
  if (!a.IsReal() || !b.IsReal() || IsInfinite(a) || IsInfinite(b)) {
    return Interval::Unknown();
  }
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval IntervalFma(const Interval& a, const Interval& b, const Interval& c) {
  return Add(Mul(a, b), c);
}

IntervalUnary IntervalUnaryOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
      return Abs;
    case Primitive::kNeg:
      return Neg;
    case Primitive::kSign:
      return Steps<SignOf>;
    case Primitive::kCeil:
      return Steps<LibraryCeil>;
    case Primitive::kFloor:
      return Steps<LibraryFloor>;
    case Primitive::kRoundNearestEven:
      return Steps<LibraryRint>;
    case Primitive::kExp:
      return Exp;
    case Primitive::kExpm1:
      return Expm1;
    case Primitive::kLog:
      return Log;
    case Primitive::kLog1p:
      return Log1p;
    case Primitive::kSqrt:
      return Sqrt;
    case Primitive::kRsqrt:
      return Rsqrt;
    case Primitive::kCbrt:
      return Cbrt;
    case Primitive::kSin:
      return Wave<LibrarySin>;
    case Primitive::kCos:
      return Wave<LibraryCos>;
    case Primitive::kTan:
      return Tan;
    case Primitive::kAsin:
      return Asin;
    case Primitive::kAcos:
      return Acos;
    case Primitive::kAtan:
      return Atan;
    case Primitive::kSinh:
      return Sinh;
    case Primitive::kCosh:
      return Cosh;
    case Primitive::kTanh:
      return Tanh;
    case Primitive::kAsinh:
      return Asinh;
    case Primitive::kAcosh:
      return Acosh;
    case Primitive::kAtanh:
      return Atanh;
    case Primitive::kSigmoid:
      return Sigmoid;
    case Primitive::kErf:
      return Erf;
    case Primitive::kErfc:
      return Erfc;
    case Primitive::kIsnan:
      return Isnan;
    case Primitive::kIsinf:
      return Isinf;
    case Primitive::kNot:
      return Not;
    case Primitive::kNograd:
      return Identity;
    default:
      return nullptr;
  }
}

IntervalBinary IntervalBinaryOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAdd:
      return Add;
    case Primitive::kSub:
      return Sub;
    case Primitive::kMul:
      return Mul;
    case Primitive::kDiv:
      return Div;
    case Primitive::kPow:
      return Pow;
    case Primitive::kAtan2:
      return Atan2;
    case Primitive::kCopysign:
      return Copysign;
    case Primitive::kMax:
      return Max;
    case Primitive::kMin:
      return Min;
    case Primitive::kEq:
      return Eq;
    case Primitive::kNe:
      return Ne;
    case Primitive::kLt:
      return Lt;
    case Primitive::kLe:
      return Le;
    case Primitive::kGt:
      return Gt;
    case Primitive::kGe:
      return Ge;
    case Primitive::kAnd:
      return And;
    case Primitive::kOr:
      return Or;
    case Primitive::kXor:
      return Xor;
    default:
      return nullptr;
  }
}

}  // namespace cleave
