#include "testing/check/samples/float_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "ops/check.h"
#include "ops/tensor.h"

namespace cleave {

int MinExponent(DType dtype) {
  return dtype == DType::kF16 ? -14 : dtype == DType::kF64 ? -1022 : -126;
}

namespace {

// The exponent of the largest power of two.
int MaxExponent(DType dtype) {
  return dtype == DType::kF16 ? 15 : dtype == DType::kF64 ? 1023 : 127;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

int64_t MaxOrdinal(DType dtype) {
  const int p = SignificandBits(dtype);
  const int64_t exponents = MaxExponent(dtype) - MinExponent(dtype) + 1;
  return ((exponents + 1) << (p - 1)) - 1;
}

int64_t Ordinal(double value, DType dtype) {
  CLEAVE_CHECK(!std::isnan(value)) << DTypeName(dtype);
  if (std::signbit(value)) return -Ordinal(-value, dtype);
  if (std::isinf(value)) return MaxOrdinal(dtype) + 1;
  const int p = SignificandBits(dtype);
  const int emin = MinExponent(dtype);
  if (value < std::ldexp(1.0, emin)) {
    return static_cast<int64_t>(std::ldexp(value, p - 1 - emin));
  }
  int exponent;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  const auto significand = static_cast<int64_t>(std::ldexp(fraction, p));
  return (int64_t{exponent - 1 - emin} << (p - 1)) + significand;
}

double FromOrdinal(int64_t ordinal, DType dtype) {
  if (ordinal < 0) return -FromOrdinal(-ordinal, dtype);
  if (ordinal > MaxOrdinal(dtype)) return kInfinity;
  const int p = SignificandBits(dtype);
  const int emin = MinExponent(dtype);
  const int64_t one = int64_t{1} << (p - 1);
  if (ordinal < one) {
    return std::ldexp(static_cast<double>(ordinal), emin - p + 1);
  }
  const int exponent = static_cast<int>(ordinal >> (p - 1)) - 1;
  const int64_t significand = one + (ordinal & (one - 1));
  return std::ldexp(static_cast<double>(significand), emin + exponent - p + 1);
}

double UlpError(const Real& expected, double got, DType dtype) {
  mpfr_srcptr e = expected.get();
  if (mpfr_nan_p(e) || std::isnan(got)) {
    return mpfr_nan_p(e) && std::isnan(got) ? 0 : kInfinity;
  }
  const int sign = mpfr_signbit(e) ? -1 : 1;
  if (mpfr_inf_p(e)) return got == sign * kInfinity ? 0 : kInfinity;
  if (std::isinf(got)) {
    if (expected.RoundTo(dtype) == got) return 0;
    if (std::signbit(got) != (sign < 0)) return kInfinity;
  }
  Real difference(std::max(expected.bits(), 64));
  if (std::isinf(got)) {
    mpfr_set_si_2exp(difference.get(), got < 0 ? -1 : 1, MaxExponent(dtype) + 1,
                     MPFR_RNDN);
    mpfr_sub(difference.get(), e, difference.get(), MPFR_RNDN);
  } else {
    mpfr_sub_d(difference.get(), e, got, MPFR_RNDN);
  }
  return UlpsOf(difference, expected, dtype);
}

int64_t UnitExponent(const Real& at, DType dtype) {
  if (mpfr_number_p(at.get()) == 0) return 0;
  const int emin = MinExponent(dtype);
  const int emax = MaxExponent(dtype);
  // Beyond the range the spacing stays that of the last binade.
  const int64_t exponent =
      mpfr_zero_p(at.get()) ? emin : int64_t{mpfr_get_exp(at.get())} - 1;
  return std::min<int64_t>(std::max<int64_t>(exponent, emin), emax) -
         (SignificandBits(dtype) - 1);
}

double EpsOf(DType dtype) {
  return std::ldexp(1.0, 1 - SignificandBits(dtype));
}

double EpsError(const Real& expected, double got, DType dtype) {
  const bool finite = mpfr_number_p(expected.get()) && std::isfinite(got);
  if (!finite) return UlpError(expected, got, dtype);
  Real difference(expected.bits());
  mpfr_sub_d(difference.get(), expected.get(), got, MPFR_RNDN);
  return std::abs(difference.ToDouble()) / EpsOf(dtype);
}

double UlpsOf(const Real& difference, const Real& at, DType dtype) {
  const int64_t unit = UnitExponent(at, dtype);
  Real ulps = difference;
  mpfr_abs(ulps.get(), ulps.get(), MPFR_RNDN);
  if (unit < 0) {
    mpfr_mul_2ui(ulps.get(), ulps.get(), -unit, MPFR_RNDN);
  } else {
    mpfr_div_2ui(ulps.get(), ulps.get(), unit, MPFR_RNDN);
  }
  return ulps.ToDouble();
}

std::vector<double> SpecialValues(DType dtype) {
  const int64_t max = MaxOrdinal(dtype);
  const int64_t normal = int64_t{1} << (SignificandBits(dtype) - 1);
  std::vector<double> values = {0.0, -0.0, kInfinity, -kInfinity,
                                std::numeric_limits<double>::quiet_NaN()};
  for (double value : {1.0, 2.0, 3.0, 10.0, 0.5, 0.1, 1e-3}) {
    values.push_back(RoundToDType(value, dtype));
    values.push_back(RoundToDType(-value, dtype));
  }
  for (int64_t offset : {-1, 1}) {
    values.push_back(FromOrdinal(Ordinal(1, dtype) + offset, dtype));
    values.push_back(FromOrdinal(-Ordinal(1, dtype) - offset, dtype));
  }
  for (int64_t ordinal :
       {int64_t{1}, normal / 2, normal - 1, normal, normal + 1, max - 1, max}) {
    values.push_back(FromOrdinal(ordinal, dtype));
    values.push_back(FromOrdinal(-ordinal, dtype));
  }
  return values;
}

std::vector<double> GuardValues(const std::vector<double>& constants,
                                DType dtype) {
  std::vector<double> values;
  for (double constant : constants) {
    const double rounded = RoundToDType(constant, dtype);
    if (!std::isfinite(rounded)) continue;
    for (int64_t offset = -1; offset <= 1; ++offset) {
      const double value = FromOrdinal(Ordinal(rounded, dtype) + offset, dtype);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  return values;
}

std::vector<double> ValuesBeside(const std::vector<double>& constants,
                                 DType dtype) {
  std::vector<double> values;
  for (const double constant : constants) {
    for (const double part : {0.625, 0.75, 0.9375, 1.0625, 1.25}) {
      const double value = RoundToDType(part * constant, dtype);
      if (!std::isfinite(value)) continue;
      values.push_back(value);
      values.push_back(-value);
    }
  }
  return values;
}

std::vector<double> UlpUniformGrid(DType dtype, int64_t count,
                                   std::mt19937_64& random) {
  std::vector<double> values;
  values.reserve(count);
  const int64_t max = MaxOrdinal(dtype);
  const double step = 2.0 * static_cast<double>(max) / count;
  std::uniform_real_distribution<double> part(0, 1);
  for (int64_t i = 0; i < count; ++i) {
    const double place = -static_cast<double>(max) + (i + part(random)) * step;
    const double bound = static_cast<double>(max) * 0.999999999999;
    values.push_back(FromOrdinal(
        static_cast<int64_t>(std::clamp(place, -bound, bound)), dtype));
  }
  return values;
}

std::vector<double> AllValues(DType dtype) {
  CLEAVE_CHECK(ByteSize(dtype) == 2) << DTypeName(dtype);
  std::vector<double> values = {-0.0, std::numeric_limits<double>::quiet_NaN()};
  const int64_t max = MaxOrdinal(dtype) + 1;
  for (int64_t i = -max; i <= max; ++i) values.push_back(FromOrdinal(i, dtype));
  return values;
}

std::string FloatToString(double value, DType dtype) {
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    if (RoundToDType(std::strtod(text.c_str(), nullptr), dtype) == value) {
      return absl::StrFormat("%s (%a)", text, value);
    }
  }
  return absl::StrFormat("%.17g (%a)", value, value);
}

}  // namespace cleave
