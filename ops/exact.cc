#include "ops/exact.h"

#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/exact_internal.h"

namespace cleave {
namespace {

using Builder = ExactBuilder;
using internal_exact::Bits;
using internal_exact::kGuardBits;
using internal_exact::Mpfr;

// Roots up to this degree are recognised where they are rational.
constexpr unsigned long kMaxRootDegree = 64;

bool Fits(const mpq_class& q) {
  return Bits(q.get_num()) <= kMaxRationalBits &&
         Bits(q.get_den()) <= kMaxRationalBits;
}

mpz_class FromInt64(int64_t value) {
  static_assert(sizeof(long) == sizeof(int64_t), "GMP takes longs");
  return mpz_class(static_cast<long>(value));
}

mpz_class FloorOf(const mpq_class& q) {
  mpz_class result;
  mpz_fdiv_q(result.get_mpz_t(), q.get_num_mpz_t(), q.get_den_mpz_t());
  return result;
}

mpz_class RoundNearestEven(const mpq_class& q) {
  mpz_class floor = FloorOf(q);
  const int side = cmp(mpq_class(q - floor), mpq_class(1, 2));
  if (side > 0 || (side == 0 && mpz_odd_p(floor.get_mpz_t()))) ++floor;
  return floor;
}

// q * 2^shift.
mpq_class Scale(const mpq_class& q, int64_t shift) {
  mpq_class result;
  if (shift >= 0) {
    mpq_mul_2exp(result.get_mpq_t(), q.get_mpq_t(), shift);
  } else {
    mpq_div_2exp(result.get_mpq_t(), q.get_mpq_t(), -shift);
  }
  return result;
}

// The finite `f` as significand * 2^exponent; the significand is odd or 0.
mpz_class OddSignificand(mpfr_srcptr f, int64_t* exponent) {
  mpz_class z;
  *exponent = mpfr_get_z_2exp(z.get_mpz_t(), f);
  if (z == 0) return z;
  const mp_bitcnt_t zeros = mpz_scan1(z.get_mpz_t(), 0);
  mpz_tdiv_q_2exp(z.get_mpz_t(), z.get_mpz_t(), zeros);
  *exponent += static_cast<int64_t>(zeros);
  return z;
}

struct Format {
  int significand_bits;
  int max_exponent;  // finite values are below 2^max_exponent
  int min_quantum;   // the least subnormal is 2^min_quantum
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, 16, -24};
    case DType::kBF16:
      return {8, 128, -133};
    case DType::kF32:
      return {24, 128, -149};
    case DType::kF64:
      return {53, 1024, -1074};
    default:
      return {};
  }
}

// One rounding, of the exact rational: nothing is rounded on the way.
double RoundRational(const mpq_class& q, const Format& format) {
  if (q == 0) return 0;
  const double sign = q < 0 ? -1 : 1;
  const mpq_class magnitude = abs(q);
  // 2^exponent <= magnitude < 2^(exponent + 1)
  int64_t exponent = static_cast<int64_t>(Bits(magnitude.get_num())) -
                     static_cast<int64_t>(Bits(magnitude.get_den()));
  if (Scale(magnitude, -exponent) < 1) --exponent;
  if (exponent >= format.max_exponent) {
    return sign * std::numeric_limits<double>::infinity();
  }
  const int64_t quantum = std::max<int64_t>(
      exponent - format.significand_bits + 1, format.min_quantum);
  const mpz_class steps = RoundNearestEven(Scale(magnitude, -quantum));
  // At most 2^53 steps: exact in a double, and so is the product, which may
  // only have grown to 2^max_exponent.
  const double result = std::ldexp(steps.get_d(), static_cast<int>(quantum));
  if (result >= std::ldexp(1.0, format.max_exponent - 1) * 2) {
    return sign * std::numeric_limits<double>::infinity();
  }
  return sign * result;
}

// The n-th root of q > 0 where it is rational.
std::optional<mpq_class> RationalRoot(const mpq_class& q, unsigned long n) {
  mpq_class root;
  if (!mpz_root(root.get_num_mpz_t(), q.get_num_mpz_t(), n) ||
      !mpz_root(root.get_den_mpz_t(), q.get_den_mpz_t(), n)) {
    return std::nullopt;
  }
  root.canonicalize();
  return root;
}

}  // namespace

const Exact::Rep& ExactBuilder::Get(const Exact& x) {
  // A moved-from Exact is 0.
  static const auto* const zero = new Rep(mpq_class(0));
  return x.rep_ != nullptr ? *x.rep_ : *zero;
}

