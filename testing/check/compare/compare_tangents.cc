#include "testing/check/compare/compare_tangents.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/derivative.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/ties.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"

namespace cleave {
namespace {

// Where coarse differences leave a tangent in doubt.
constexpr DifferencePrecision kSecondDifferences = {2560, -400};
// The condition of a derivative is its change where inputs move by this part,
// or by what their dtype can tell: where that changes all of a derivative, no
// digit of it is claimed.
constexpr double kMove = 0x1p-50;

// Points around one at which a tangent may be right that is not at it.
constexpr uint64_t kTrialsBeside = 8;

// The error that is allowed to tangents of f16 and bf16, beside that of wider
// dtypes, if they are right over the reals.
constexpr double kNarrowAllowance = 4;

// Terms of a tangent may be beyond the ends of its dtype where it is not: from
// this part of the largest number on they may leave an infinity, or NaN.
constexpr double kNearEnd = 0x1p-6;

// Terms of a slope are of the size of the result over that of the operand: so
// many of their ULP are lost where they cancel, as in the slope of
// `w * x / w`.
constexpr double kTermUlp = 32;

RealFunction Interpreted(const Graph& graph) {
  return [&graph](const std::vector<RealTensor>& inputs, int bits) {
    return InterpretReal(graph, inputs, bits);
  };
}

std::vector<std::optional<Tensor>> Direction(size_t operands, int active,
                                             const Tensor& direction) {
  std::vector<std::optional<Tensor>> directions(operands);
  directions[active] = direction;
  return directions;
}

// No two elements near each other have the same, so that few cancel.
Tensor UnequalOnes(const Tensor& like) {
  Tensor ones(like.dtype(), like.shape());
  for (int64_t i = 0; i < ones.size(); ++i) {
    ones.SetDouble(i, 1 + static_cast<double>(i % 61) / 64);
  }
  return ones;
}

// Whether a tangent over the reals is `slope`, but for the bits that constants
// of a rule, and differences, do not have.
bool IsSlope(const Real& tangent, const Real& slope) {
  Real difference(slope.bits());
  mpfr_sub(difference.get(), tangent.get(), slope.get(), MPFR_RNDN);
  return std::abs(difference.ToDouble()) <=
         std::max(std::abs(slope.ToDouble()), 1.0) * 0x1p-60;
}

// `function` a little beside `at` and the points around it: by random parts of
// 2^-60 of each number (of 1 where that is larger, or 0).
RealFunction Beside(const RealFunction& function, absl::Span<const Tensor> at,
                    uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> shifts;
  for (const Tensor& input : at) {
    std::vector<double>& shift = shifts.emplace_back();
    if (!IsFloat(input.dtype())) continue;
    for (int64_t i = 0; i < input.size(); ++i) {
      const double x = std::abs(input.GetDouble(i));
      shift.push_back(normal(random) * 0x1p-60 * (x > 0 && x < 1 ? x : 1));
    }
  }
  return [&function, shifts](const std::vector<RealTensor>& inputs, int bits) {
    std::vector<RealTensor> moved = inputs;
    for (size_t k = 0; k < moved.size(); ++k) {
      for (size_t i = 0; i < moved[k].reals.size(); ++i) {
        Real& x = moved[k].reals[i];
        mpfr_add_d(x.get(), x.get(), shifts[k][i], MPFR_RNDN);
      }
    }
    return function(moved, bits);
  };
}

// `tensors` over the reals, each number moved by a random part of an ULP of the
// largest of its matrix: factorizations are as exact as if their input had
// moved so (Higham, Accuracy and Stability of Numerical Algorithms, 19.3).
std::vector<RealTensor> MovedByUlps(absl::Span<const Tensor> tensors, int bits,
                                    uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<RealTensor> moved;
  for (const Tensor& tensor : tensors) {
    moved.push_back(RealTensor::FromTensor(tensor, bits));
    if (!IsFloat(tensor.dtype())) continue;
    const double ulp = std::exp2(1 - SignificandBits(tensor.dtype()));
    int64_t count = 1;  // of the numbers of a matrix
    for (int d = std::max(tensor.rank() - 2, 0); d < tensor.rank(); ++d) {
      count *= tensor.shape()[d];
    }
    double largest = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (i % count == 0) {
        largest = 0;
        for (int64_t k = i; k < i + count; ++k) {
          largest = std::max(largest, std::abs(tensor.GetDouble(k)));
        }
      }
      Real& x = moved.back().reals[i];
      mpfr_add_d(x.get(), x.get(), normal(random) * ulp * largest, MPFR_RNDN);
    }
  }
  return moved;
}

// Whether `got` is no number, for one that lies near the ends of its dtype.
bool IsNearEnd(double got, double want, DType dtype) {
  return !std::isfinite(got) &&
         std::abs(want) >= kNearEnd * FromOrdinal(MaxOrdinal(dtype), dtype);
}

// The largest factor by which a step along `direction` changes an element of
// `at`, over those that are not 0.
double LargestChange(const Tensor& at, const Tensor& direction) {
  double largest = 0;
  for (int64_t i = 0; i < at.size(); ++i) {
    const double change = std::abs(direction.GetDouble(i) / at.GetDouble(i));
    if (std::isfinite(change)) largest = std::max(largest, change);
  }
  return largest;
}

}  // namespace

