// Exact from text and to text.

#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/exact.h"
#include "ops/exact_internal.h"

namespace cleave {
namespace {

using Builder = ExactBuilder;
using internal_exact::Bits;
using internal_exact::Mpfr;

// Decimal exponents beyond this are out of range long before they overflow.
constexpr int64_t kMaxDecimalExponent = 100000;
constexpr size_t kMaxLiteralLength = 10000;
// Decimals with more digits than this are printed as fractions.
constexpr size_t kMaxDecimalDigits = 60;
bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

absl::Status BadNumber(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", text.substr(0, 80), "` is not a number: ", why));
}

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
  if (significand == 0) {
    // "-0" is an integer.
    return Zero(negative && text.find_first_of(".eE") != text.npos);
  }
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
  return Exact::FromMpfr(f.get());
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

std::string Exact::ToString() const {
  const Rep& rep = Builder::Get(*this);
  if (rep.negative_zero) return "-0.0";
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

}  // namespace cleave
