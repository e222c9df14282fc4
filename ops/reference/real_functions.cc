#include "ops/reference/real_functions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// An MPFR number for intermediate results.
class Temporary {
 public:
  explicit Temporary(mpfr_prec_t bits) { mpfr_init2(value_, bits); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() { mpfr_clear(value_); }
  operator mpfr_ptr() { return value_; }  // NOLINT: it is one.

 private:
  mpfr_t value_;
};

void SetSigmoid(mpfr_ptr out, mpfr_srcptr x) {
  // e^-|x| does not overflow: 1 / (1 + e) for x >= 0, e / (1 + e) else.
  const mpfr_prec_t bits = mpfr_get_prec(out) + 16;
  Temporary e(bits), sum(bits);
  mpfr_abs(e, x, MPFR_RNDN);
  mpfr_neg(sum, x, MPFR_RNDN);
  const bool negative = mpfr_signbit(x) && !mpfr_nan_p(x);
  mpfr_exp(e, negative ? x : static_cast<mpfr_srcptr>(sum), MPFR_RNDN);
  mpfr_add_ui(sum, e, 1, MPFR_RNDN);
  if (negative) {
    mpfr_div(out, e, sum, MPFR_RNDN);
  } else {
    mpfr_ui_div(out, 1, sum, MPFR_RNDN);
  }
}

// Newton steps square the error: what one of this size leaves is beyond the
// last bit of y.
bool IsLastStep(mpfr_srcptr step, mpfr_srcptr y) {
  return mpfr_zero_p(step) ||
         mpfr_get_exp(step) < mpfr_get_exp(y) - mpfr_get_prec(y) / 2 - 8;
}

// sqrt(pi) / 2: erf'(y) = exp(-y^2) over it.
void SetHalfRootOfPi(mpfr_ptr out) {
  mpfr_const_pi(out, MPFR_RNDN);
  mpfr_sqrt(out, out, MPFR_RNDN);
  mpfr_div_2ui(out, out, 1, MPFR_RNDN);
}

// A Newton step from `y` to the root of erf(y) = x, for 0 < |x| <= 1/2, in the
// precision of `y`; the step itself is left in `step`.
void StepErf(mpfr_ptr y, mpfr_srcptr x, mpfr_ptr step) {
  const mpfr_prec_t bits = mpfr_get_prec(y);
  Temporary slope(bits), half(bits);
  SetHalfRootOfPi(half);
  mpfr_erf(step, y, MPFR_RNDN);
  mpfr_sub(step, step, x, MPFR_RNDN);
  mpfr_sqr(slope, y, MPFR_RNDN);
  mpfr_exp(slope, slope, MPFR_RNDN);
  mpfr_mul(step, step, slope, MPFR_RNDN);
  mpfr_mul(step, step, half, MPFR_RNDN);
  mpfr_sub(y, y, step, MPFR_RNDN);
}

// The same for erfc(y) = t, for 0 < t < 1/2, by the logarithm of both sides,
// which is nearly linear in y^2.
void StepErfc(mpfr_ptr y, mpfr_srcptr t, mpfr_ptr step) {
  const mpfr_prec_t bits = mpfr_get_prec(y);
  Temporary slope(bits), erfc(bits), half(bits), log_t(bits);
  SetHalfRootOfPi(half);
  mpfr_log(log_t, t, MPFR_RNDN);
  // (log erfc(y))' = -exp(-y^2) / (sqrt(pi) / 2 erfc(y))
  mpfr_erfc(erfc, y, MPFR_RNDN);
  mpfr_log(step, erfc, MPFR_RNDN);
  mpfr_sub(step, step, log_t, MPFR_RNDN);
  mpfr_sqr(slope, y, MPFR_RNDN);
  mpfr_exp(slope, slope, MPFR_RNDN);
  mpfr_mul(slope, slope, erfc, MPFR_RNDN);
  mpfr_mul(slope, slope, half, MPFR_RNDN);
  mpfr_mul(step, step, slope, MPFR_RNDN);
  mpfr_add(y, y, step, MPFR_RNDN);
}

// The root by Newton's steps from the guess in `y`: as many as it takes in few
// bits, then one in each precision up to `bits`, since each doubles what is
// right.
void SolveByNewton(mpfr_ptr y, mpfr_prec_t bits, mpfr_srcptr target,
                   void (*take)(mpfr_ptr, mpfr_srcptr, mpfr_ptr)) {
  constexpr mpfr_prec_t kFewBits = 80;
  // Of each doubling, for the rounding of the step and its constant.
  constexpr mpfr_prec_t kLostBits = 20;
  mpfr_prec_round(y, kFewBits, MPFR_RNDN);
  for (int i = 0; i < 64; ++i) {
    Temporary step(kFewBits);
    take(y, target, step);
    if (IsLastStep(step, y)) break;
  }
  for (mpfr_prec_t known = kFewBits; known < bits;) {
    known = std::min(bits, 2 * known - kLostBits);
    mpfr_prec_round(y, known, MPFR_RNDN);
    Temporary step(known);
    take(y, target, step);
  }
}

// The coefficient B_2j / (2j)! of Euler and Maclaurin's formula:
// (-1)^(j+1) 2 zeta(2j) / (2 pi)^2j. Kept, since each call needs dozens.
mpfr_srcptr BernoulliOverFactorial(unsigned long j, mpfr_prec_t bits) {
  using Table = std::vector<std::unique_ptr<Temporary>>;
  thread_local std::map<mpfr_prec_t, Table> tables;
  Table& table = tables[bits];
  while (table.size() <= j) {
    const unsigned long k = table.size();
    auto value = std::make_unique<Temporary>(bits);
    if (k == 0) {
      mpfr_set_ui(*value, 1, MPFR_RNDN);
    } else {
      Temporary power(bits);
      mpfr_const_pi(power, MPFR_RNDN);
      mpfr_mul_2ui(power, power, 1, MPFR_RNDN);
      mpfr_pow_ui(power, power, 2 * k, MPFR_RNDN);
      mpfr_zeta_ui(*value, 2 * k, MPFR_RNDN);
      mpfr_mul_2ui(*value, *value, 1, MPFR_RNDN);
      mpfr_div(*value, *value, power, MPFR_RNDN);
      if (k % 2 == 0) mpfr_neg(*value, *value, MPFR_RNDN);
    }
    table.push_back(std::move(value));
  }
  return static_cast<mpfr_ptr>(*table[j]);
}

// out = zeta(s, q) = sum over k >= 0 of (q + k)^-s, for s >= 2 and q > 0: terms
// until what is left is negligible, or until q + k is so large that Euler and
// Maclaurin's formula gives the rest.
void HurwitzZeta(mpfr_ptr out, unsigned long s, mpfr_srcptr q) {
  const mpfr_prec_t bits = mpfr_get_prec(out);
  Temporary a(bits), term(bits), rest(bits), sum(bits);
  mpfr_set(a, q, MPFR_RNDN);
  mpfr_set_zero(sum, 1);
  const unsigned long enough = s + 3 * bits / 10 + 10;
  const auto negligible = [&](mpfr_srcptr x) {
    return mpfr_zero_p(x) || mpfr_get_exp(x) < mpfr_get_exp(sum) - bits - 2;
  };
  while (mpfr_cmp_ui(a, enough) < 0) {
    mpfr_pow_si(term, a, -static_cast<long>(s), MPFR_RNDN);
    mpfr_add(sum, sum, term, MPFR_RNDN);
    // The rest of the sum is below the integral a^(1-s) / (s - 1).
    mpfr_mul(rest, term, a, MPFR_RNDN);
    mpfr_div_ui(rest, rest, s - 1, MPFR_RNDN);
    if (negligible(rest)) {
      mpfr_set(out, sum, MPFR_RNDN);
      return;
    }
    // q + k from q itself, so that the error of `a` does not grow; a tiny q
    // is lost in its sum with 1, as it should be.
    mpfr_add_ui(a, a, 1, MPFR_RNDN);
  }
  mpfr_pow_si(term, a, -static_cast<long>(s), MPFR_RNDN);
  mpfr_mul(rest, term, a, MPFR_RNDN);
  mpfr_div_ui(rest, rest, s - 1, MPFR_RNDN);
  mpfr_add(sum, sum, rest, MPFR_RNDN);
  mpfr_div_2ui(rest, term, 1, MPFR_RNDN);
  mpfr_add(sum, sum, rest, MPFR_RNDN);
  // term = s (s + 1) .. (s + 2j - 2) a^(-s - 2j + 1)
  Temporary square(bits);
  mpfr_sqr(square, a, MPFR_RNDN);
  mpfr_mul_ui(term, term, s, MPFR_RNDN);
  mpfr_div(term, term, a, MPFR_RNDN);
  for (unsigned long j = 1; j < static_cast<unsigned long>(bits); ++j) {
    mpfr_mul(rest, term, BernoulliOverFactorial(j, bits), MPFR_RNDN);
    mpfr_add(sum, sum, rest, MPFR_RNDN);
    if (negligible(rest)) break;
    mpfr_mul_ui(term, term, s + 2 * j - 1, MPFR_RNDN);
    mpfr_mul_ui(term, term, s + 2 * j, MPFR_RNDN);
    mpfr_div(term, term, square, MPFR_RNDN);
  }
  mpfr_set(out, sum, MPFR_RNDN);
}

// sum over k >= 0 of (x + k)^-s for x < 0, no integer. With n = floor(-x) + 1,
// f = x + n in (0, 1) and g = 1 - f, the n negative terms are
// (-1)^s (zeta(s, g) - zeta(s, g + n)). False if the three cancel so much that
// more bits are needed.
bool NegativeZeta(mpfr_ptr out, unsigned long s, mpfr_srcptr x) {
  const mpfr_prec_t bits = mpfr_get_prec(out);
  Temporary n(bits), f(bits), g(bits), far(bits), sum(bits);
  mpfr_neg(n, x, MPFR_RNDN);
  mpfr_floor(n, n);
  mpfr_add(g, x, n, MPFR_RNDN);
  mpfr_neg(g, g, MPFR_RNDN);
  mpfr_add_ui(n, n, 1, MPFR_RNDN);
  mpfr_add(f, x, n, MPFR_RNDN);
  mpfr_add(far, g, n, MPFR_RNDN);
  HurwitzZeta(far, s, far);
  HurwitzZeta(g, s, g);
  HurwitzZeta(f, s, f);
  const mpfr_exp_t largest = std::max(mpfr_get_exp(f), mpfr_get_exp(g));
  mpfr_sub(sum, g, far, MPFR_RNDN);
  if (s % 2 == 0) {
    mpfr_add(out, f, sum, MPFR_RNDN);
  } else {
    mpfr_sub(out, f, sum, MPFR_RNDN);
  }
  return !mpfr_zero_p(out) && mpfr_get_exp(out) > largest - 32;
}

}  // namespace