Exact ExactBuilder::Zero(bool negative) {
  Exact result;
  if (negative) {
    auto rep = std::make_shared<Exact::Rep>(mpq_class(0));
    rep->negative_zero = true;
    result.rep_ = std::move(rep);
  }
  return result;
}

Exact ExactBuilder::FromRational(mpq_class q) {
  if (!Fits(q)) {
    Mpfr f(kExactBits);
    mpfr_set_q(f.get(), q.get_mpq_t(), MPFR_RNDN);
    return FromMpfr(f.get());
  }
  Exact result;
  result.rep_ = std::make_shared<const Rep>(std::move(q));
  return result;
}

// Results with a short significand are exact in all likelihood (sqrt of
// 6.25, exp of 0) and become rationals.
Exact ExactBuilder::FromMpfr(mpfr_srcptr f) {
  constexpr int kShortSignificand = 64;
  Exact result;
  if (mpfr_zero_p(f)) return result;
  if (mpfr_number_p(f)) {
    if (mpfr_get_exp(f) > kMaxExactExponent) {
      return mpfr_signbit(f) ? -Exact::Infinity() : Exact::Infinity();
    }
    if (mpfr_get_exp(f) < -kMaxExactExponent) return result;
    int64_t exponent = 0;
    mpz_class significand = OddSignificand(f, &exponent);
    if (static_cast<int>(Bits(significand)) <= kShortSignificand &&
        std::abs(exponent) <= kMaxRationalBits - 2 * kShortSignificand) {
      return FromRational(Scale(mpq_class(significand), exponent));
    }
  }
  result.rep_ = std::make_shared<const Rep>(f);
  return result;
}

Exact ExactBuilder::FromMpfr(mpfr_srcptr f, int operations,
                             Recompute recompute) {
  Exact result = FromMpfr(f);
  if (Get(result).rational || !result.IsFinite() ||
      operations >= kMaxExactOperations) {
    return result;
  }
  auto rep = std::make_shared<Rep>(f);
  rep->operations = operations + 1;
  rep->recompute = std::move(recompute);
  result.rep_ = std::move(rep);
  return result;
}

void ExactBuilder::ToMpfr(const Exact& x, mpfr_ptr out) {
  const Rep& rep = Get(x);
  if (rep.negative_zero) {
    mpfr_set_zero(out, -1);
  } else if (rep.rational) {
    mpfr_set_q(out, rep.q.get_mpq_t(), MPFR_RNDN);
  } else {
    mpfr_set(out, rep.f, MPFR_RNDN);
  }
}

int ExactBuilder::OperandBits(const Exact& x) {
  const Rep& rep = Get(x);
  if (!rep.rational) return kExactBits + kGuardBits;
  return kExactBits + kGuardBits + static_cast<int>(Bits(rep.q.get_num())) +
         static_cast<int>(Bits(rep.q.get_den()));
}

mpq_class ExactBuilder::ToRational(const Exact& x) {
  const Rep& rep = Get(x);
  if (rep.rational) return rep.q;
  int64_t exponent = 0;
  mpz_class significand = OddSignificand(rep.f, &exponent);
  return Scale(mpq_class(significand), exponent);
}

Exact::Exact() = default;

Exact::Exact(int64_t value) {
  if (value != 0) {
    rep_ = std::make_shared<const Rep>(mpq_class(FromInt64(value)));
  }
}

Exact Exact::FromDouble(double value) {
  if (std::isnan(value)) return NaN();
  if (std::isinf(value)) return value > 0 ? Infinity() : -Infinity();
  if (value == 0) return Builder::Zero(std::signbit(value));
  return Builder::FromRational(mpq_class(value));
}

Exact Exact::FromMpfr(mpfr_srcptr value) {
  Mpfr f(kExactBits);
  mpfr_set(f.get(), value, MPFR_RNDN);
  if (mpfr_zero_p(f.get())) return Builder::Zero(mpfr_signbit(f.get()) != 0);
  return Builder::FromMpfr(f.get());
}

Exact Exact::Infinity() {
  Mpfr f(kExactBits);
  mpfr_set_inf(f.get(), 1);
  return Builder::FromMpfr(f.get());
}

Exact Exact::NaN() {
  Mpfr f(kExactBits);
  mpfr_set_nan(f.get());
  return Builder::FromMpfr(f.get());
}

