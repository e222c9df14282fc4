#include "ops/reference/interval_functions.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

constexpr char kMeetingInfinities[] = "infinities may meet";
constexpr char kZeroTimesInfinity[] = "0 may meet an infinity";
constexpr char kByZero[] = "a division by what may be 0";
constexpr char kDomain[] = "an argument may lie outside of the domain";
constexpr char kZeroSign[] = "the sign of a zero is not known";
constexpr char kInfiniteBound[] = "a bound is infinite";

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// Sets `out` where an operand is undecided or NaN, and says so.
bool IsSettledBy(RealInterval& out, const RealInterval& a,
                 const RealInterval& b) {
  for (const RealInterval* x : {&a, &b}) {
    if (x->undecided() == nullptr) continue;
    out.SetUndecided(x->undecided());
    return true;
  }
  if (!a.IsNaN() && !b.IsNaN()) return false;
  out.SetNaN();
  return true;
}

// 1 or -1 where all numbers are of that sign, 0 for the others.
int SignOf(const RealInterval& x) {
  return mpfr_sgn(x.low()) > 0 ? 1 : mpfr_sgn(x.high()) < 0 ? -1 : 0;
}

bool IsZeroPoint(const RealInterval& x) {
  return x.IsPoint() && mpfr_zero_p(x.low()) != 0;
}

void SetZero(RealInterval& out, bool negative) {
  mpfr_set_zero(out.low(), negative ? -1 : 1);
  out.EncloseRounded(0);
}

void SetInfinity(RealInterval& out, bool negative) {
  mpfr_set_inf(out.low(), negative ? -1 : 1);
  out.EncloseRounded(0);
}

void OfPoint(MpfrFunction function, RealInterval& out, const RealInterval& x) {
  out.EncloseRounded(function(out.low(), x.low(), MPFR_RNDN));
}

void Monotone(MpfrFunction function, bool rises, RealInterval& out,
              const RealInterval& x) {
  if (x.IsPoint()) return OfPoint(function, out, x);
  function(out.low(), rises ? x.low() : x.high(), MPFR_RNDD);
  function(out.high(), rises ? x.high() : x.low(), MPFR_RNDU);
  out.CheckBounds();
}

// A function that rises or falls over its whole domain, NaN beyond.
struct MonotoneFunction {
  Primitive primitive;
  MpfrFunction function;
  bool rises = true;
  double least = -HUGE_VAL;
  double greatest = HUGE_VAL;
};

const MonotoneFunction* FindMonotone(Primitive primitive) {
  static constexpr MonotoneFunction kFunctions[] = {
      {Primitive::kNeg, mpfr_neg, false},
      {Primitive::kExp, mpfr_exp},
      {Primitive::kExpm1, mpfr_expm1},
      {Primitive::kLog, mpfr_log, true, 0},
      {Primitive::kLog1p, mpfr_log1p, true, -1},
      {Primitive::kSqrt, mpfr_sqrt, true, 0},
      {Primitive::kCbrt, mpfr_cbrt},
      {Primitive::kAsin, mpfr_asin, true, -1, 1},
      {Primitive::kAcos, mpfr_acos, false, -1, 1},
      {Primitive::kAtan, mpfr_atan},
      {Primitive::kSinh, mpfr_sinh},
      {Primitive::kTanh, mpfr_tanh},
      {Primitive::kAsinh, mpfr_asinh},
      {Primitive::kAcosh, mpfr_acosh, true, 1},
      {Primitive::kAtanh, mpfr_atanh, true, -1, 1},
      {Primitive::kErf, mpfr_erf},
      {Primitive::kErfc, mpfr_erfc, false},
      {Primitive::kNograd, mpfr_set},
      {Primitive::kConvert, mpfr_set},
  };
  for (const MonotoneFunction& function : kFunctions) {
    if (function.primitive == primitive) return &function;
  }
  return nullptr;
}

void ToIntegers(Primitive primitive, RealInterval& out, const RealInterval& x) {
  const auto round = [primitive](mpfr_ptr result, mpfr_srcptr value) {
    switch (primitive) {
      case Primitive::kFloor:
        mpfr_floor(result, value);
        break;
      case Primitive::kCeil:
        mpfr_ceil(result, value);
        break;
      default:
        mpfr_rint_roundeven(result, value, MPFR_RNDN);
    }
  };
  // The integers are exact in the precision of x.
  Real low(x.bits());
  Real high(x.bits());
  round(low.get(), x.low());
  round(high.get(), x.high());
  mpfr_set(out.low(), low.get(), MPFR_RNDD);
  mpfr_set(out.high(), high.get(), MPFR_RNDU);
  // -0.4 has the ceiling -0.
  if (!x.HasZero() || x.IsPoint()) return;
  out.CheckBounds();
}

