#include "testing/check/derivative.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr int kStep = -100;
// The two sides of a smooth point agree to about 2^-100 of their second
// derivative.
constexpr int kSmooth = -40;

}  // namespace

absl::StatusOr<Slopes> SlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, int bits,
    bool elementwise) {
  std::vector<RealTensor> center;
  for (const Tensor& input : inputs) {
    center.push_back(RealTensor::FromTensor(input, bits));
  }
  // Elementwise functions take a step of their own for each element: `scale`
  // is what it was divided by.
  std::vector<int> exponents;
  std::vector<RealTensor> sides[2] = {center, center};
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!directions[k]) continue;
    for (size_t i = 0; i < center[k].reals.size(); ++i) {
      const Real& x = center[k].reals[i];
      int exponent = kStep;
      if (elementwise && mpfr_regular_p(x.get())) {
        exponent +=
            static_cast<int>(std::min<mpfr_exp_t>(mpfr_get_exp(x.get()), 0));
      }
      if (elementwise) exponents.push_back(exponent);
      Real step(directions[k]->GetDouble(i), bits);
      mpfr_mul_2si(step.get(), step.get(), exponent, MPFR_RNDN);
      mpfr_add(sides[0][k].reals[i].get(), x.get(), step.get(), MPFR_RNDN);
      mpfr_sub(sides[1][k].reals[i].get(), x.get(), step.get(), MPFR_RNDN);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const auto at, function(center, bits));
  CLEAVE_ASSIGN_OR_RETURN(const auto up, function(sides[0], bits));
  CLEAVE_ASSIGN_OR_RETURN(const auto down, function(sides[1], bits));
  Slopes slopes;
  for (size_t r = 0; r < at.size(); ++r) {
    slopes.values.emplace_back();
    for (size_t i = 0; i < at[r].reals.size(); ++i) {
      Real right(bits), left(bits), difference(bits);
      mpfr_sub(right.get(), up[r].reals[i].get(), at[r].reals[i].get(),
               MPFR_RNDN);
      mpfr_sub(left.get(), at[r].reals[i].get(), down[r].reals[i].get(),
               MPFR_RNDN);
      const int exponent = elementwise ? exponents[i] : kStep;
      mpfr_mul_2si(right.get(), right.get(), -exponent, MPFR_RNDN);
      mpfr_mul_2si(left.get(), left.get(), -exponent, MPFR_RNDN);
      mpfr_sub(difference.get(), right.get(), left.get(), MPFR_RNDN);
      if (!mpfr_number_p(difference.get())) {
        slopes.values.back().push_back(std::nullopt);
        continue;
      }
      if (mpfr_regular_p(difference.get())) {
        const mpfr_exp_t size =
            std::max(mpfr_regular_p(right.get()) ? mpfr_get_exp(right.get())
                                                 : mpfr_get_emin(),
                     mpfr_regular_p(left.get()) ? mpfr_get_exp(left.get())
                                                : mpfr_get_emin());
        if (mpfr_get_exp(difference.get()) > size + kSmooth) {
          slopes.values.back().push_back(std::nullopt);
          continue;
        }
      }
      mpfr_add(right.get(), right.get(), left.get(), MPFR_RNDN);
      mpfr_div_2ui(right.get(), right.get(), 1, MPFR_RNDN);
      slopes.values.back().push_back(std::move(right));
    }
  }
  return slopes;
}

}  // namespace cleave
