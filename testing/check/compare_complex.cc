#include "testing/check/compare_complex.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/ir/interpreter.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Complex = std::complex<double>;

// The step of the first difference; the second has half of it.
constexpr double kStep = 0x1p-12;
// Two differences that are further apart do not settle.
constexpr double kRough = 1e-3;

// Complex or real, at any element.
Complex At(const Tensor& tensor, int64_t i) {
  return IsComplex(tensor.dtype()) ? tensor.GetComplex(i)
                                   : Complex(tensor.GetDouble(i), 0);
}

bool IsFinite(Complex z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

// (f(x + h t) - f(x - h t)) / 2h, whose error is of order h^2.
absl::StatusOr<std::vector<Complex>> Differences(
    const Graph& primal, absl::Span<const Tensor> inputs, int active,
    const Tensor& tangent, double h) {
  std::vector<Complex> differences(tangent.size());
  for (const double sign : {1.0, -1.0}) {
    std::vector<Tensor> moved(inputs.begin(), inputs.end());
    Tensor at(tangent.dtype(), tangent.shape());
    for (int64_t i = 0; i < tangent.size(); ++i) {
      at.SetComplex(
          i, inputs[active].GetComplex(i) + sign * h * tangent.GetComplex(i));
    }
    moved[active] = std::move(at);
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                            Interpret(primal, moved));
    for (int64_t i = 0; i < tangent.size(); ++i) {
      differences[i] += sign / (2 * h) * At(results[0], i);
    }
  }
  return differences;
}

}  // namespace

Tensor ComplexPoints(int64_t count, std::mt19937_64& random) {
  Tensor points(DType::kC128, {count});
  std::uniform_real_distribution<double> exponent(-4, 2);
  std::uniform_real_distribution<double> angle(-M_PI, M_PI);
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::exp2(exponent(random));
    points.SetComplex(i, std::polar(magnitude, angle(random)));
  }
  return points;
}

absl::StatusOr<ComplexTangents> CompareComplexTangents(
    const Graph& primal, const Graph& jvp, absl::Span<const Tensor> inputs,
    int active, const Tensor& tangent) {
  std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  arguments.push_back(tangent);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          Interpret(jvp, arguments));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Complex> coarse,
                          Differences(primal, inputs, active, tangent, kStep));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Complex> fine,
      Differences(primal, inputs, active, tangent, kStep / 2));
  ComplexTangents found;
  for (int64_t i = 0; i < tangent.size(); ++i) {
    const double size = std::abs(fine[i]);
    if (!IsFinite(fine[i]) ||
        !(std::abs(fine[i] - coarse[i]) <= kRough * std::max(size, kRough))) {
      ++found.rough;
      continue;
    }
    ++found.samples;
    // Richardson's extrapolation: its error is of order h^4.
    const Complex expected = (4.0 * fine[i] - coarse[i]) / 3.0;
    const Complex got = At(results[1], i);
    // What rounding the values leaves of their difference.
    const double rounding = 0x1p-50 / kStep * std::abs(At(results[0], i));
    if (!found.failure &&
        !(std::abs(got - expected) <=
          kComplexTolerance * std::max(size, std::abs(got)) + rounding)) {
      found.failure = ComplexTangents::Failure{i, expected, got};
    }
  }
  return found;
}

}  // namespace cleave