void SetSign(RealInterval& out, const RealInterval& x) {
  const auto sign = [](mpfr_ptr result, mpfr_srcptr value, mpfr_rnd_t) {
    if (mpfr_zero_p(value)) return mpfr_set(result, value, MPFR_RNDN);
    return mpfr_set_si(result, mpfr_sgn(value), MPFR_RNDN);
  };
  Monotone(sign, true, out, x);
}

void SetRsqrt(RealInterval& out, const RealInterval& x) {
  if (IsZeroPoint(x)) return SetInfinity(out, mpfr_signbit(x.low()) != 0);
  if (SignOf(x) < 0) return out.SetNaN();
  if (SignOf(x) == 0) return out.SetUndecided(kDomain);
  Monotone(mpfr_rec_sqrt, false, out, x);
}

// 1 / (1 + e^-x), where x occurs once.
void SetSigmoid(RealInterval& out, const RealInterval& x) {
  RealInterval e(out.bits() + 8);
  RealInterval one(1.0, out.bits() + 8);
  RealInterval opposite(x.bits());
  Monotone(mpfr_neg, false, opposite, x);
  Monotone(mpfr_exp, true, e, opposite);
  AddIntervals(e, e, one);
  DivideIntervals(out, one, e);
}

// sin, cos and tan.
void SetPeriodic(Primitive primitive, RealInterval& out,
                 const RealInterval& x) {
  const bool is_sin = primitive == Primitive::kSin;
  const bool is_cos = primitive == Primitive::kCos;
  if (x.IsPoint()) {
    return OfPoint(is_sin ? mpfr_sin : is_cos ? mpfr_cos : mpfr_tan, out, x);
  }
  if (x.HasInfinity()) return out.SetUndecided(kInfiniteBound);
  if (is_sin) {
    mpfi_sin(out.get(), x.get());
  } else if (is_cos) {
    mpfi_cos(out.get(), x.get());
  } else {
    mpfi_tan(out.get(), x.get());
  }
  out.CheckBounds();
}

void SetCosh(RealInterval& out, const RealInterval& x) {
  if (x.IsPoint()) return OfPoint(mpfr_cosh, out, x);
  RealInterval size(x.bits());
  mpfi_abs(size.get(), x.get());
  Monotone(mpfr_cosh, true, out, size);
}

// a - n b, where n is the quotient truncated.
void SetRem(RealInterval& out, const RealInterval& a, const RealInterval& b) {
  if (a.IsPoint() && b.IsPoint()) {
    return out.EncloseRounded(
        mpfr_fmod(out.low(), a.low(), b.low(), MPFR_RNDN));
  }
  if (!a.HasInfinity() && b.IsPoint() && mpfr_inf_p(b.low())) {
    return Monotone(mpfr_set, true, out, a);
  }
  if (a.HasInfinity() || b.HasInfinity()) {
    return out.SetUndecided(kInfiniteBound);
  }
  if (b.HasZero()) return out.SetUndecided(kByZero);
  const int bits = out.bits() + 8;
  RealInterval quotient(bits);
  DivideIntervals(quotient, a, b);
  if (quotient.HasInfinity()) return out.SetUndecided(kInfiniteBound);
  RealInterval n(bits);
  mpfr_trunc(n.low(), quotient.low());
  mpfr_trunc(n.high(), quotient.high());
  if (!mpfr_equal_p(n.low(), n.high())) {
    return out.SetUndecided("the multiple that is taken off is not known");
  }
  n.EncloseRounded(0);
  mpfr_neg(n.low(), n.low(), MPFR_RNDN);
  n.EncloseRounded(0);
  FmaIntervals(out, n, b, a);
}

