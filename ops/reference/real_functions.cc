#include "ops/reference/real_functions.h"

#include <gmpxx.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/reference/real_memo.h"

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

// sqrt(pi) / 2: erf'(y) = exp(-y^2) over it.
void SetHalfRootOfPi(mpfr_ptr out) {
  mpfr_const_pi(out, MPFR_RNDN);
  mpfr_sqrt(out, out, MPFR_RNDN);
  mpfr_div_2ui(out, out, 1, MPFR_RNDN);
}

// The polynomials P of the derivatives of y = erfinv(x):
// y^(k) = g^k P_(k-1)(y), where g = y' = sqrt(pi) / 2 exp(y^2). Since
// g' = 2 y g^2, P_0 = 1 and P_k = P_(k-1)' + 2 k y P_(k-1). Every second
// coefficient is 0: coefficient i is of y^(k - 2 i).
using InverseErfPolynomial = std::vector<mpz_class>;
constexpr int kInverseErfPolynomials = 24;

const std::vector<InverseErfPolynomial>& InverseErfPolynomials() {
  static const auto* const polynomials = [] {
    auto* made = new std::vector<InverseErfPolynomial>{{1}};
    for (int k = 1; k < kInverseErfPolynomials; ++k) {
      const InverseErfPolynomial& last = made->back();
      InverseErfPolynomial next(k / 2 + 1);
      for (size_t i = 0; i < last.size(); ++i) {
        const int power = k - 1 - 2 * static_cast<int>(i);
        next[i] += 2 * k * last[i];
        if (power > 0) next[i + 1] += power * last[i];
      }
      made->push_back(std::move(next));
    }
    return made;
  }();
  return *polynomials;
}

// P_k(y), where `square` is y^2.
void SetInverseErfPolynomial(mpfr_ptr out, int k, mpfr_srcptr y,
                             mpfr_srcptr square) {
  const InverseErfPolynomial& polynomial = InverseErfPolynomials()[k];
  mpfr_set_zero(out, 1);
  for (const mpz_class& coefficient : polynomial) {
    mpfr_mul(out, out, square, MPFR_RNDN);
    mpfr_add_z(out, out, coefficient.get_mpz_t(), MPFR_RNDN);
  }
  if (k % 2 == 1) mpfr_mul(out, out, y, MPFR_RNDN);
}

// Moves `y` by Taylor's series of erfinv to where erf is greater by `by`;
// whether the series came to its end within the precision of `y`. `by` may have
// less precision.
bool MoveAlongErfinv(mpfr_ptr y, mpfr_srcptr by) {
  const mpfr_prec_t bits = mpfr_get_prec(y);
  Temporary start(bits), square(bits), h(bits), power(bits), term(bits);
  mpfr_set(start, y, MPFR_RNDN);
  mpfr_sqr(square, y, MPFR_RNDN);
  // h = g by
  SetHalfRootOfPi(term);
  mpfr_exp(h, square, MPFR_RNDN);
  mpfr_mul(h, h, term, MPFR_RNDN);
  mpfr_mul(h, h, by, MPFR_RNDN);
  mpfr_set_ui(power, 1, MPFR_RNDN);
  for (int k = 0; k < kInverseErfPolynomials; ++k) {
    // power = h^(k + 1) / (k + 1)!
    mpfr_mul(power, power, h, MPFR_RNDN);
    mpfr_div_ui(power, power, k + 1, MPFR_RNDN);
    SetInverseErfPolynomial(term, k, start, square);
    mpfr_mul(term, term, power, MPFR_RNDN);
    mpfr_add(y, y, term, MPFR_RNDN);
    // The next terms are smaller by the same factor each.
    if (mpfr_zero_p(term) || mpfr_get_exp(term) < mpfr_get_exp(y) - bits - 4) {
      return true;
    }
  }
  return false;
}

// log(erfc(y)) for y > 0. erfc underflows beyond 26; its asymptotic series has
// ten digits from there on.
double LogErfc(double y) {
  if (y < 26) return std::log(std::erfc(y));
  const double u = 1 / (2 * y * y);
  return -y * y - std::log(y * std::sqrt(M_PI)) +
         std::log1p(-u * (1 - 3 * u * (1 - 5 * u)));
}

// The root of log(erfc(y)) = log_t for log_t < log(1/2), to some ten digits:
// Newton's steps, of a function that is nearly linear in y^2.
double GuessErfcRoot(double log_t) {
  double y = std::sqrt(-log_t);
  for (int i = 0; i < 16; ++i) {
    const double log_erfc = LogErfc(y);
    const double slope = -M_2_SQRTPI * std::exp(-y * y - log_erfc);
    const double step = (log_erfc - log_t) / slope;
    y -= step;
    if (std::abs(step) < 1e-9 * y) break;
  }
  return y;
}

// The root of erf(y) = x for 2^-20 <= x <= 1/2, to some ten digits.
double GuessErfRoot(double x) {
  double y = x / M_2_SQRTPI;
  for (int i = 0; i < 16; ++i) {
    const double step = (std::erf(y) - x) * std::exp(y * y) / M_2_SQRTPI;
    y -= step;
    if (std::abs(step) < 1e-9 * y) break;
  }
  return y;
}

