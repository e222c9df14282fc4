// erfinv, lgamma and polygamma of intervals.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/reference/interval_functions.h"
#include "ops/reference/real_functions.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr char kPole[] = "a pole may lie within";
constexpr char kInfiniteBound[] = "a bound is infinite";
constexpr char kDomain[] = "an argument may lie outside of the domain";

// Whether all numbers lie beyond 0 or between two poles 0, -1, -2, ..
bool IsBetweenPoles(const RealInterval& x) {
  if (mpfr_sgn(x.low()) > 0) return true;
  if (mpfr_sgn(x.high()) >= 0 || mpfr_integer_p(x.low()) ||
      mpfr_integer_p(x.high())) {
    return false;
  }
  Real low(x.bits());
  Real high(x.bits());
  mpfr_floor(low.get(), x.low());
  mpfr_floor(high.get(), x.high());
  return mpfr_equal_p(low.get(), high.get()) != 0;
}

// Sets `out` to bounds y (1 - 2^-known) and y (1 + 2^-known) of the root
// y > 0 of erf(y) = x, for 0 < x < 1. False if these values of erf, or of erfc
// near x = 1, do not lie on both sides of x.
bool BoundErfinv(RealInterval& out, const Real& y, mpfr_srcptr x, int known) {
  Real low(y.bits());
  Real high(y.bits());
  Real width(y.bits());
  mpfr_div_2ui(width.get(), y.get(), known, MPFR_RNDU);
  mpfr_sub(low.get(), y.get(), width.get(), MPFR_RNDD);
  mpfr_add(high.get(), y.get(), width.get(), MPFR_RNDU);
  Real at_low(y.bits());
  Real at_high(y.bits());
  bool holds;
  if (mpfr_cmp_d(x, 0.5) <= 0) {
    mpfr_erf(at_low.get(), low.get(), MPFR_RNDU);
    mpfr_erf(at_high.get(), high.get(), MPFR_RNDD);
    holds =
        mpfr_lessequal_p(at_low.get(), x) && mpfr_lessequal_p(x, at_high.get());
  } else {
    Real rest(static_cast<int>(mpfr_get_prec(x)));  // exact
    mpfr_ui_sub(rest.get(), 1, x, MPFR_RNDN);
    mpfr_erfc(at_low.get(), low.get(), MPFR_RNDD);
    mpfr_erfc(at_high.get(), high.get(), MPFR_RNDU);
    holds = mpfr_greaterequal_p(at_low.get(), rest.get()) &&
            mpfr_greaterequal_p(rest.get(), at_high.get());
  }
  if (!holds) return false;
  mpfr_set(out.low(), low.get(), MPFR_RNDD);
  mpfr_set(out.high(), high.get(), MPFR_RNDU);
  out.CheckBounds();
  return true;
}

void ErfinvAt(RealInterval& out, mpfr_srcptr x) {
  if (mpfr_zero_p(x) || mpfr_cmpabs_ui(x, 1) >= 0) {
    RealErfinv(out.low(), x);
    return out.EncloseRounded(0);
  }
  const int bits =
      std::max(out.bits(), static_cast<int>(mpfr_get_prec(x))) + 64;
  Real size(static_cast<int>(mpfr_get_prec(x)));
  mpfr_abs(size.get(), x, MPFR_RNDN);
  Real y(bits);
  RealErfinv(y.get(), size.get());
  for (int known = out.bits() + 8; known > 8; known -= 24) {
    if (!BoundErfinv(out, y, size.get(), known)) continue;
    if (mpfr_sgn(x) < 0) {
      mpfr_swap(out.low(), out.high());
      mpfr_neg(out.low(), out.low(), MPFR_RNDN);
      mpfr_neg(out.high(), out.high(), MPFR_RNDN);
    }
    return;
  }
  out.SetUndecided("the root of erf was not enclosed");
}

// The values of digamma, which rises between poles.
void DigammaOver(RealInterval& out, const RealInterval& x) {
  mpfr_digamma(out.low(), x.low(), MPFR_RNDD);
  mpfr_digamma(out.high(), x.high(), MPFR_RNDU);
  out.CheckBounds();
}

int LogOfGamma(mpfr_ptr out, mpfr_srcptr x, mpfr_rnd_t rounding) {
  int sign;
  return mpfr_lgamma(out, &sign, x, rounding);
}

