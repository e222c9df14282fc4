#include "testing/conformance/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/conformance/case_rounding.h"

namespace cleave {

double Epsilon(DType dtype) {
  return std::ldexp(1.0, 1 - SignificandBits(dtype));
}

std::string Difference(const Tensor& got, const Tensor& want,
                       Tolerance tolerance, bool same_dtype,
                       const Allowance& allowance) {
  if (same_dtype && got.dtype() != want.dtype()) {
    return absl::StrCat("dtype ", DTypeName(got.dtype()), ", want ",
                        DTypeName(want.dtype()));
  }
  if (got.shape() != want.shape()) {
    return absl::StrCat("type ", got.type().ToString(), ", want ",
                        want.type().ToString());
  }
  int64_t wrong = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < got.size(); ++i) {
    bool equal;
    if (!IsFloat(got.dtype()) || !IsFloat(want.dtype())) {
      equal = got.GetComplex(i) == want.GetComplex(i);
    } else {
      const double a = got.GetDouble(i);
      const double b = want.GetDouble(i);
      equal = (std::isnan(a) && std::isnan(b)) || a == b ||
              (std::isfinite(a) && std::isfinite(b) &&
               std::abs(a - b) <= tolerance.absolute +
                                      tolerance.relative * std::abs(b) +
                                      (allowance.empty() ? 0 : allowance[i]));
    }
    if (!equal && ++wrong == 1) first = i;
  }
  if (wrong == 0) return "";
  return absl::StrFormat(
      "%d of %d elements differ, first [%d]: %.17g, want %.17g", wrong,
      got.size(), first, got.GetComplex(first).real(),
      want.GetComplex(first).real());
}

double UnitsFor(const std::string& section) {
  return section == "outputs" || section == "vmap" ? 16 : 64;
}

Tolerance ToleranceFor(DType dtype, const Tensor& want,
                       const std::string& section) {
  const double factor = UnitsFor(section) * Epsilon(dtype);
  double largest = 0;
  for (int64_t i = 0; IsFloat(want.dtype()) && i < want.size(); ++i) {
    const double value = std::abs(want.GetDouble(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return {factor, factor * largest};
}

Tensor WantedInDType(const Tensor& truth, const std::optional<Tensor>& got,
                     DType dtype) {
  Tensor want = RoundTensor(truth, dtype, DType::kF64);
  if (!IsFloat(truth.dtype()) || !got || got->shape() != truth.shape()) {
    return want;
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const double value = got->GetDouble(i);
    const bool largest =
        std::isfinite(value) &&
        std::isinf(RoundToDType(value * (1 + Epsilon(dtype)), dtype));
    if (largest && std::isfinite(truth.GetDouble(i)) &&
        want.GetDouble(i) ==
            std::copysign(std::numeric_limits<double>::infinity(), value)) {
      want.SetDouble(i, value);
    }
  }
  return want;
}

}  // namespace cleave