void SetPow(RealInterval& out, const RealInterval& x, const RealInterval& y) {
  // By IEEE 754, before NaN is looked at.
  const bool to_zero = y.IsPoint() && mpfr_zero_p(y.low());
  const bool of_one =
      x.IsPoint() && mpfr_number_p(x.low()) && mpfr_cmp_ui(x.low(), 1) == 0;
  if (to_zero || of_one) {
    mpfr_set_ui(out.low(), 1, MPFR_RNDN);
    return out.EncloseRounded(0);
  }
  if (x.undecided() != nullptr || y.undecided() != nullptr) {
    IsSettledBy(out, x, y);
    return;
  }
  const auto may_be = [](const RealInterval& v, long number) {
    return v.IsNumber() && mpfr_cmp_si(v.low(), number) <= 0 &&
           mpfr_cmp_si(v.high(), number) >= 0;
  };
  if (x.IsNaN() || y.IsNaN()) {
    if (may_be(x, 1) || may_be(y, 0)) return out.SetUndecided(kDomain);
    return out.SetNaN();
  }
  if (x.IsPoint() && y.IsPoint()) {
    return out.EncloseRounded(mpfr_pow(out.low(), x.low(), y.low(), MPFR_RNDN));
  }
  if (x.HasInfinity() || y.HasInfinity()) {
    return out.SetUndecided(kInfiniteBound);
  }
  if (y.IsPoint() && mpfr_integer_p(y.low()) &&
      mpfr_fits_slong_p(y.low(), MPFR_RNDN)) {
    const long n = mpfr_get_si(y.low(), MPFR_RNDN);
    if (n < 0 && x.HasZero()) return out.SetUndecided(kByZero);
    return PowerInterval(out, x, n);
  }
  if (SignOf(x) < 0 && y.IsPoint() && !mpfr_integer_p(y.low())) {
    return out.SetNaN();
  }
  if (SignOf(x) <= 0) {
    // sqrt(x) at x = 0.
    if (mpfr_sgn(x.low()) == 0 && y.IsPoint() && mpfr_sgn(y.low()) > 0) {
      mpfr_set_zero(out.low(), 1);
      mpfr_pow(out.high(), x.high(), y.low(), MPFR_RNDU);
      return out.CheckBounds();
    }
    return out.SetUndecided(kDomain);
  }
  // y log(x) has its ends at the corners; so has its exponential.
  RealInterval exponent(out.bits() + 16);
  Monotone(mpfr_log, true, exponent, x);
  MultiplyIntervals(exponent, exponent, y);
  Monotone(mpfr_exp, true, out, exponent);
}

// Away from the negative half of the line y = 0 the function rises or falls
// along each side of a box: its ends lie at the corners.
void SetAtan2(RealInterval& out, const RealInterval& y, const RealInterval& x) {
  if (x.IsPoint() && y.IsPoint()) {
    return out.EncloseRounded(
        mpfr_atan2(out.low(), y.low(), x.low(), MPFR_RNDN));
  }
  if (x.HasInfinity() && y.HasInfinity()) {
    return out.SetUndecided(kMeetingInfinities);
  }
  if (y.HasZero() && SignOf(x) <= 0) {
    return out.SetUndecided("the angle may jump from pi to -pi");
  }
  RealInterval corner(out.bits());
  bool first = true;
  for (mpfr_srcptr v : {y.low(), y.high()}) {
    for (mpfr_srcptr u : {x.low(), x.high()}) {
      mpfr_atan2(corner.low(), v, u, MPFR_RNDD);
      mpfr_atan2(corner.high(), v, u, MPFR_RNDU);
      if (first || mpfr_less_p(corner.low(), out.low())) {
        mpfr_set(out.low(), corner.low(), MPFR_RNDD);
      }
      if (first || mpfr_greater_p(corner.high(), out.high())) {
        mpfr_set(out.high(), corner.high(), MPFR_RNDU);
      }
      first = false;
    }
  }
  out.CheckBounds();
}

void SetCopysign(RealInterval& out, const RealInterval& a,
                 const RealInterval& b) {
  if (a.undecided() != nullptr || b.undecided() != nullptr || a.IsNaN()) {
    IsSettledBy(out, a, b);
    return;
  }
  const bool known = b.IsNumber() && (SignOf(b) != 0 || b.IsPoint());
  if (!known) return out.SetUndecided(kZeroSign);
  const bool negative = mpfr_signbit(b.low()) != 0;
  RealInterval size(a.bits());
  if (a.IsPoint()) {
    OfPoint(mpfr_abs, size, a);
  } else {
    mpfi_abs(size.get(), a.get());
    // The sign of a zero is that of b.
    if (mpfr_zero_p(size.low())) mpfr_set_zero(size.low(), 1);
    if (mpfr_zero_p(size.high())) mpfr_set_zero(size.high(), 1);
  }
  Monotone(negative ? mpfr_neg : mpfr_set, !negative, out, size);
}

}  // namespace