void RealErfinv(mpfr_ptr out, mpfr_srcptr x) {
  if (mpfr_nan_p(x) || mpfr_cmpabs_ui(x, 1) > 0) {
    mpfr_set_nan(out);
    return;
  }
  const int sign = mpfr_signbit(x) ? -1 : 1;
  if (mpfr_zero_p(x)) {
    mpfr_set_zero(out, sign);
    return;
  }
  if (mpfr_cmpabs_ui(x, 1) == 0) {
    mpfr_set_inf(out, sign);
    return;
  }
  const mpfr_prec_t bits = std::max(mpfr_get_prec(out), mpfr_get_prec(x)) + 32;
  Temporary target(bits), y(bits);
  mpfr_abs(target, x, MPFR_RNDN);
  if (mpfr_cmp_d(target, 0.5) <= 0) {
    mpfr_mul_d(y, target, 0.886226925452758, MPFR_RNDN);
    SolveByNewton(y, bits, target, StepErf);
  } else {
    mpfr_ui_sub(target, 1, target, MPFR_RNDN);
    mpfr_log(y, target, MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_sqrt(y, y, MPFR_RNDN);
    SolveByNewton(y, bits, target, StepErfc);
  }
  mpfr_setsign(out, y, sign < 0, MPFR_RNDN);
}

absl::Status RealPolygamma(mpfr_ptr out, mpfr_srcptr m, mpfr_srcptr x) {
  if (mpfr_nan_p(x) || !mpfr_integer_p(m) || mpfr_sgn(m) < 0 ||
      (mpfr_inf_p(x) && mpfr_sgn(x) < 0)) {
    mpfr_set_nan(out);
    return absl::OkStatus();
  }
  if (mpfr_cmp_ui(m, kMaxPolygammaOrder) > 0) {
    return absl::UnimplementedError(absl::StrCat("`polygamma`: orders above ",
                                                 kMaxPolygammaOrder,
                                                 " are not supported"));
  }
  const unsigned long order = mpfr_get_ui(m, MPFR_RNDN);
  const bool odd = order % 2 == 1;
  if (mpfr_zero_p(x)) {
    mpfr_set_inf(out, odd || mpfr_signbit(x) ? 1 : -1);
    return absl::OkStatus();
  }
  if (mpfr_integer_p(x) && mpfr_sgn(x) < 0) {
    if (odd) {
      mpfr_set_inf(out, 1);
    } else {
      mpfr_set_nan(out);
    }
    return absl::OkStatus();
  }
  if (order == 0) {
    mpfr_digamma(out, x, MPFR_RNDN);
    return absl::OkStatus();
  }
  // (-1)^(m+1) m! zeta(m + 1, x)
  if (mpfr_inf_p(x)) {
    mpfr_set_zero(out, odd ? 1 : -1);
    return absl::OkStatus();
  }
  mpfr_prec_t bits = std::max(mpfr_get_prec(out), mpfr_get_prec(x)) + 64;
  if (mpfr_sgn(x) > 0) {
    Temporary zeta(bits), factorial(bits);
    HurwitzZeta(zeta, order + 1, x);
    mpfr_fac_ui(factorial, order, MPFR_RNDN);
    mpfr_mul(zeta, zeta, factorial, MPFR_RNDN);
    mpfr_setsign(out, zeta, !odd, MPFR_RNDN);
    return absl::OkStatus();
  }
  // Near the zeros of an even order the terms cancel: more bits, until they
  // do not, or the value is as small as rounding x itself makes it.
  for (int attempt = 0;; ++attempt, bits *= 2) {
    Temporary sum(bits), factorial(bits);
    const bool enough = NegativeZeta(sum, order + 1, x);
    if (!enough && attempt < 3) continue;
    mpfr_fac_ui(factorial, order, MPFR_RNDN);
    mpfr_mul(sum, sum, factorial, MPFR_RNDN);
    if (!odd) mpfr_neg(sum, sum, MPFR_RNDN);
    mpfr_set(out, sum, MPFR_RNDN);
    return absl::OkStatus();
  }
}

bool RealUnary(Primitive primitive, mpfr_ptr out, mpfr_srcptr x) {
  switch (primitive) {
#define CLEAVE_UNARY(enumerator, call) \
  case Primitive::enumerator:          \
    call(out, x, MPFR_RNDN);           \
    return true
    CLEAVE_UNARY(kAbs, mpfr_abs);
    CLEAVE_UNARY(kNeg, mpfr_neg);
    CLEAVE_UNARY(kExp, mpfr_exp);
    CLEAVE_UNARY(kExpm1, mpfr_expm1);
    CLEAVE_UNARY(kLog, mpfr_log);
    CLEAVE_UNARY(kLog1p, mpfr_log1p);
    CLEAVE_UNARY(kSqrt, mpfr_sqrt);
    CLEAVE_UNARY(kCbrt, mpfr_cbrt);
    CLEAVE_UNARY(kSin, mpfr_sin);
    CLEAVE_UNARY(kCos, mpfr_cos);
    CLEAVE_UNARY(kTan, mpfr_tan);
    CLEAVE_UNARY(kAsin, mpfr_asin);
    CLEAVE_UNARY(kAcos, mpfr_acos);
    CLEAVE_UNARY(kAtan, mpfr_atan);
    CLEAVE_UNARY(kSinh, mpfr_sinh);
    CLEAVE_UNARY(kCosh, mpfr_cosh);
    CLEAVE_UNARY(kTanh, mpfr_tanh);
    CLEAVE_UNARY(kAsinh, mpfr_asinh);
    CLEAVE_UNARY(kAcosh, mpfr_acosh);
    CLEAVE_UNARY(kAtanh, mpfr_atanh);
    CLEAVE_UNARY(kErf, mpfr_erf);
    CLEAVE_UNARY(kErfc, mpfr_erfc);
    CLEAVE_UNARY(kNograd, mpfr_set);
    CLEAVE_UNARY(kConvert, mpfr_set);
    CLEAVE_UNARY(kRoundNearestEven, mpfr_rint_roundeven);
#undef CLEAVE_UNARY
    case Primitive::kCeil:
      mpfr_ceil(out, x);
      return true;
    case Primitive::kFloor:
      mpfr_floor(out, x);
      return true;
    case Primitive::kSign:
      // NaN and signed zeros stay.
      mpfr_set(out, x, MPFR_RNDN);
      if (!mpfr_nan_p(x) && !mpfr_zero_p(x)) {
        mpfr_set_si(out, mpfr_sgn(x), MPFR_RNDN);
      }
      return true;
    case Primitive::kRsqrt:
      mpfr_rec_sqrt(out, x, MPFR_RNDN);
      if (mpfr_zero_p(x)) mpfr_set_inf(out, mpfr_signbit(x) ? -1 : 1);
      return true;
    case Primitive::kSigmoid:
      SetSigmoid(out, x);
      return true;
    case Primitive::kErfinv:
      RealErfinv(out, x);
      return true;
    case Primitive::kLgamma: {
      int sign;
      mpfr_lgamma(out, &sign, x, MPFR_RNDN);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace cleave