// B_2j / (2j)! = (-1)^(j+1) 2 zeta(2j) / (2 pi)^2j.
RealInterval BernoulliOverFactorial(unsigned long j, int bits) {
  RealInterval power(bits);
  mpfi_const_pi(power.get());
  mpfi_mul_2ui(power.get(), power.get(), 1);
  PowerInterval(power, power, -2 * static_cast<long>(j));
  RealInterval zeta(bits);
  mpfr_zeta_ui(zeta.low(), 2 * j, MPFR_RNDD);
  mpfr_zeta_ui(zeta.high(), 2 * j, MPFR_RNDU);
  mpfi_mul_2ui(zeta.get(), zeta.get(), 1);
  MultiplyIntervals(power, power, zeta);
  if (j % 2 == 0) mpfi_neg(power.get(), power.get());
  return power;
}

// Adds [0, most] or [most, 0], by the sign of `most`.
void AddUpTo(RealInterval& sum, const RealInterval& most) {
  RealInterval part = most;
  if (mpfr_sgn(part.low()) > 0) mpfr_set_zero(part.low(), 1);
  if (mpfr_sgn(part.high()) < 0) mpfr_set_zero(part.high(), -1);
  mpfi_add(sum.get(), sum.get(), part.get());
}

// The sum over k >= 0 of (x + k)^-s for x between poles and s >= 2: terms until
// the integral beyond them is negligible, or until Euler and Maclaurin's
// formula gives the rest, whose error is less than the first term that is left
// out, and of its sign. False where that takes too many terms.
absl::StatusOr<bool> SumOfPowers(RealInterval& out, unsigned long s,
                                 const RealInterval& x) {
  constexpr unsigned long kMostTerms = 20000;
  const int bits = out.bits() + 32;
  const unsigned long enough = s + 3 * bits / 10 + 10;
  RealInterval a(bits), term(bits), rest(bits), sum(bits);
  const auto negligible = [&](const RealInterval& part) {
    return mpfr_zero_p(sum.high()) == 0 &&
           (mpfr_zero_p(part.high()) ||
            mpfr_get_exp(part.high()) < mpfr_get_exp(sum.high()) - bits);
  };
  for (unsigned long k = 0;; ++k) {
    if (k == kMostTerms) return false;
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    mpfi_add_ui(a.get(), x.get(), k);
    PowerInterval(term, a, -static_cast<long>(s));
    const bool positive = mpfr_sgn(a.low()) > 0;
    if (positive) {
      // The terms that follow sum to less than the integral a^(1-s) / (s - 1).
      mpfi_mul(rest.get(), term.get(), a.get());
      mpfi_div_ui(rest.get(), rest.get(), s - 1);
      if (mpfr_cmp_ui(a.low(), enough) >= 0) break;
    }
    mpfi_add(sum.get(), sum.get(), term.get());
    if (positive && negligible(rest)) {
      AddUpTo(sum, rest);
      mpfi_set(out.get(), sum.get());
      return true;
    }
  }
  mpfi_add(sum.get(), sum.get(), rest.get());
  mpfi_div_2ui(rest.get(), term.get(), 1);
  mpfi_add(sum.get(), sum.get(), rest.get());
  // s (s + 1) .. (s + 2j - 2) a^(-s - 2j + 1)
  mpfi_mul_ui(term.get(), term.get(), s);
  mpfi_div(term.get(), term.get(), a.get());
  RealInterval square(bits);
  mpfi_sqr(square.get(), a.get());
  for (unsigned long j = 1;; ++j) {
    MultiplyIntervals(rest, term, BernoulliOverFactorial(j, bits));
    RealInterval size(bits);
    mpfi_abs(size.get(), rest.get());
    if (negligible(size) || j == static_cast<unsigned long>(bits)) {
      AddUpTo(sum, rest);
      mpfi_set(out.get(), sum.get());
      return true;
    }
    mpfi_add(sum.get(), sum.get(), rest.get());
    mpfi_mul_ui(term.get(), term.get(), s + 2 * j - 1);
    mpfi_mul_ui(term.get(), term.get(), s + 2 * j);
    mpfi_div(term.get(), term.get(), square.get());
  }
}

}  // namespace

void ErfinvInterval(RealInterval& out, const RealInterval& x) {
  if (mpfr_cmp_si(x.high(), -1) < 0 || mpfr_cmp_si(x.low(), 1) > 0) {
    return out.SetNaN();
  }
  if (mpfr_cmp_si(x.low(), -1) < 0 || mpfr_cmp_si(x.high(), 1) > 0) {
    return out.SetUndecided(kDomain);
  }
  ErfinvAt(out, x.low());
  if (x.IsPoint()) return;
  RealInterval high(out.bits());
  ErfinvAt(high, x.high());
  if (out.undecided() != nullptr || high.undecided() != nullptr) {
    return out.SetUndecided("the root of erf was not enclosed");
  }
  mpfr_set(out.high(), high.high(), MPFR_RNDU);
  out.CheckBounds();
}

