#include "ops/exact.h"

#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave {

// Either a rational in lowest terms or an MPFR number, never an MPFR zero.
struct Exact::Rep {
  explicit Rep(mpq_class value) : rational(true), q(std::move(value)) {}
  explicit Rep(mpfr_srcptr value) : rational(false) {
    mpfr_init2(f, kExactBits);
    mpfr_set(f, value, MPFR_RNDN);
  }
  ~Rep() {
    if (!rational) mpfr_clear(f);
  }
  Rep(const Rep&) = delete;
  Rep& operator=(const Rep&) = delete;

  bool rational;
  mpq_class q;
  mpfr_t f;
};

namespace {

// Decimal exponents beyond this are out of range long before they overflow.
constexpr int64_t kMaxDecimalExponent = 100000;
constexpr size_t kMaxLiteralLength = 10000;
// Guard bits of the operands of an irrational operation.
constexpr int kGuardBits = 64;
// Decimals with more digits than this are printed as fractions.
constexpr size_t kMaxDecimalDigits = 60;
// Roots up to this degree are recognised where they are rational.
constexpr unsigned long kMaxRootDegree = 64;

class Mpfr {
 public:
  explicit Mpfr(int bits) { mpfr_init2(value_, bits); }
  ~Mpfr() { mpfr_clear(value_); }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

size_t Bits(const mpz_class& z) { return mpz_sizeinbase(z.get_mpz_t(), 2); }

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
      CLEAVE_CHECK(false) << DTypeName(dtype) << " is not a float";
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

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

absl::Status BadNumber(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", text.substr(0, 80), "` is not a number: ", why));
}

}  // namespace

// Makes Exacts from results; the only place that decides the representation.
struct ExactBuilder {
  using Rep = Exact::Rep;

  static const Rep& Get(const Exact& x) {
    // A moved-from Exact is 0.
    static const auto* const zero = new Rep(mpq_class(0));
    return x.rep_ != nullptr ? *x.rep_ : *zero;
  }

  static Exact FromRational(mpq_class q) {
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
  static Exact FromMpfr(mpfr_srcptr f) {
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

  // Operands of irrational operations: wide enough that a rational such as
  // 1 + 2^-300 keeps its distance from 1.
  static int OperandBits(const Exact& x) {
    const Rep& rep = Get(x);
    if (!rep.rational) return kExactBits + kGuardBits;
    return kExactBits + kGuardBits + static_cast<int>(Bits(rep.q.get_num())) +
           static_cast<int>(Bits(rep.q.get_den()));
  }

  // The finite value as a rational of any size (|exponents| are bounded).
  static mpq_class ToRational(const Exact& x) {
    const Rep& rep = Get(x);
    if (rep.rational) return rep.q;
    int64_t exponent = 0;
    mpz_class significand = OddSignificand(rep.f, &exponent);
    return Scale(mpq_class(significand), exponent);
  }

  template <typename RationalOp, typename MpfrOp>
  static Exact Binary(const Exact& a, const Exact& b, RationalOp rational_op,
                      MpfrOp mpfr_op) {
    const Rep& x = Get(a);
    const Rep& y = Get(b);
    if (x.rational && y.rational) return FromRational(rational_op(x.q, y.q));
    Mpfr left(OperandBits(a)), right(OperandBits(b)), result(kExactBits);
    a.ToMpfr(left.get());
    b.ToMpfr(right.get());
    mpfr_op(result.get(), left.get(), right.get(), MPFR_RNDN);
    return FromMpfr(result.get());
  }

  // Ordering of two numbers, neither NaN.
  static int Cmp(const Exact& a, const Exact& b) {
    const Rep& x = Get(a);
    const Rep& y = Get(b);
    if (x.rational && y.rational) return cmp(x.q, y.q);
    if (x.rational) return -mpfr_cmp_q(y.f, x.q.get_mpq_t());
    if (y.rational) return mpfr_cmp_q(x.f, y.q.get_mpq_t());
    return mpfr_cmp(x.f, y.f);
  }

  static int Sign(const Exact& x) {
    const Rep& rep = Get(x);
    return rep.rational ? sgn(rep.q) : mpfr_sgn(rep.f);
  }

  static bool IsInfinite(const Exact& x) {
    const Rep& rep = Get(x);
    return !rep.rational && mpfr_inf_p(rep.f);
  }

  static absl::StatusOr<Exact> ParseDecimal(absl::string_view text);
  static absl::StatusOr<Exact> ParseHex(absl::string_view text);
};

namespace {

using Builder = ExactBuilder;

std::string FormatRational(const mpq_class& q) {
  if (q.get_den() == 1) return q.get_num().get_str();
  // A fraction is a finite decimal iff its denominator is 2^a 5^b; then its
  // digits are numerator * 10^max(a, b) / denominator.
  mpz_class rest;
  const mpz_class two(2), five(5);
  const auto twos =
      mpz_remove(rest.get_mpz_t(), q.get_den_mpz_t(), two.get_mpz_t());
  const auto fives =
      mpz_remove(rest.get_mpz_t(), rest.get_mpz_t(), five.get_mpz_t());
  if (rest != 1) return q.get_str();
  const auto places = std::max(twos, fives);
  mpz_class power;
  mpz_ui_pow_ui(power.get_mpz_t(), 10, places);
  const mpz_class scaled = abs(q.get_num()) * (power / q.get_den());
  std::string digits = scaled.get_str();
  if (digits.size() > kMaxDecimalDigits) return q.get_str();
  const std::string sign = q < 0 ? "-" : "";
  // The first digit stands at 10^exponent; Python's repr switches at 1e-4.
  const int64_t exponent =
      static_cast<int64_t>(digits.size()) - 1 - static_cast<int64_t>(places);
  if (exponent < -4) {
    const std::string fraction =
        digits.size() > 1 ? absl::StrCat(".", digits.substr(1)) : "";
    return absl::StrCat(sign, digits.substr(0, 1), fraction, "e-",
                        -exponent < 10 ? "0" : "", -exponent);
  }
  if (exponent < 0) {
    digits.insert(0, static_cast<size_t>(-exponent), '0');
  }
  digits.insert(digits.size() - places, ".");
  return sign + digits;
}

}  // namespace

Exact::Exact() = default;

Exact::Exact(int64_t value) {
  if (value != 0) {
    rep_ = std::make_shared<const Rep>(mpq_class(FromInt64(value)));
  }
}

Exact Exact::FromDouble(double value) {
  if (std::isnan(value)) return NaN();
  if (std::isinf(value)) return value > 0 ? Infinity() : -Infinity();
  return Builder::FromRational(mpq_class(value));
}

Exact Exact::FromMpfr(mpfr_srcptr value) {
  Mpfr f(kExactBits);
  mpfr_set(f.get(), value, MPFR_RNDN);
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
  return Builder::FromMpfr(f.get());
}

absl::StatusOr<Exact> ExactBuilder::ParseDecimal(absl::string_view text) {
  absl::string_view rest = text;
  const bool negative = absl::StartsWith(rest, "-");
  if (negative) rest.remove_prefix(1);
  int64_t exponent = 0;
  const size_t e = rest.find_first_of("eE");
  if (e != absl::string_view::npos) {
    absl::string_view digits = rest.substr(e + 1);
    rest = rest.substr(0, e);
    const bool down = absl::StartsWith(digits, "-");
    if (down || absl::StartsWith(digits, "+")) digits.remove_prefix(1);
    if (!IsDigits(digits)) return BadNumber(text, "malformed exponent");
    for (char c : digits) {
      exponent = std::min(exponent * 10 + (c - '0'), kMaxDecimalExponent);
    }
    if (down) exponent = -exponent;
  }
  std::string digits(rest);
  const size_t point = rest.find('.');
  if (point != absl::string_view::npos) {
    if (!IsDigits(rest.substr(0, point)) || !IsDigits(rest.substr(point + 1))) {
      return BadNumber(text, "digits are needed on both sides of the point");
    }
    digits.erase(point, 1);
    exponent -= static_cast<int64_t>(rest.size() - point - 1);
  }
  if (!IsDigits(digits)) return BadNumber(text, "expected digits");
  mpz_class significand(digits, 10);
  if (significand == 0) return Exact();
  if (negative) significand = -significand;
  // log2(10) < 3.33
  const int64_t bits = static_cast<int64_t>(Bits(significand));
  if (std::abs(exponent) >= kMaxDecimalExponent ||
      std::abs(bits + exponent * 333 / 100) > kMaxExactExponent) {
    return BadNumber(text, "its magnitude is out of range");
  }
  mpz_class power;
  mpz_ui_pow_ui(power.get_mpz_t(), 10, std::abs(exponent));
  mpq_class value = exponent >= 0 ? mpq_class(significand * power)
                                  : mpq_class(significand, power);
  value.canonicalize();
  return FromRational(std::move(value));
}

absl::StatusOr<Exact> ExactBuilder::ParseHex(absl::string_view text) {
  // mpfr_strtofr is lenient about its format, so the characters are checked.
  absl::string_view body = text.substr(1);
  absl::string_view magnitude = body;
  if (absl::StartsWith(magnitude, "-")) magnitude.remove_prefix(1);
  const bool well_formed =
      absl::StartsWith(magnitude, "0x") &&
      magnitude.substr(2).find_first_not_of("0123456789abcdef.p+-") ==
          absl::string_view::npos;
  if (!well_formed) return BadNumber(text, "malformed hexadecimal");
  Mpfr f(kExactBits);
  const std::string copy(body);
  char* end = nullptr;
  const int inexact = mpfr_strtofr(f.get(), copy.c_str(), &end, 0, MPFR_RNDN);
  if (end != copy.c_str() + copy.size() || copy.size() < 3) {
    return BadNumber(text, "malformed hexadecimal");
  }
  if (inexact != 0) {
    return BadNumber(text, absl::StrCat("more than ", kExactBits, " bits"));
  }
  if (!mpfr_zero_p(f.get()) &&
      std::abs(mpfr_get_exp(f.get())) > kMaxExactExponent) {
    return BadNumber(text, "its magnitude is out of range");
  }
  return FromMpfr(f.get());
}

absl::StatusOr<Exact> Exact::Parse(absl::string_view text) {
  if (text == "inf") return Infinity();
  if (text == "-inf") return -Infinity();
  if (text == "nan") return NaN();
  if (text.size() > kMaxLiteralLength) {
    return BadNumber(text, "the literal is too long");
  }
  if (absl::StartsWith(text, "#")) return Builder::ParseHex(text);
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return Builder::ParseDecimal(text);
  absl::string_view numerator = text.substr(0, slash);
  if (absl::StartsWith(numerator, "-")) numerator.remove_prefix(1);
  const absl::string_view denominator = text.substr(slash + 1);
  if (!IsDigits(numerator) || !IsDigits(denominator)) {
    return BadNumber(text, "a fraction is p/q with integers p and q");
  }
  mpz_class p(std::string(text.substr(0, slash)), 10);
  mpz_class q(std::string(denominator), 10);
  if (q == 0) return BadNumber(text, "its denominator is 0");
  mpq_class value(p, q);
  value.canonicalize();
  return Builder::FromRational(std::move(value));
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
  if (IsNaN()) return std::numeric_limits<double>::quiet_NaN();
  if (!IsFinite()) {
    return Builder::Sign(*this) * std::numeric_limits<double>::infinity();
  }
  return RoundRational(Builder::ToRational(*this), format);
}

void Exact::ToMpfr(mpfr_ptr out) const {
  const Rep& rep = Builder::Get(*this);
  if (rep.rational) {
    mpfr_set_q(out, rep.q.get_mpq_t(), MPFR_RNDN);
  } else {
    mpfr_set(out, rep.f, MPFR_RNDN);
  }
}

std::string Exact::ToString() const {
  const Rep& rep = Builder::Get(*this);
  if (rep.rational) return FormatRational(rep.q);
  if (mpfr_nan_p(rep.f)) return "nan";
  if (mpfr_inf_p(rep.f)) return mpfr_sgn(rep.f) < 0 ? "-inf" : "inf";
  char* text = nullptr;
  const int length = mpfr_asprintf(&text, "%Ra", rep.f);
  CLEAVE_CHECK(length > 0) << "MPFR could not print a number";
  std::string result = absl::StrCat("#", text);
  mpfr_free_str(text);
  return result;
}

Exact Exact::operator-() const {
  const Rep& rep = Builder::Get(*this);
  if (rep.rational) return Builder::FromRational(-rep.q);
  Mpfr f(kExactBits);
  mpfr_neg(f.get(), rep.f, MPFR_RNDN);
  return Builder::FromMpfr(f.get());
}

Exact operator+(const Exact& a, const Exact& b) {
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x + y); },
      mpfr_add);
}

Exact operator-(const Exact& a, const Exact& b) {
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x - y); },
      mpfr_sub);
}

Exact operator*(const Exact& a, const Exact& b) {
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x * y); },
      mpfr_mul);
}

Exact operator/(const Exact& a, const Exact& b) {
  if (Builder::Sign(b) == 0 && !b.IsNaN()) {
    if (a.IsNaN() || Builder::Sign(a) == 0) return Exact::NaN();
    return Builder::Sign(a) > 0 ? Exact::Infinity() : -Exact::Infinity();
  }
  return Builder::Binary(
      a, b, [](const auto& x, const auto& y) { return mpq_class(x / y); },
      mpfr_div);
}

Exact Exact::FloorDiv(const Exact& a, const Exact& b) {
  if (b.IsNaN() || Builder::Sign(b) == 0 || !a.IsFinite()) return NaN();
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
    if (base.q == 0) return *n > 0 ? Exact(0) : Infinity();
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
  Mpfr x(Builder::OperandBits(a)), y(Builder::OperandBits(b));
  Mpfr result(kExactBits);
  a.ToMpfr(x.get());
  b.ToMpfr(y.get());
  mpfr_pow(result.get(), x.get(), y.get(), MPFR_RNDN);
  return Builder::FromMpfr(result.get());
}

bool operator==(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) == 0;
}

bool operator<(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) < 0;
}

bool operator<=(const Exact& a, const Exact& b) {
  return !a.IsNaN() && !b.IsNaN() && Builder::Cmp(a, b) <= 0;
}

}  // namespace cleave