absl::StatusOr<Slopes> PointSlopes(const Graph& primal,
                                   absl::Span<const Tensor> inputs, int active,
                                   DifferencePrecision precision) {
  return SlopesAlong(Interpreted(primal), inputs,
                     Direction(inputs.size(), active, Ones(inputs[active])),
                     true, precision);
}

absl::StatusOr<TangentComparison> TangentComparer::ComparePoints(
    absl::Span<const Tensor> inputs) const {
  CLEAVE_ASSIGN_OR_RETURN(const Slopes slopes,
                          PointSlopes(primal_, inputs, active_));
  return ComparePoints(inputs, slopes);
}

absl::StatusOr<TangentComparison> TangentComparer::ComparePoints(
    absl::Span<const Tensor> inputs, const Slopes& slopes) const {
  std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  arguments.push_back(Ones(inputs[active_]));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          Interpret(jvp_.graph, arguments));
  const RealFunction function = Interpreted(primal_);
  const auto slopes_at = [&](absl::Span<const Tensor> at,
                             DifferencePrecision precision) {
    return PointSlopes(primal_, at, active_, precision);
  };
  // |x_j d(slope)/dx_j / slope|, summed over the operands, at one point.
  const auto condition_at = [&](const std::vector<Tensor>& point,
                                size_t result) -> absl::StatusOr<double> {
    CLEAVE_ASSIGN_OR_RETURN(const Slopes center,
                            slopes_at(point, kSecondDifferences));
    double condition = 0;
    for (size_t j = 0; j < point.size(); ++j) {
      if (!IsFloat(point[j].dtype())) continue;
      // In f64, so that the move is not rounded away.
      const double x = point[j].GetDouble(0);
      double change = HUGE_VAL;
      for (double sign : {1.0, -1.0}) {
        std::vector<Tensor> moved = point;
        moved[j] = Tensor(point[j].dtype(), {1});
        const double move = std::max(
            kMove, std::ldexp(1.0, 1 - SignificandBits(point[j].dtype())));
        moved[j].SetDouble(0, x * (1 + sign * move));
        const double actual = x == 0 ? 0 : (moved[j].GetDouble(0) - x) / x;
        if (actual == 0) {
          change = 0;
          continue;
        }
        CLEAVE_ASSIGN_OR_RETURN(const Slopes there,
                                slopes_at(moved, kSecondDifferences));
        const auto& a = there.values[result][0];
        const auto& b = center.values[result][0];
        if (!a || !b) continue;
        Real ratio(kSecondDifferences.bits);
        mpfr_sub(ratio.get(), a->get(), b->get(), MPFR_RNDN);
        mpfr_div(ratio.get(), ratio.get(), b->get(), MPFR_RNDN);
        change = std::min(change, std::abs(ratio.ToDouble() / actual));
      }
      if (std::isfinite(change)) condition += change;
    }
    return condition;
  };
  // Whether a slope lies between those at one point and at the floats beside
  // it, or some of those have none: constants of the rule are rounded, and the
  // kink of the function may lie beside that of the body.
  const auto is_near = [&](const std::vector<Tensor>& point, size_t result,
                           double slope) -> absl::StatusOr<bool> {
    double low = HUGE_VAL;
    double high = -HUGE_VAL;
    for (size_t j = 0; j < point.size(); ++j) {
      const DType dtype = point[j].dtype();
      if (!IsFloat(dtype) || !std::isfinite(point[j].GetDouble(0))) continue;
      for (int64_t step : {-1, 0, 1}) {
        std::vector<Tensor> moved = point;
        moved[j] = Tensor(dtype, {1});
        moved[j].SetDouble(
            0,
            FromOrdinal(std::clamp(Ordinal(point[j].GetDouble(0), dtype) + step,
                                   -MaxOrdinal(dtype), MaxOrdinal(dtype)),
                        dtype));
        CLEAVE_ASSIGN_OR_RETURN(const Slopes there,
                                slopes_at(moved, kSecondDifferences));
        if (!there.values[result][0]) return true;
        const double value = there.values[result][0]->ToDouble();
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    return low <= slope && slope <= high;
  };
  TangentComparison comparison;
  comparison.errors.resize(inputs[active_].size(),
                           std::numeric_limits<double>::quiet_NaN());
  size_t output = primal_.outputs().size();
  for (size_t r = 0; r < jvp_.has_tangent.size(); ++r) {
    if (!jvp_.has_tangent[r]) continue;
    const Tensor& tangent = outputs[output++];
    for (int64_t i = 0; i < tangent.size(); ++i) {
      const std::optional<Real>& slope = slopes.values[r][i];
      // A result that overflows has no slope.
      if (!slope || !std::isfinite(inputs[active_].GetDouble(i)) ||
          !std::isfinite(outputs[r].GetDouble(i))) {
        continue;
      }
      ++comparison.samples;
      const double got = tangent.GetDouble(i);
      double error = UlpError(*slope, got, tangent.dtype());
      double bound = kDerivativeUlp;
      if (!(error <= bound)) {
        const std::vector<Tensor> point = SelectElements(inputs, {i});
        CLEAVE_ASSIGN_OR_RETURN(const Slopes again,
                                slopes_at(point, kSecondDifferences));
        if (!again.values[r][0]) {
          --comparison.samples;
          continue;
        }
        error = UlpError(*again.values[r][0], got, tangent.dtype());
        if (!(error <= bound)) {
          CLEAVE_ASSIGN_OR_RETURN(const double condition,
                                  condition_at(point, r));
          bound += kDerivativeCondition * condition;
        }
        if (!(error <= bound)) {
          CLEAVE_ASSIGN_OR_RETURN(
              const Slopes fine,
              FineSlopesAlong(
                  function, point,
                  Direction(point.size(), active_, Ones(point[active_])),
                  true));
          if (!fine.values[r][0]) {
            --comparison.samples;
            continue;
          }
          error = UlpError(*fine.values[r][0], got, tangent.dtype());
          if (error <= bound) continue;
          CLEAVE_ASSIGN_OR_RETURN(const bool tie, HasTie(body_, point));
          if (tie) {
            CLEAVE_ASSIGN_OR_RETURN(const bool chosen, is_near(point, r, got));
            if (chosen) {
              --comparison.samples;
              ++comparison.ties;
              continue;
            }
          }
          TangentFailure failure;
          failure.result = static_cast<int>(r);
          failure.element = i;
          failure.expected = fine.values[r][0]->ToString(30);
          failure.got = FloatToString(got, tangent.dtype());
          failure.ulp = error;
          failure.bound = bound;
          comparison.errors[i] = error;
          comparison.failure = std::move(failure);
          return comparison;
        }
      }
      if (!(error <= comparison.errors[i])) comparison.errors[i] = error;
      comparison.worst_part = std::max(comparison.worst_part, error / bound);
      if (error > comparison.worst_ulp) {
        comparison.worst_ulp = error;
        comparison.worst_element = i;
      }
    }
  }
  return comparison;
}

absl::StatusOr<std::vector<RealTensor>> TangentComparer::TangentsOverReals(
    absl::Span<const Tensor> arguments, int bits) const {
  std::vector<RealTensor> reals;
  for (const Tensor& argument : arguments) {
    reals.push_back(RealTensor::FromTensor(argument, bits));
  }
  return InterpretReal(jvp_.OverReals(), reals, bits);
}

absl::StatusOr<double> TangentComparer::ChangeByUlps(
    absl::Span<const Tensor> arguments, size_t output, int64_t element,
    const Real& tangent) const {
  double largest = 0;
  for (uint64_t trial = 0; trial < kTrialsBeside; ++trial) {
    const absl::StatusOr<std::vector<RealTensor>> there = InterpretReal(
        jvp_.OverReals(), MovedByUlps(arguments, tangent.bits(), trial),
        tangent.bits());
    if (absl::IsUnimplemented(there.status())) return 0.0;
    CLEAVE_RETURN_IF_ERROR(there.status());
    // Rounding may decide how many elements are found.
    const std::vector<Real>& reals = (*there)[output].reals;
    if (element >= static_cast<int64_t>(reals.size())) return 0.0;
    Real change(tangent.bits());
    mpfr_sub(change.get(), reals[element].get(), tangent.get(), MPFR_RNDN);
    const double size = std::abs(change.ToDouble());
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

absl::StatusOr<TangentComparison> TangentComparer::CompareAlong(
    absl::Span<const Tensor> inputs, const Tensor& direction,
    double tolerance) const {
  std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  arguments.push_back(direction);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          Interpret(jvp_.graph, arguments));
  const RealFunction function = Interpreted(primal_);
  const auto directions = Direction(inputs.size(), active_, direction);
  CLEAVE_ASSIGN_OR_RETURN(const Slopes slopes,
                          SlopesAlong(function, inputs, directions, false));
  std::optional<Slopes> fine;
  // The tangents of the rule over the reals, by their bits.
  std::map<int, absl::StatusOr<std::vector<RealTensor>>> over_reals;
  // Whether a result is steep in some element of the operand.
  std::optional<std::vector<std::vector<bool>>> steep;
  // The slopes along all elements of the operand at once.
  std::optional<Slopes> around;
  const double largest_change = LargestChange(inputs[active_], direction);
  TangentComparison comparison;
  size_t output = primal_.outputs().size();
  for (size_t r = 0; r < jvp_.has_tangent.size(); ++r) {
    if (!jvp_.has_tangent[r]) continue;
    const size_t tangent_output = output++;
    const Tensor& tangent = outputs[tangent_output];
    // Rounding may decide how many elements are found.
    if (slopes.values[r].size() != static_cast<size_t>(tangent.size())) {
      continue;
    }
    double largest = 0;
    for (const auto& slope : slopes.values[r]) {
      if (slope) largest = std::max(largest, std::abs(slope->ToDouble()));
    }
    double largest_value = 0;
    for (int64_t i = 0; i < outputs[r].size(); ++i) {
      const double value = std::abs(outputs[r].GetDouble(i));
      if (std::isfinite(value)) largest_value = std::max(largest_value, value);
    }
    // Half of the digits that f64 has more.
    const double relative =
        tolerance * std::exp2((53 - SignificandBits(tangent.dtype())) / 2.0);
    const double unit = relative * std::max(largest, tolerance);
    // Rounding of a tangent that is right over the reals.
    const double rounding =
        largest_value *
        std::max(relative, kTermUlp *
                               std::exp2(1 - SignificandBits(tangent.dtype())) *
                               largest_change);
    for (int64_t i = 0; i < tangent.size(); ++i) {
      const std::optional<Real>& coarse = slopes.values[r][i];
      // A result that overflows has no tangent.
      if (!coarse || !std::isfinite(outputs[r].GetDouble(i))) continue;
      ++comparison.samples;
      const double got = tangent.GetDouble(i);
      if (std::abs(got - coarse->ToDouble()) <= unit || comparison.failure) {
        continue;
      }
      // A direction's slope has no condition: what few digits leave of a steep
      // function is allowed some times as much where the rule itself is right.
      const bool narrow = SignificandBits(tangent.dtype()) < 24;
      const auto is_allowed = [&](const Real& slope,
                                  double limit) -> absl::StatusOr<bool> {
        const double error = std::abs(got - slope.ToDouble());
        if (!(error <= limit) &&
            !(narrow && error <= kNarrowAllowance * unit)) {
          return false;
        }
        const auto [it, is_new] = over_reals.try_emplace(
            slope.bits(), absl::UnknownError("not evaluated"));
        if (is_new) it->second = TangentsOverReals(arguments, slope.bits());
        // A graph that has no meaning over the reals is judged by its value.
        if (absl::IsUnimplemented(it->second.status())) return false;
        CLEAVE_RETURN_IF_ERROR(it->second.status());
        return IsSlope((*it->second)[tangent_output].reals[i], slope);
      };
      // No rule is right by a difference that is wrong.
      CLEAVE_ASSIGN_OR_RETURN(const bool allowed,
                              is_allowed(*coarse, rounding));
      if (allowed) continue;
      if (!fine) {
        CLEAVE_ASSIGN_OR_RETURN(
            fine, FineSlopesAlong(function, inputs, directions, false));
      }
      const std::optional<Real>& slope = fine->values[r][i];
      if (!slope) {
        --comparison.samples;
        continue;
      }
      const double want = slope->ToDouble();
      const double error = std::abs(got - want);
      // A tangent beyond the ends of the dtype is an infinity.
      if (error <= unit || slope->RoundTo(tangent.dtype()) == got ||
          IsNearEnd(got, want, tangent.dtype())) {
        continue;
      }
      if (std::isnan(got) && !steep) {
        CLEAVE_ASSIGN_OR_RETURN(
            steep, SteepAlong(function, inputs,
                              Direction(inputs.size(), active_,
                                        UnequalOnes(inputs[active_]))));
      }
      CLEAVE_ASSIGN_OR_RETURN(const bool tie, SortsEqualKeys(body_, inputs));
      if (tie || (std::isnan(got) && (*steep)[r][i])) {
        --comparison.samples;
        ++comparison.ties;
        continue;
      }
      // Where the result cancels, too, what it is made of shows in its slope
      // along all elements: of log(det), the inverse.
      if (!around) {
        CLEAVE_ASSIGN_OR_RETURN(
            around, SlopesAlong(function, inputs,
                                Direction(inputs.size(), active_,
                                          UnequalOnes(inputs[active_])),
                                false));
      }
      double limit = rounding;
      for (const std::optional<Real>& other : around->values[r]) {
        if (!other) continue;
        limit = std::max(
            limit, kTermUlp * std::exp2(1 - SignificandBits(tangent.dtype())) *
                       std::abs(other->ToDouble()));
      }
      CLEAVE_ASSIGN_OR_RETURN(const bool right, is_allowed(*slope, limit));
      if (right) continue;
      // Where a matrix is ill-conditioned, an ULP moves the slope by many of
      // its own.
      CLEAVE_ASSIGN_OR_RETURN(
          const double change,
          ChangeByUlps(arguments, tangent_output, i, *slope));
      CLEAVE_ASSIGN_OR_RETURN(const bool conditioned,
                              is_allowed(*slope, kTermUlp * change));
      if (conditioned) continue;
      // Equal pivots: which of them is taken, rounding over the reals decides.
      bool is_beside = false;
      for (uint64_t trial = 0; trial < kTrialsBeside && !is_beside; ++trial) {
        CLEAVE_ASSIGN_OR_RETURN(const Slopes there,
                                SlopesAlong(Beside(function, inputs, trial),
                                            inputs, directions, false));
        const std::optional<Real>& other = there.values[r][i];
        is_beside = other && std::abs(got - other->ToDouble()) <= unit;
      }
      if (is_beside) {
        --comparison.samples;
        ++comparison.ties;
        continue;
      }
      TangentFailure failure;
      failure.result = static_cast<int>(r);
      failure.element = i;
      failure.expected = slope->ToString(30);
      failure.got = FloatToString(got, tangent.dtype());
      failure.ulp = UlpError(*slope, got, tangent.dtype());
      failure.bound =
          UlpsOf(Real(unit, slope->bits()), *slope, tangent.dtype());
      comparison.failure = std::move(failure);
    }
  }
  return comparison;
}

}  // namespace cleave
