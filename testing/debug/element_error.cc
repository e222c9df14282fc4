#include "testing/debug/element_error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/check/samples/float_points.h"

namespace cleave {
namespace {

// An error in units of eps that no rounding of a normal number has: bf16 has
// 128 units of eps in 1.
constexpr double kLostPart = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ElementError ErrorOfComplex(std::complex<double> exact,
                            std::complex<double> computed, DType dtype) {
  if (exact == computed) return {};
  const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
  const double error = std::abs(exact - computed) / std::abs(exact) *
                       std::ldexp(1.0, SignificandBits(part) - 1);
  if (std::isnan(error)) {
    const bool both =
        std::isnan(std::abs(exact)) && std::isnan(std::abs(computed));
    return both ? ElementError{} : ElementError::Infinite();
  }
  return {error, error, std::abs(exact - computed)};
}

}  // namespace

double RelativeError(const Real& a, const Real& b, DType dtype) {
  const bool nan = mpfr_nan_p(a.get()) || mpfr_nan_p(b.get());
  if (nan) return mpfr_nan_p(a.get()) && mpfr_nan_p(b.get()) ? 0 : kInfinity;
  if (mpfr_equal_p(a.get(), b.get())) return 0;
  if (!mpfr_regular_p(b.get()) || mpfr_inf_p(a.get())) return kInfinity;
  Real error(b.bits());
  mpfr_sub(error.get(), a.get(), b.get(), MPFR_RNDN);
  mpfr_div(error.get(), error.get(), b.get(), MPFR_RNDN);
  mpfr_mul_2si(error.get(), error.get(), SignificandBits(dtype) - 1, MPFR_RNDN);
  return std::abs(error.ToDouble());
}

double UlpsBetween(const Real& a, const Real& b, DType dtype) {
  if (!mpfr_number_p(a.get()) || !mpfr_number_p(b.get())) {
    return RelativeError(a, b, dtype);
  }
  Real difference(b.bits());
  mpfr_sub(difference.get(), a.get(), b.get(), MPFR_RNDN);
  return UlpsOf(difference, b, dtype);
}

ElementError ErrorOf(const RealTensor& exact, const Tensor& computed,
                     int64_t element) {
  const DType dtype = computed.dtype();
  if (IsComplex(dtype)) {
    return ErrorOfComplex(exact.discrete.ComplexAt(element).value_or(0.0),
                          computed.ComplexAt(element).value_or(0.0), dtype);
  }
  if (!IsFloat(dtype)) {
    const bool same =
        exact.discrete.GetInt(element) == computed.GetInt(element);
    return same ? ElementError{} : ElementError::Infinite();
  }
  const Real& want = exact.reals[element];
  const Real got(computed.GetDouble(element), want.bits());
  ElementError error;
  error.ulp = UlpError(want, got.ToDouble(), dtype);
  error.relative = RelativeError(got, want, dtype);
  if (std::isinf(error.relative) && !mpfr_number_p(got.get())) {
    error.absolute = kInfinity;
  } else if (error.relative != 0) {
    Real difference(want.bits());
    mpfr_sub(difference.get(), got.get(), want.get(), MPFR_RNDN);
    error.absolute = std::abs(difference.ToDouble());
  }
  return error;
}

std::optional<ElementError> ErrorOf(const NodeValue& node, int result,
                                    int64_t element) {
  const RealTensor& exact = node.exact[result];
  if (exact.shape != node.computed[result].shape()) return std::nullopt;
  if (!node.unsettled.empty()) {
    const std::vector<int64_t>& open = node.unsettled[result];
    if (std::binary_search(open.begin(), open.end(), element)) {
      return std::nullopt;
    }
  }
  return ErrorOf(exact, node.computed[result], element);
}

namespace {

// An infinite relative error comes first, also that of an infinity that the
// exact value rounds to.
std::tuple<bool, double, double> Rank(const ElementError& error) {
  return {std::isinf(error.relative), error.ulp, error.relative};
}

}  // namespace

std::optional<int64_t> WorstElement(const NodeValue& node, int result) {
  std::optional<int64_t> worst;
  ElementError most;
  for (int64_t i = 0; i < node.computed[result].size(); ++i) {
    const std::optional<ElementError> error = ErrorOf(node, result, i);
    if (!error) continue;
    const bool larger = Rank(*error) > Rank(most);
    if (worst && !larger) continue;
    worst = i;
    most = *error;
  }
  return worst;
}

Tensor ElementOf(const Tensor& tensor, int64_t i) {
  Tensor one(tensor.dtype(), {});
  std::memcpy(one.mutable_data(), tensor.data() + i * one.byte_size(),
              one.byte_size());
  return one;
}

std::string ElementText(const Tensor& tensor, int64_t i) {
  const std::string text = ElementOf(tensor, i).ToString();  // f32[] [0.5]
  const size_t begin = text.find(" [") + 2;
  return text.substr(begin, text.size() - 1 - begin);
}

std::string ElementText(const RealTensor& tensor, int64_t i) {
  if (!IsFloat(tensor.dtype)) return ElementText(tensor.discrete, i);
  const int digits = static_cast<int>(
      std::ceil(SignificandBits(tensor.dtype) * std::log10(2.0)));
  return tensor.reals[i].ToString(digits + 3);
}

std::string ErrorText(const ElementError& error) {
  // A number that rounds to what was computed may be lost all the same.
  if (error.ulp == 0 && std::isinf(error.relative)) return "overflow";
  if (error.ulp <= 1 && error.relative > kLostPart) return "underflow";
  return ErrorText(error.ulp);
}

std::string ErrorText(double error) { return absl::StrFormat("%.3g", error); }

std::vector<int64_t> IndexOf(const std::vector<int64_t>& shape,
                             int64_t element) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) continue;
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

double LargestFinite(DType dtype) {
  return FromOrdinal(MaxOrdinal(dtype), dtype);
}

double SmallestNormal(DType dtype) {
  return FromOrdinal(int64_t{1} << (SignificandBits(dtype) - 1), dtype);
}

}  // namespace cleave
