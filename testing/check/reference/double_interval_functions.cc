#include "testing/check/reference/double_interval_functions.h"

#include <algorithm>
#include <cmath>

#include "testing/check/reference/double_interval_arithmetic.h"

namespace cleave {
namespace interval_arithmetic {
namespace {

DoubleInterval Identity(const DoubleInterval& x) { return x; }

// A function that grows, on its domain.
template <double (*kFunction)(double)>
DoubleInterval Growing(const DoubleInterval& x) {
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

// A growing function with the domain [least, most]; NaN for an interval that is
// wholly outside.
template <double (*kFunction)(double)>
DoubleInterval GrowingOn(const DoubleInterval& x, double least, double most) {
  if (!x.IsReal()) return x;
  if (x.high < least || x.low > most) return DoubleInterval::NaN();
  if (x.low < least || x.high > most) return DoubleInterval::Unknown();
  // At the ends of the domain infinities and zeros are exact: log(0).
  if (x.IsPoint() && (x.low == least || x.low == most)) {
    const double value = kFunction(x.low);
    if (std::isinf(value) || value == 0) return Exactly(value);
  }
  return Growing<kFunction>(x);
}

DoubleInterval Exp(const DoubleInterval& x) {
  // Beyond it the exponents of doubles end.
  constexpr double kFar = 700;
  if (x.IsReal() && (x.low > kFar || x.high < -kFar) && !std::isinf(x.low) &&
      !std::isinf(x.high) && x.high - x.low < 1) {
    const double most =
        x.low == x.high ? 1
                        : ExpEnds(Up(x.high - x.low, kArithmeticError)).high;
    return {1, most, DoubleInterval::State::kReal, x.low};
  }
  return Clamped(Growing<LibraryExp>(x), 0, kInfinity);
}
DoubleInterval Expm1(const DoubleInterval& x) {
  return Clamped(Growing<LibraryExpm1>(x), -1, kInfinity);
}
DoubleInterval Log(const DoubleInterval& x) {
  if (x.IsReal() && x.scale != 0 && x.low > 0) {
    return Add(DoubleInterval::Of(x.scale),
               Widened(std::log(x.low), std::log(x.high), kFunctionError));
  }
  return GrowingOn<LibraryLog>(Plain(x), 0, kInfinity);
}
DoubleInterval Log1p(const DoubleInterval& x) {
  if (x.IsReal() && x.scale > 0 && x.low > 0) {
    return Log(Add(DoubleInterval::Of(1), x));
  }
  return GrowingOn<LibraryLog1p>(Plain(x), -1, kInfinity);
}
DoubleInterval Sqrt(const DoubleInterval& x) {
  if (x.IsReal() && IsZero(x)) return x;  // with its sign
  return Clamped(GrowingOn<LibrarySqrt>(x, 0, kInfinity), 0, kInfinity);
}
DoubleInterval Rsqrt(const DoubleInterval& x) {
  return Div(DoubleInterval::Of(1), Sqrt(x));
}
DoubleInterval Cbrt(const DoubleInterval& x) { return Growing<LibraryCbrt>(x); }
DoubleInterval Asin(const DoubleInterval& x) {
  return GrowingOn<LibraryAsin>(x, -1, 1);
}
DoubleInterval Acos(const DoubleInterval& x) {
  return Neg(GrowingOn<MinusAcos>(x, -1, 1));
}
DoubleInterval Atan(const DoubleInterval& x) {
  // At infinities it is half of pi, which no double is.
  if (!x.IsReal()) return x;
  return Widened(std::atan(x.low), std::atan(x.high), kFunctionError);
}
DoubleInterval Sinh(const DoubleInterval& x) { return Growing<LibrarySinh>(x); }
DoubleInterval Tanh(const DoubleInterval& x) {
  return Clamped(Growing<LibraryTanh>(x), -1, 1);
}
DoubleInterval Asinh(const DoubleInterval& x) {
  return Growing<LibraryAsinh>(x);
}
DoubleInterval Acosh(const DoubleInterval& x) {
  return GrowingOn<LibraryAcosh>(x, 1, kInfinity);
}
DoubleInterval Atanh(const DoubleInterval& x) {
  return GrowingOn<LibraryAtanh>(x, -1, 1);
}
DoubleInterval Sigmoid(const DoubleInterval& x) {
  return Clamped(Growing<LibrarySigmoid>(x), 0, 1);
}
DoubleInterval Erf(const DoubleInterval& x) {
  return Clamped(Growing<LibraryErf>(x), -1, 1);
}
DoubleInterval Erfc(const DoubleInterval& x) {
  return Clamped(Neg(Growing<MinusErfc>(x)), 0, 2);
}

DoubleInterval Cosh(const DoubleInterval& x) {
  const DoubleInterval size = Abs(x);
  if (!size.IsReal()) return size;
  if (IsInfinite(size)) return size;
  const DoubleInterval half = Mul(DoubleInterval::Of(0.5), Exp(size));
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
DoubleInterval Wave(const DoubleInterval& x) {
  if (!x.IsReal()) return x;
  if (IsInfinite(x)) return DoubleInterval::NaN();
  if (!std::isfinite(x.low) || !std::isfinite(x.high)) return {-1, 1};
  const double value = kFunction(x.low);
  const double width = x.IsPoint() ? 0 : Up(x.high - x.low, kArithmeticError);
  return Clamped(Widened(value - width, value + width, kFunctionError), -1, 1);
}
double LibrarySin(double x) { return std::sin(x); }
double LibraryCos(double x) { return std::cos(x); }

DoubleInterval Tan(const DoubleInterval& x) {
  if (!x.IsReal()) return x;
  if (IsInfinite(x)) return DoubleInterval::NaN();
  if (!x.IsPoint()) return DoubleInterval::Unknown();
  const double value = std::tan(x.low);
  return Widened(value, value, kFunctionError);
}

// A function that is constant between jumps.
template <double (*kFunction)(double)>
DoubleInterval Steps(const DoubleInterval& x) {
  if (!x.IsReal()) return x;
  const double low = kFunction(x.low);
  return low == kFunction(x.high) && std::isfinite(low) == std::isfinite(x.low)
             ? DoubleInterval::Of(low)
             : DoubleInterval::Unknown();
}
double LibraryFloor(double x) { return std::floor(x); }
double LibraryCeil(double x) { return std::ceil(x); }
double LibraryRint(double x) { return std::nearbyint(x); }
double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

DoubleInterval Isnan(const DoubleInterval& x) {
  if (x.state == DoubleInterval::State::kUnknown) return x;
  return DoubleInterval::Bool(!x.IsReal());
}
DoubleInterval Isinf(const DoubleInterval& x) {
  if (x.state == DoubleInterval::State::kUnknown) return x;
  if (!x.IsReal()) return DoubleInterval::Bool(false);
  // An endpoint that overflowed is of finite numbers.
  return DoubleInterval::Bool(IsInfinite(x));
}
DoubleInterval Not(const DoubleInterval& x) {
  return x.IsPoint() ? DoubleInterval::Bool(x.low == 0)
                     : DoubleInterval::Unknown();
}

// NaN where one is, as in MaxOf and MinOf.
DoubleInterval Max(const DoubleInterval& a, const DoubleInterval& b) {
  DoubleInterval result;
  if (TakeStates(a, b, result)) return result;
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}
DoubleInterval Min(const DoubleInterval& a, const DoubleInterval& b) {
  DoubleInterval result;
  if (TakeStates(a, b, result)) return result;
  return {std::min(a.low, b.low), std::min(a.high, b.high)};
}

// kTrue(a, b) where the comparison holds for all numbers of both, kFalse where
// it holds for none.
DoubleInterval Compared(const DoubleInterval& a, const DoubleInterval& b,
                        bool holds, bool fails, bool of_nan) {
  if (a.state == DoubleInterval::State::kUnknown ||
      b.state == DoubleInterval::State::kUnknown) {
    return DoubleInterval::Unknown();
  }
  if (!a.IsReal() || !b.IsReal()) return DoubleInterval::Bool(of_nan);
  if (holds) return DoubleInterval::Bool(true);
  return fails ? DoubleInterval::Bool(false) : DoubleInterval::Unknown();
}
DoubleInterval Lt(const DoubleInterval& a, const DoubleInterval& b) {
  return Compared(a, b, a.high < b.low, a.low >= b.high, false);
}
DoubleInterval Le(const DoubleInterval& a, const DoubleInterval& b) {
  return Compared(a, b, a.high <= b.low, a.low > b.high, false);
}
DoubleInterval Gt(const DoubleInterval& a, const DoubleInterval& b) {
  return Lt(b, a);
}
DoubleInterval Ge(const DoubleInterval& a, const DoubleInterval& b) {
  return Le(b, a);
}
bool Apart(const DoubleInterval& a, const DoubleInterval& b) {
  return a.high < b.low || b.high < a.low;
}
bool Same(const DoubleInterval& a, const DoubleInterval& b) {
  return a.IsPoint() && b.IsPoint() && a.low == b.low;
}
DoubleInterval Eq(const DoubleInterval& a, const DoubleInterval& b) {
  return Compared(a, b, Same(a, b), Apart(a, b), false);
}
DoubleInterval Ne(const DoubleInterval& a, const DoubleInterval& b) {
  return Compared(a, b, Apart(a, b), Same(a, b), true);
}

DoubleInterval And(const DoubleInterval& a, const DoubleInterval& b) {
  if ((a.IsPoint() && a.low == 0) || (b.IsPoint() && b.low == 0)) {
    return DoubleInterval::Bool(false);
  }
  return a.IsPoint() && b.IsPoint() ? DoubleInterval::Bool(true)
                                    : DoubleInterval::Unknown();
}
DoubleInterval Or(const DoubleInterval& a, const DoubleInterval& b) {
  return Not(And(Not(a), Not(b)));
}
DoubleInterval Xor(const DoubleInterval& a, const DoubleInterval& b) {
  return a.IsPoint() && b.IsPoint() ? DoubleInterval::Bool(a.low != b.low)
                                    : DoubleInterval::Unknown();
}

DoubleInterval Pow(const DoubleInterval& a, const DoubleInterval& b) {
  if (!a.IsReal() || !b.IsReal() || !b.IsPoint())
    return DoubleInterval::Unknown();
  if (b.low == 1) return a;
  if (b.low == 2) {
    const DoubleInterval size = Abs(a);
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
  if (!(a.low > 0) || std::isinf(b.low)) return DoubleInterval::Unknown();
  const double x = std::pow(a.low, b.low);
  const double y = std::pow(a.high, b.low);
  return Clamped(Widened(std::min(x, y), std::max(x, y), kFunctionError), 0,
                 kInfinity);
}

DoubleInterval Atan2(const DoubleInterval& a, const DoubleInterval& b) {
  if (!a.IsPoint() || !b.IsPoint()) return DoubleInterval::Unknown();
  const double value = std::atan2(a.low, b.low);
  return value == 0 && a.low == 0 ? DoubleInterval::Of(value)
                                  : Widened(value, value, kFunctionError);
}

DoubleInterval Copysign(const DoubleInterval& a, const DoubleInterval& b) {
  if (!a.IsReal() || !b.IsReal()) return DoubleInterval::Unknown();
  const DoubleInterval size = Abs(a);
  if (b.low > 0 || (b.IsPoint() && !std::signbit(b.low))) return size;
  if (b.high < 0 || (b.IsPoint() && std::signbit(b.low))) return Neg(size);
  return DoubleInterval::Unknown();
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

DoubleInterval DoubleInterval::Of(double value) {
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

DoubleInterval IntervalSelect(const DoubleInterval& c, const DoubleInterval& x,
                              const DoubleInterval& y) {
  if (c.IsPoint()) return c.low != 0 ? x : y;
  const DoubleInterval a = Plain(x);
  const DoubleInterval b = Plain(y);
  // It is one of them.
  if (!a.IsReal() || !b.IsReal() || interval_arithmetic::IsInfinite(a) ||
      interval_arithmetic::IsInfinite(b)) {
    return DoubleInterval::Unknown();
  }
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

DoubleInterval IntervalFma(const DoubleInterval& a, const DoubleInterval& b,
                           const DoubleInterval& c) {
  return interval_arithmetic::Add(interval_arithmetic::Mul(a, b), c);
}

IntervalUnary IntervalUnaryOf(Primitive primitive) {
  return interval_arithmetic::UnaryOf(primitive);
}

IntervalBinary IntervalBinaryOf(Primitive primitive) {
  return interval_arithmetic::BinaryOf(primitive);
}

}  // namespace cleave