// Between poles the function is convex: where its slope changes sign, it is
// within f(c) + f'([x]) ([x] - c).
void LgammaInterval(RealInterval& out, const RealInterval& x) {
  if (x.IsPoint()) {
    return out.EncloseRounded(LogOfGamma(out.low(), x.low(), MPFR_RNDN));
  }
  if (x.HasInfinity()) return out.SetUndecided(kInfiniteBound);
  if (!IsBetweenPoles(x)) return out.SetUndecided(kPole);
  RealInterval slope(out.bits());
  DigammaOver(slope, x);
  if (mpfr_sgn(slope.low()) >= 0 || mpfr_sgn(slope.high()) <= 0) {
    const bool rises = mpfr_sgn(slope.low()) >= 0;
    LogOfGamma(out.low(), rises ? x.low() : x.high(), MPFR_RNDD);
    LogOfGamma(out.high(), rises ? x.high() : x.low(), MPFR_RNDU);
    return out.CheckBounds();
  }
  RealInterval center(x.bits());
  mpfi_mid(center.low(), x.get());
  center.EncloseRounded(0);
  RealInterval value(out.bits());
  value.EncloseRounded(LogOfGamma(value.low(), center.low(), MPFR_RNDN));
  RealInterval offset(x.bits());
  mpfi_sub(offset.get(), x.get(), center.get());
  FmaIntervals(out, slope, offset, value);
}

absl::Status PolygammaInterval(RealInterval& out, const RealInterval& m,
                               const RealInterval& x) {
  for (const RealInterval* v : {&m, &x}) {
    if (v->undecided() == nullptr) continue;
    out.SetUndecided(v->undecided());
    return absl::OkStatus();
  }
  if (m.IsNumber() && !mpfr_equal_p(m.low(), m.high())) {
    out.SetUndecided("the order is not known");
    return absl::OkStatus();
  }
  const bool is_point = x.IsPoint();
  const bool special =
      is_point && (!mpfr_number_p(x.low()) || mpfr_zero_p(x.low()) ||
                   (mpfr_sgn(x.low()) < 0 && mpfr_integer_p(x.low())));
  if (m.IsNaN() || x.IsNaN() || !mpfr_integer_p(m.low()) ||
      mpfr_sgn(m.low()) < 0 || special ||
      mpfr_cmp_ui(m.low(), kMaxPolygammaOrder) > 0) {
    // NaN, an infinity or a zero, without rounding; or an error.
    CLEAVE_RETURN_IF_ERROR(RealPolygamma(out.low(), m.low(), x.low()));
    out.EncloseRounded(0);
    return absl::OkStatus();
  }
  const unsigned long order = mpfr_get_ui(m.low(), MPFR_RNDN);
  if (is_point && order == 0) {
    out.EncloseRounded(mpfr_digamma(out.low(), x.low(), MPFR_RNDN));
    return absl::OkStatus();
  }
  if (x.HasInfinity() || !IsBetweenPoles(x)) {
    out.SetUndecided(x.HasInfinity() ? kInfiniteBound : kPole);
    return absl::OkStatus();
  }
  if (order == 0) {
    DigammaOver(out, x);
    return absl::OkStatus();
  }
  // (-1)^(m+1) m! zeta(m + 1, x). At negative numbers the terms cancel: more
  // bits, until they do not, where x has no width.
  RealInterval sum;
  for (int attempt = 0; attempt < 4; ++attempt) {
    sum = RealInterval((out.bits() + 16) << attempt);
    CLEAVE_ASSIGN_OR_RETURN(const bool enclosed,
                            SumOfPowers(sum, order + 1, x));
    if (!enclosed) {
      out.SetUndecided("the series has too many terms");
      return absl::OkStatus();
    }
    if (!is_point || sum.KnownBits() >= out.bits()) break;
  }
  sum.CheckBounds();
  RealInterval factorial(out.bits() + 16);
  mpfr_fac_ui(factorial.low(), order, MPFR_RNDD);
  mpfr_fac_ui(factorial.high(), order, MPFR_RNDU);
  MultiplyIntervals(out, sum, factorial);
  if (order % 2 == 0) {
    mpfi_neg(out.get(), out.get());
    out.CheckBounds();
  }
  return absl::OkStatus();
}

}  // namespace cleave
