#include "testing/check/interval_functions.h"

#include <algorithm>
#include <cmath>

#include "testing/check/interval_arithmetic.h"

namespace cleave {
namespace interval_arithmetic {
namespace {

Interval Identity(const Interval& x) { return x; }

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
  // Beyond it the exponents of doubles end.
  constexpr double kFar = 700;
  if (x.IsReal() && (x.low > kFar || x.high < -kFar) && !std::isinf(x.low) &&
      !std::isinf(x.high) && x.high - x.low < 1) {
    const double most =
        x.low == x.high ? 1
                        : ExpEnds(Up(x.high - x.low, kArithmeticError)).high;
    return {1, most, Interval::State::kReal, x.low};
  }
  return Clamped(Growing<LibraryExp>(x), 0, kInfinity);
}
Interval Expm1(const Interval& x) {
  return Clamped(Growing<LibraryExpm1>(x), -1, kInfinity);
}
Interval Log(const Interval& x) {
  if (x.IsReal() && x.scale != 0 && x.low > 0) {
    return Add(Interval::Of(x.scale),
               Widened(std::log(x.low), std::log(x.high), kFunctionError));
  }
  return GrowingOn<LibraryLog>(Plain(x), 0, kInfinity);
}
Interval Log1p(const Interval& x) {
  if (x.IsReal() && x.scale > 0 && x.low > 0) {
    return Log(Add(Interval::Of(1), x));
  }
  return GrowingOn<LibraryLog1p>(Plain(x), -1, kInfinity);
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
  const Interval half = Mul(Interval::Of(0.5), Exp(size));
  // The other half is less than what widens it.
  if (half.scale != 0) {
    return Widened(half.low, half.high, kFunctionError, half.scale);
  }
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

IntervalUnary UnaryOf(Primitive primitive) {
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

IntervalBinary BinaryOf(Primitive primitive) {
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

}  // namespace
}  // namespace interval_arithmetic

Interval Interval::Of(double value) {
  if (std::isnan(value)) return NaN();
  return {value, value, State::kReal, 0};
}

bool TakesScales(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kAdd:
    case Primitive::kDiv:
    case Primitive::kLog:
    case Primitive::kLog1p:
    case Primitive::kMul:
    case Primitive::kNeg:
    case Primitive::kNograd:
    case Primitive::kSub:
      return true;
    default:
      return false;
  }
}

Interval IntervalSelect(const Interval& c, const Interval& x,
                        const Interval& y) {
  if (c.IsPoint()) return c.low != 0 ? x : y;
  const Interval a = Plain(x);
  const Interval b = Plain(y);
  // It is one of them.
  if (!a.IsReal() || !b.IsReal() || interval_arithmetic::IsInfinite(a) ||
      interval_arithmetic::IsInfinite(b)) {
    return Interval::Unknown();
  }
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval IntervalFma(const Interval& a, const Interval& b, const Interval& c) {
  return interval_arithmetic::Add(interval_arithmetic::Mul(a, b), c);
}

IntervalUnary IntervalUnaryOf(Primitive primitive) {
  return interval_arithmetic::UnaryOf(primitive);
}

IntervalBinary IntervalBinaryOf(Primitive primitive) {
  return interval_arithmetic::BinaryOf(primitive);
}

}  // namespace cleave