void AddIntervals(RealInterval& out, const RealInterval& a,
                  const RealInterval& b) {
  if (IsSettledBy(out, a, b)) return;
  if (a.IsPoint() && b.IsPoint()) {
    return out.EncloseRounded(mpfr_add(out.low(), a.low(), b.low(), MPFR_RNDN));
  }
  const auto meet = [](mpfr_srcptr low, mpfr_srcptr high) {
    return mpfr_inf_p(low) && mpfr_inf_p(high) && mpfr_sgn(low) < 0 &&
           mpfr_sgn(high) > 0;
  };
  if (meet(a.low(), b.high()) || meet(b.low(), a.high())) {
    return out.SetUndecided(kMeetingInfinities);
  }
  mpfi_add(out.get(), a.get(), b.get());
  out.CheckBounds();
}

void MultiplyIntervals(RealInterval& out, const RealInterval& a,
                       const RealInterval& b) {
  if (IsSettledBy(out, a, b)) return;
  if (a.IsPoint() && b.IsPoint()) {
    return out.EncloseRounded(mpfr_mul(out.low(), a.low(), b.low(), MPFR_RNDN));
  }
  if ((a.HasZero() && b.HasInfinity()) || (b.HasZero() && a.HasInfinity())) {
    return out.SetUndecided(kZeroTimesInfinity);
  }
  if ((IsZeroPoint(a) && SignOf(b) != 0) ||
      (IsZeroPoint(b) && SignOf(a) != 0)) {
    return SetZero(out, mpfr_signbit(a.low()) != mpfr_signbit(b.low()));
  }
  mpfi_mul(out.get(), a.get(), b.get());
  out.CheckBounds();
}

void DivideIntervals(RealInterval& out, const RealInterval& a,
                     const RealInterval& b) {
  if (IsSettledBy(out, a, b)) return;
  if (a.IsPoint() && b.IsPoint()) {
    return out.EncloseRounded(mpfr_div(out.low(), a.low(), b.low(), MPFR_RNDN));
  }
  const bool negative = mpfr_signbit(a.low()) != mpfr_signbit(b.low());
  if (b.HasZero()) {
    if (IsZeroPoint(b) && SignOf(a) != 0) return SetInfinity(out, negative);
    return out.SetUndecided(kByZero);
  }
  if (a.HasInfinity() && b.HasInfinity()) {
    return out.SetUndecided(kMeetingInfinities);
  }
  if (IsZeroPoint(a)) return SetZero(out, negative);
  mpfi_div(out.get(), a.get(), b.get());
  out.CheckBounds();
}

void FmaIntervals(RealInterval& out, const RealInterval& a,
                  const RealInterval& b, const RealInterval& c) {
  if (a.IsPoint() && b.IsPoint() && c.IsPoint()) {
    return out.EncloseRounded(
        mpfr_fma(out.low(), a.low(), b.low(), c.low(), MPFR_RNDN));
  }
  RealInterval product(out.bits() + 8);
  MultiplyIntervals(product, a, b);
  AddIntervals(out, product, c);
}

void ScaleInterval(RealInterval& out, const RealInterval& x, int64_t exponent) {
  if (IsSettledBy(out, x, x)) return;
  if (x.IsPoint()) {
    return out.EncloseRounded(
        mpfr_mul_2si(out.low(), x.low(), exponent, MPFR_RNDN));
  }
  mpfr_mul_2si(out.low(), x.low(), exponent, MPFR_RNDD);
  mpfr_mul_2si(out.high(), x.high(), exponent, MPFR_RNDU);
  out.CheckBounds();
}

void MaxOfIntervals(RealInterval& out, bool max, const RealInterval& a,
                    const RealInterval& b) {
  if (IsSettledBy(out, a, b)) return;
  const auto of = [max](mpfr_srcptr p, mpfr_srcptr q) {
    if (mpfr_equal_p(p, q)) return (mpfr_signbit(p) != 0) == max ? q : p;
    return (mpfr_less_p(p, q) != 0) == max ? q : p;
  };
  // Both bounds first: `out` may be an operand.
  const mpfr_srcptr low = of(a.low(), b.low());
  const mpfr_srcptr high = of(a.high(), b.high());
  RealInterval result(out.bits());
  mpfr_set(result.low(), low, MPFR_RNDD);
  mpfr_set(result.high(), high, MPFR_RNDU);
  const bool points = a.IsPoint() && b.IsPoint();
  if (!points) result.CheckBounds();
  out = std::move(result);
}