Exact Exact::Pi() {
  Mpfr f(kExactBits);
  mpfr_const_pi(f.get(), MPFR_RNDN);
  return Builder::FromMpfr(f.get(), 0, [](mpfr_ptr out) {
    PrepareThreadForMpfr();
    mpfr_const_pi(out, MPFR_RNDN);
  });
}

bool Exact::IsRational() const { return Builder::Get(*this).rational; }

bool Exact::IsInteger() const {
  const Rep& rep = Builder::Get(*this);
  return rep.rational ? rep.q.get_den() == 1 : mpfr_integer_p(rep.f) != 0;
}

bool Exact::IsFinite() const {
  const Rep& rep = Builder::Get(*this);
  return rep.rational || mpfr_number_p(rep.f) != 0;
}

bool Exact::IsNaN() const {
  const Rep& rep = Builder::Get(*this);
  return !rep.rational && mpfr_nan_p(rep.f) != 0;
}

bool Exact::IsNegativeZero() const { return Builder::Get(*this).negative_zero; }

std::optional<int64_t> Exact::ToInt64() const {
  const Rep& rep = Builder::Get(*this);
  if (!IsInteger()) return std::nullopt;
  if (rep.rational) {
    const mpz_class& z = rep.q.get_num();
    if (!z.fits_slong_p()) return std::nullopt;
    return z.get_si();
  }
  if (!mpfr_fits_slong_p(rep.f, MPFR_RNDN)) return std::nullopt;
  return mpfr_get_si(rep.f, MPFR_RNDN);
}

double Exact::ToDouble() const { return RoundTo(DType::kF64); }

double Exact::RoundTo(DType dtype) const {
  const Format format = FormatOf(dtype);
  if (IsNaN() || !IsFloat(dtype))
    return std::numeric_limits<double>::quiet_NaN();
  if (!IsFinite()) {
    return Builder::Sign(*this) * std::numeric_limits<double>::infinity();
  }
  if (IsNegativeZero()) return -0.0;
  return RoundRational(Builder::ToRational(*this), format);
}

void Exact::ToMpfr(mpfr_ptr out) const {
  const Rep& rep = Builder::Get(*this);
  if (rep.recompute && mpfr_get_prec(out) > kExactBits) {
    rep.recompute(out);
    // It is rounded, whatever the last operation did.
    mpfr_set_inexflag();
    // Where an operand is at the edge of a domain more bits may leave it.
    if (mpfr_number_p(out)) return;
  }
  Builder::ToMpfr(*this, out);
}

void Exact::Enclose(mpfr_ptr low, mpfr_ptr high) const {
  const Rep& rep = Builder::Get(*this);
  if (rep.recompute) {
    // Digits cancel, as many as two precisions tell.
    const int bits =
        static_cast<int>(std::max<mpfr_prec_t>(mpfr_get_prec(low), kExactBits));
    Mpfr first(bits + kGuardBits), second(2 * (bits + kGuardBits)), error(64);
    ToMpfr(first.get());
    ToMpfr(second.get());
    mpfr_sub(error.get(), first.get(), second.get(), MPFR_RNDA);
    mpfr_abs(error.get(), error.get(), MPFR_RNDU);
    mpfr_mul_2ui(error.get(), error.get(), 1, MPFR_RNDU);
    mpfr_sub(low, second.get(), error.get(), MPFR_RNDD);
    mpfr_add(high, second.get(), error.get(), MPFR_RNDU);
    mpfr_nextbelow(low);
    mpfr_nextabove(high);
    return;
  }
  mpfr_clear_inexflag();
  Builder::ToMpfr(*this, low);
  const bool exact = mpfr_inexflag_p() == 0 || IsNaN();
  mpfr_set(high, low, MPFR_RNDN);
  if (exact) return;
  // The number lies on either side.
  mpfr_nextbelow(low);
  mpfr_nextabove(high);
}

Exact Exact::operator-() const {
  const Rep& rep = Builder::Get(*this);
  if (rep.rational) return Builder::FromRational(-rep.q);
  Mpfr f(kExactBits);
  mpfr_neg(f.get(), rep.f, MPFR_RNDN);
  return Builder::FromMpfr(f.get(), rep.operations, [x = *this](mpfr_ptr out) {
    x.ToMpfr(out);
    mpfr_neg(out, out, MPFR_RNDN);
  });
}