// Bits of a guess: few, since erf takes less time at short arguments.
constexpr mpfr_prec_t kGuessBits = 53;

// The root of erf(y) = x in the precision of `y`, for 0 < x <= 1/2.
void SetErfRoot(mpfr_ptr y, mpfr_srcptr x) {
  const mpfr_prec_t bits = mpfr_get_prec(y);
  // x^2 is below what a guess of ten digits is off.
  if (mpfr_get_exp(x) < -20) {
    mpfr_mul_d(y, x, 1 / M_2_SQRTPI, MPFR_RNDN);
  } else {
    mpfr_set_d(y, GuessErfRoot(mpfr_get_d(x, MPFR_RNDN)), MPFR_RNDN);
  }
  mpfr_prec_round(y, kGuessBits, MPFR_RNDN);
  Temporary off(bits);
  do {
    mpfr_prec_round(y, bits, MPFR_RNDN);
    mpfr_erf(off, y, MPFR_RNDN);
    mpfr_sub(off, x, off, MPFR_RNDN);
  } while (!MoveAlongErfinv(y, off));
}

// The root of erfc(y) = t in the precision of `y`, for 0 < t < 1/2.
void SetErfcRoot(mpfr_ptr y, mpfr_srcptr t) {
  const mpfr_prec_t bits = mpfr_get_prec(y);
  Temporary log_t(kGuessBits), off(bits);
  mpfr_log(log_t, t, MPFR_RNDN);
  mpfr_set_d(y, GuessErfcRoot(mpfr_get_d(log_t, MPFR_RNDN)), MPFR_RNDN);
  do {
    mpfr_erfc(off, y, MPFR_RNDN);
    mpfr_sub(off, off, t, MPFR_RNDN);
  } while (!MoveAlongErfinv(y, off));
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
    SetErfRoot(y, target);
  } else {
    mpfr_ui_sub(target, 1, target, MPFR_RNDN);
    SetErfcRoot(y, target);
  }
  mpfr_setsign(out, y, sign < 0, MPFR_RNDN);
}

namespace {

absl::Status ComputePolygamma(mpfr_ptr out, mpfr_srcptr m, mpfr_srcptr x) {
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

bool ComputeUnary(Primitive primitive, mpfr_ptr out, mpfr_srcptr x) {
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

// Whether to compute the function takes many times what a look into a table
// does.
bool IsWorthKeeping(Primitive primitive) {
  switch (primitive) {
    case Primitive::kExp:
    case Primitive::kExpm1:
    case Primitive::kLog:
    case Primitive::kLog1p:
    case Primitive::kSin:
    case Primitive::kCos:
    case Primitive::kTan:
    case Primitive::kAsin:
    case Primitive::kAcos:
    case Primitive::kAtan:
    case Primitive::kSinh:
    case Primitive::kCosh:
    case Primitive::kTanh:
    case Primitive::kAsinh:
    case Primitive::kAcosh:
    case Primitive::kAtanh:
    case Primitive::kErf:
    case Primitive::kErfc:
    case Primitive::kErfinv:
    case Primitive::kSigmoid:
    case Primitive::kLgamma:
      return true;
    default:
      return false;
  }
}

// `compute` sets `out` to f(x) or f(m, x), and says whether it did; a value
// that is known is not computed again. Flags of MPFR are set as by `compute`.
template <typename Compute>
bool Remembering(Primitive f, mpfr_ptr out, mpfr_srcptr x, mpfr_srcptr m,
                 const Compute& compute) {
  RealMemo& memo = RealMemo::OfThread();
  if (memo.Recall(f, out, x, m)) return true;
  // The result may take the place of an argument.
  const bool apart = out != x && out != m;
  const bool inexact_before = mpfr_inexflag_p() != 0;
  mpfr_clear_inexflag();
  if (!compute()) return false;
  const bool inexact = mpfr_inexflag_p() != 0;
  if (apart) memo.Keep(f, out, x, m, inexact);
  if (inexact_before) mpfr_set_inexflag();
  return true;
}

}  // namespace

absl::Status RealPolygamma(mpfr_ptr out, mpfr_srcptr m, mpfr_srcptr x) {
  absl::Status status;
  // Order 0 is no number that is kept: that of a function of x alone.
  const mpfr_srcptr order = mpfr_zero_p(m) != 0 ? nullptr : m;
  Remembering(Primitive::kPolygamma, out, x, order, [&] {
    status = ComputePolygamma(out, m, x);
    return status.ok();
  });
  return status;
}

bool RealUnary(Primitive primitive, mpfr_ptr out, mpfr_srcptr x) {
  if (!IsWorthKeeping(primitive)) return ComputeUnary(primitive, out, x);
  return Remembering(primitive, out, x, nullptr,
                     [&] { return ComputeUnary(primitive, out, x); });
}

}  // namespace cleave
