#include "testing/numerics/numeric_error.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/reference/real.h"
#include "ops/status_macros.h"
#include "testing/check/samples/float_points.h"

namespace cleave {
namespace {

// Beyond f32 and f64 by far: no result is taken for the midpoint of two floats.
constexpr int kBits = 160;

}  // namespace

std::string NumericError::ToString() const {
  std::string text = absl::StrFormat("%.4f ulp at ", ulp);
  for (size_t i = 0; i < at.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%.9g (%a)", i == 0 ? "" : ", ", at[i],
                          at[i]);
  }
  absl::StrAppendFormat(&text, ": got %a, expected %a", got, expected);
  return text;
}

absl::Status MeasureError(Primitive primitive,
                          absl::Span<const Tensor> operands,
                          const Tensor& results, NumericError* worst) {
  std::vector<RealTensor> reals;
  for (const Tensor& operand : operands) {
    reals.push_back(RealTensor::FromTensor(operand, kBits));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> expected,
                          EvalReal(primitive, {}, reals, kBits));
  for (int64_t i = 0; i < results.size(); ++i) {
    const Real& e = expected[0].reals[i];
    const double got = results.GetDouble(i);
    double ulp = UlpError(e, got, results.dtype());
    if (mpfr_zero_p(e.get()) && ulp == 0 &&
        std::signbit(got) != (mpfr_signbit(e.get()) != 0)) {
      ulp = std::numeric_limits<double>::infinity();
    }
    if (ulp <= worst->ulp) continue;
    worst->ulp = ulp;
    worst->at.clear();
    for (const Tensor& operand : operands) {
      worst->at.push_back(operand.GetDouble(i));
    }
    worst->got = got;
    worst->expected = e.ToDouble();
  }
  return absl::OkStatus();
}

}  // namespace cleave