Exact operator+(const Exact& a, const Exact& b) {
  if (a.IsNegativeZero() && b.IsNegativeZero()) return a;
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x + y); },
      mpfr_add);
}

Exact operator-(const Exact& a, const Exact& b) {
  if (a.IsNegativeZero() && b == Exact() && !b.IsNegativeZero()) return a;
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x - y); },
      mpfr_sub);
}

Exact operator*(const Exact& a, const Exact& b) {
  if ((a.IsNegativeZero() && b.IsFinite()) ||
      (b.IsNegativeZero() && a.IsFinite())) {
    return Builder::Zero(Builder::IsNegative(a) != Builder::IsNegative(b));
  }
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x * y); },
      mpfr_mul);
}

Exact operator/(const Exact& a, const Exact& b) {
  if (Builder::Sign(b) == 0 && !b.IsNaN()) {
    if (a.IsNaN() || Builder::Sign(a) == 0) return Exact::NaN();
    return Builder::IsNegative(a) == Builder::IsNegative(b)
               ? Exact::Infinity()
               : -Exact::Infinity();
  }
  if (a.IsNegativeZero() && !b.IsNaN()) {
    return Builder::Zero(!Builder::IsNegative(b));
  }
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x / y); },
      mpfr_div);
}

Exact Exact::FloorDiv(const Exact& a, const Exact& b) {
  if (b.IsNaN() || Builder::Sign(b) == 0 || !a.IsFinite()) return NaN();
  if (a.IsNegativeZero()) return a / b;
  if (Builder::IsInfinite(b)) {
    return Builder::Sign(a) * Builder::Sign(b) < 0 ? Exact(-1) : Exact(0);
  }
  const mpq_class quotient = Builder::ToRational(a) / Builder::ToRational(b);
  return Builder::FromRational(mpq_class(FloorOf(quotient)));
}

Exact Exact::FloorMod(const Exact& a, const Exact& b) {
  if (b.IsNaN() || Builder::Sign(b) == 0 || !a.IsFinite()) return NaN();
  if (Builder::IsInfinite(b)) {
    return Builder::Sign(a) * Builder::Sign(b) < 0 ? b : a;
  }
  const mpq_class x = Builder::ToRational(a), y = Builder::ToRational(b);
  return Builder::FromRational(x - y * FloorOf(x / y));
}

Exact Exact::Pow(const Exact& a, const Exact& b) {
  const Rep& base = Builder::Get(a);
  const Rep& power = Builder::Get(b);
  const std::optional<int64_t> n = b.ToInt64();
  if (n == 0) return 1;
  if (base.rational && n.has_value()) {
    if (base.q == 0) {
      const Exact zero = *n % 2 == 0 ? Exact(0) : a;
      return *n > 0 ? zero : Exact(1) / zero;
    }
    const int64_t bits = static_cast<int64_t>(
        std::max(Bits(base.q.get_num()), Bits(base.q.get_den())));
    // Powers of 1 and -1 have one bit, whatever the exponent.
    if (abs(base.q) == 1) return *n % 2 == 0 ? Exact(1) : a;
    if (*n <= kMaxRationalBits && *n >= -kMaxRationalBits &&
        bits * std::abs(*n) <= 2 * kMaxRationalBits) {
      mpq_class result;
      mpz_pow_ui(result.get_num_mpz_t(), base.q.get_num_mpz_t(), std::abs(*n));
      mpz_pow_ui(result.get_den_mpz_t(), base.q.get_den_mpz_t(), std::abs(*n));
      if (*n < 0) result = 1 / result;
      return Builder::FromRational(std::move(result));
    }
  }
  if (base.rational && power.rational && base.q > 0 &&
      power.q.get_den() <= kMaxRootDegree) {
    // (9/4)^(3/2) = (3/2)^3
    const unsigned long degree = power.q.get_den().get_ui();
    if (auto root = RationalRoot(base.q, degree)) {
      const Exact n(Builder::FromRational(mpq_class(power.q.get_num())));
      if (degree > 1) return Pow(Builder::FromRational(*root), n);
    }
  }
  return Builder::Irrational(a, b, mpfr_pow);
}

bool operator==(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) == 0;
}

bool IsSame(const Exact& a, const Exact& b) {
  if (a.IsNaN() || b.IsNaN()) return a.IsNaN() && b.IsNaN();
  return a == b && a.IsNegativeZero() == b.IsNegativeZero();
}

bool operator<(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) < 0;
}

bool operator<=(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) <= 0;
}

}  // namespace cleave
