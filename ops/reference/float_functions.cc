#include "ops/reference/float_functions.h"

#include <cmath>
#include <limits>

namespace cleave {
namespace {

using Float = long double;

Float Sign(Float x) {
  if (x > 0) return 1;
  if (x < 0) return -1;
  return x;  // NaN and signed zeros stay.
}

Float Rsqrt(Float x) { return 1 / std::sqrt(x); }

// e^-|x| does not overflow.
Float Sigmoid(Float x) {
  const Float e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// Newton's method: on erf(y) = x up to 1/2; beyond on log erfc(y) = log(1 - x),
// which is nearly linear in y^2, 1 - x being exact there.
Float Erfinv(Float x) {
  const Float a = std::fabs(x);
  if (std::isnan(x) || a > 1) return std::numeric_limits<Float>::quiet_NaN();
  if (a == 0) return x;
  if (a == 1) return std::copysign(std::numeric_limits<Float>::infinity(), x);
  constexpr Float kHalfSqrtPi = 0.886226925452758013649083741670572591L;
  Float y;
  if (a <= 0.5L) {
    y = a * kHalfSqrtPi;
    // Below 1e-10 the next term, pi x^2 / 12, is beyond the last bit.
    for (int i = 0; i < 5 && a > 1e-10L; ++i) {
      y -= (std::erf(y) - a) * kHalfSqrtPi * std::exp(y * y);
    }
  } else {
    const Float log_t = std::log1p(-a);
    y = std::sqrt(-log_t);
    for (int i = 0; i < 8; ++i) {
      const Float erfc = std::erfc(y);
      y += (std::log(erfc) - log_t) * kHalfSqrtPi * erfc * std::exp(y * y);
    }
  }
  return std::copysign(y, x);
}

}  // namespace

FloatFunction FindFloatFunction(Primitive primitive) {
  switch (primitive) {
#define CLEAVE_UNARY(enumerator, function) \
  case Primitive::enumerator:              \
    return [](Float x) -> Float { return function(x); }
    CLEAVE_UNARY(kSign, Sign);
    CLEAVE_UNARY(kCeil, std::ceil);
    CLEAVE_UNARY(kFloor, std::floor);
    CLEAVE_UNARY(kRoundNearestEven, std::nearbyint);
    CLEAVE_UNARY(kExp, std::exp);
    CLEAVE_UNARY(kExpm1, std::expm1);
    CLEAVE_UNARY(kLog, std::log);
    CLEAVE_UNARY(kLog1p, std::log1p);
    CLEAVE_UNARY(kSqrt, std::sqrt);
    CLEAVE_UNARY(kRsqrt, Rsqrt);
    CLEAVE_UNARY(kCbrt, std::cbrt);
    CLEAVE_UNARY(kSin, std::sin);
    CLEAVE_UNARY(kCos, std::cos);
    CLEAVE_UNARY(kTan, std::tan);
    CLEAVE_UNARY(kAsin, std::asin);
    CLEAVE_UNARY(kAcos, std::acos);
    CLEAVE_UNARY(kAtan, std::atan);
    CLEAVE_UNARY(kSinh, std::sinh);
    CLEAVE_UNARY(kCosh, std::cosh);
    CLEAVE_UNARY(kTanh, std::tanh);
    CLEAVE_UNARY(kAsinh, std::asinh);
    CLEAVE_UNARY(kAcosh, std::acosh);
    CLEAVE_UNARY(kAtanh, std::atanh);
    CLEAVE_UNARY(kSigmoid, Sigmoid);
    CLEAVE_UNARY(kErf, std::erf);
    CLEAVE_UNARY(kErfc, std::erfc);
    CLEAVE_UNARY(kErfinv, Erfinv);
    CLEAVE_UNARY(kLgamma, std::lgamma);
#undef CLEAVE_UNARY
    default:
      return nullptr;
  }
}

}  // namespace cleave