void PowerInterval(RealInterval& out, const RealInterval& x, long n) {
  if (x.IsPoint()) {
    return out.EncloseRounded(mpfr_pow_si(out.low(), x.low(), n, MPFR_RNDN));
  }
  const auto power = [n](RealInterval& result, mpfr_srcptr low,
                         mpfr_srcptr high) {
    mpfr_pow_si(result.low(), low, n, MPFR_RNDD);
    mpfr_pow_si(result.high(), high, n, MPFR_RNDU);
    result.CheckBounds();
  };
  if (n % 2 != 0) {
    // Rises for n > 0, falls on each side of 0 for n < 0.
    return n > 0 ? power(out, x.low(), x.high())
                 : power(out, x.high(), x.low());
  }
  RealInterval size(x.bits());
  mpfi_abs(size.get(), x.get());
  return n > 0 ? power(out, size.low(), size.high())
               : power(out, size.high(), size.low());
}

bool UnaryInterval(Primitive primitive, RealInterval& out,
                   const RealInterval& x) {
  const MonotoneFunction* const monotone = FindMonotone(primitive);
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kCosh:
    case Primitive::kSin:
    case Primitive::kCos:
    case Primitive::kTan:
    case Primitive::kSign:
    case Primitive::kFloor:
    case Primitive::kCeil:
    case Primitive::kRoundNearestEven:
    case Primitive::kRsqrt:
    case Primitive::kSigmoid:
    case Primitive::kErfinv:
    case Primitive::kLgamma:
      break;
    default:
      if (monotone == nullptr) return false;
  }
  if (IsSettledBy(out, x, x)) return true;
  if (monotone != nullptr) {
    if (mpfr_cmp_d(x.high(), monotone->least) < 0 ||
        mpfr_cmp_d(x.low(), monotone->greatest) > 0) {
      out.SetNaN();
    } else if (mpfr_cmp_d(x.low(), monotone->least) < 0 ||
               mpfr_cmp_d(x.high(), monotone->greatest) > 0) {
      out.SetUndecided(kDomain);
    } else {
      Monotone(monotone->function, monotone->rises, out, x);
    }
    return true;
  }
  switch (primitive) {
    case Primitive::kAbs:
      if (x.IsPoint()) {
        OfPoint(mpfr_abs, out, x);
      } else {
        mpfi_abs(out.get(), x.get());
        out.CheckBounds();
      }
      return true;
    case Primitive::kCosh:
      SetCosh(out, x);
      return true;
    case Primitive::kSign:
      SetSign(out, x);
      return true;
    case Primitive::kRsqrt:
      SetRsqrt(out, x);
      return true;
    case Primitive::kSigmoid:
      SetSigmoid(out, x);
      return true;
    case Primitive::kErfinv:
      ErfinvInterval(out, x);
      return true;
    case Primitive::kLgamma:
      LgammaInterval(out, x);
      return true;
    case Primitive::kSin:
    case Primitive::kCos:
    case Primitive::kTan:
      SetPeriodic(primitive, out, x);
      return true;
    default:
      ToIntegers(primitive, out, x);
      return true;
  }
}

absl::Status BinaryInterval(Primitive primitive, RealInterval& out,
                            const RealInterval& a, const RealInterval& b) {
  switch (primitive) {
    case Primitive::kAdd:
      AddIntervals(out, a, b);
      return absl::OkStatus();
    case Primitive::kSub: {
      if (IsSettledBy(out, a, b)) return absl::OkStatus();
      RealInterval opposite(b.bits());
      Monotone(mpfr_neg, false, opposite, b);
      AddIntervals(out, a, opposite);
      return absl::OkStatus();
    }
    case Primitive::kMul:
      MultiplyIntervals(out, a, b);
      return absl::OkStatus();
    case Primitive::kDiv:
      DivideIntervals(out, a, b);
      return absl::OkStatus();
    case Primitive::kRem:
      if (!IsSettledBy(out, a, b)) SetRem(out, a, b);
      return absl::OkStatus();
    case Primitive::kPow:
      SetPow(out, a, b);
      return absl::OkStatus();
    case Primitive::kAtan2:
      if (!IsSettledBy(out, a, b)) SetAtan2(out, a, b);
      return absl::OkStatus();
    case Primitive::kCopysign:
      SetCopysign(out, a, b);
      return absl::OkStatus();
    case Primitive::kPolygamma:
      return PolygammaInterval(out, a, b);
    default:
      return absl::InternalError(
          absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
  }
}

}  // namespace cleave
