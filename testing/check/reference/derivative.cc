#include "testing/check/reference/derivative.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/status_macros.h"

namespace cleave {
namespace {

// Fine steps are below every spacing that a quotient of two f64 numbers can
// have, and their differences are exact to hundreds of bits.
constexpr DifferencePrecision kFine = {8192, -2400};
constexpr DifferencePrecision kFinest = {8192, -2500};
// One-sided differences of this step and of its square.
constexpr DifferencePrecision kSteep = {1280, -100};
// The two sides of a smooth point agree to about the step times their second
// derivative.
constexpr int kSmooth = -40;

// Whether `difference`, of `a` and `b`, is negligible beside them.
bool IsSmooth(const Real& difference, const Real& a, const Real& b) {
  if (!mpfr_number_p(difference.get())) return false;
  if (mpfr_zero_p(difference.get())) return true;
  const auto exponent = [](const Real& x) {
    return mpfr_regular_p(x.get()) ? mpfr_get_exp(x.get()) : mpfr_get_emin();
  };
  return exponent(difference) <= std::max(exponent(a), exponent(b)) + kSmooth;
}

// x + 2^exponent direction.
Real Stepped(const Real& x, double direction, int exponent) {
  Real moved(direction, x.bits());
  mpfr_mul_2si(moved.get(), moved.get(), exponent, MPFR_RNDN);
  mpfr_add(moved.get(), x.get(), moved.get(), MPFR_RNDN);
  return moved;
}

// (to - from) / 2^exponent.
Real Quotient(const Real& to, const Real& from, int exponent) {
  Real slope(to.bits());
  mpfr_sub(slope.get(), to.get(), from.get(), MPFR_RNDN);
  mpfr_mul_2si(slope.get(), slope.get(), -exponent, MPFR_RNDN);
  return slope;
}

}  // namespace

absl::StatusOr<Slopes> SlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, bool elementwise,
    DifferencePrecision precision) {
  const int bits = precision.bits;
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
      int exponent = precision.step_exponent;
      if (elementwise && mpfr_regular_p(x.get())) {
        exponent +=
            static_cast<int>(std::min<mpfr_exp_t>(mpfr_get_exp(x.get()), 0));
      }
      if (elementwise) exponents.push_back(exponent);
      const double direction = directions[k]->GetDouble(i);
      sides[0][k].reals[i] = Stepped(x, direction, exponent);
      sides[1][k].reals[i] = Stepped(x, -direction, exponent);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const auto at, function(center, bits));
  CLEAVE_ASSIGN_OR_RETURN(const auto up, function(sides[0], bits));
  CLEAVE_ASSIGN_OR_RETURN(const auto down, function(sides[1], bits));
  Slopes slopes;
  for (size_t r = 0; r < at.size(); ++r) {
    slopes.values.emplace_back();
    // A result whose extent the inputs decide jumps where it changes.
    if (up[r].shape != at[r].shape || down[r].shape != at[r].shape) {
      slopes.values.back().resize(at[r].reals.size());
      continue;
    }
    for (size_t i = 0; i < at[r].reals.size(); ++i) {
      const int exponent = elementwise ? exponents[i] : precision.step_exponent;
      Real right = Quotient(up[r].reals[i], at[r].reals[i], exponent);
      const Real left = Quotient(at[r].reals[i], down[r].reals[i], exponent);
      Real difference(bits);
      mpfr_sub(difference.get(), right.get(), left.get(), MPFR_RNDN);
      if (!IsSmooth(difference, right, left)) {
        slopes.values.back().push_back(std::nullopt);
        continue;
      }
      mpfr_add(right.get(), right.get(), left.get(), MPFR_RNDN);
      mpfr_div_2ui(right.get(), right.get(), 1, MPFR_RNDN);
      slopes.values.back().push_back(std::move(right));
    }
  }
  return slopes;
}

absl::StatusOr<Slopes> FineSlopesAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions, bool elementwise) {
  CLEAVE_ASSIGN_OR_RETURN(
      Slopes slopes,
      SlopesAlong(function, inputs, directions, elementwise, kFine));
  CLEAVE_ASSIGN_OR_RETURN(
      const Slopes again,
      SlopesAlong(function, inputs, directions, elementwise, kFinest));
  for (size_t r = 0; r < slopes.values.size(); ++r) {
    for (size_t i = 0; i < slopes.values[r].size(); ++i) {
      std::optional<Real>& slope = slopes.values[r][i];
      const std::optional<Real>& other = again.values[r][i];
      if (!slope) continue;
      if (!other) {
        slope.reset();
        continue;
      }
      Real change(kFine.bits);
      mpfr_sub(change.get(), slope->get(), other->get(), MPFR_RNDN);
      if (!IsSmooth(change, *slope, *other)) slope.reset();
    }
  }
  return slopes;
}

absl::StatusOr<std::vector<std::vector<bool>>> SteepAlong(
    const RealFunction& function, absl::Span<const Tensor> inputs,
    const std::vector<std::optional<Tensor>>& directions) {
  const auto at = [&](int sign, int exponent) {
    std::vector<RealTensor> moved;
    for (size_t k = 0; k < inputs.size(); ++k) {
      moved.push_back(RealTensor::FromTensor(inputs[k], kSteep.bits));
      if (!directions[k]) continue;
      for (size_t i = 0; i < moved[k].reals.size(); ++i) {
        Real& x = moved[k].reals[i];
        x = Stepped(x, sign * directions[k]->GetDouble(i), exponent);
      }
    }
    return function(moved, kSteep.bits);
  };
  constexpr int kStep = kSteep.step_exponent;
  CLEAVE_ASSIGN_OR_RETURN(const auto center, at(0, 0));
  std::vector<std::vector<bool>> steep;
  for (const RealTensor& result : center) {
    steep.emplace_back(result.reals.size());
  }
  for (int sign : {1, -1}) {
    CLEAVE_ASSIGN_OR_RETURN(const auto coarse, at(sign, kStep));
    CLEAVE_ASSIGN_OR_RETURN(const auto fine, at(sign, 2 * kStep));
    for (size_t r = 0; r < center.size(); ++r) {
      if (coarse[r].shape != center[r].shape ||
          fine[r].shape != center[r].shape) {
        continue;
      }
      for (size_t i = 0; i < center[r].reals.size(); ++i) {
        const Real& x = center[r].reals[i];
        const Real a = Quotient(coarse[r].reals[i], x, kStep);
        const Real b = Quotient(fine[r].reals[i], x, 2 * kStep);
        Real change(kSteep.bits);
        mpfr_sub(change.get(), a.get(), b.get(), MPFR_RNDN);
        if (!IsSmooth(change, a, b)) steep[r][i] = true;
      }
    }
  }
  return steep;
}

bool AllFinite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!IsFloat(tensor.dtype())) continue;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (!std::isfinite(tensor.GetDouble(i))) return false;
    }
  }
  return true;
}

}  // namespace cleave
