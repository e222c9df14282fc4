#include "testing/check/layers/screen_slopes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "testing/check/layers/sized_sum.h"

namespace cleave {
namespace {

// The steps of the differences, and what they may be off by: a part of the
// largest slope, and of the largest result, which the step magnifies.
struct Step {
  double size;
  double tolerance;
  double tolerance_of_results;
};
constexpr Step kSteps[] = {{0x1p-17, 1e-5, 0x1p-28}, {0x1p-23, 1e-3, 0x1p-22}};
// The same for inner products, by the sizes of their terms.
constexpr double kProductTolerance = 1e-4;

// `x` with its floats moved by `step` times the directions.
std::vector<Tensor> Moved(absl::Span<const Tensor> x,
                          absl::Span<const Tensor> directions, double step) {
  std::vector<Tensor> moved;
  size_t next = 0;
  for (const Tensor& tensor : x) {
    if (!IsFloat(tensor.dtype())) {
      moved.push_back(tensor);
      continue;
    }
    const Tensor& direction = directions[next++];
    Tensor& beside = moved.emplace_back(tensor.dtype(), tensor.shape());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      beside.SetDouble(i, tensor.GetDouble(i) + step * direction.GetDouble(i));
    }
  }
  return moved;
}

std::vector<Tensor> Joined(absl::Span<const Tensor> x,
                           absl::Span<const Tensor> further) {
  std::vector<Tensor> joined(x.begin(), x.end());
  joined.insert(joined.end(), further.begin(), further.end());
  return joined;
}

double LargestOf(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double size = std::abs(tensor.GetDouble(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

// The body's results at a point, `at`, and at one step on both sides.
struct Differences {
  static absl::StatusOr<Differences> Make(const Graph& body,
                                          absl::Span<const Tensor> x,
                                          absl::Span<const Tensor> at,
                                          absl::Span<const Tensor> directions,
                                          const Step& step) {
    Differences d;
    d.step = step;
    d.at = at;
    CLEAVE_ASSIGN_OR_RETURN(d.ahead,
                            Interpret(body, Moved(x, directions, step.size)));
    CLEAVE_ASSIGN_OR_RETURN(d.behind,
                            Interpret(body, Moved(x, directions, -step.size)));
    return d;
  }

  // The slope of an element; nullopt where there is none: results that are not
  // finite, a kink or a jump.
  std::optional<double> Slope(size_t result, int64_t i, double allowed) const {
    // Numbers that were found may be as many as they like.
    if (ahead[result].size() != at[result].size() ||
        behind[result].size() != at[result].size()) {
      return std::nullopt;
    }
    const double here = at[result].GetDouble(i);
    const double before = (here - behind[result].GetDouble(i)) / step.size;
    const double after = (ahead[result].GetDouble(i) - here) / step.size;
    // As of a NaN or of two infinities.
    if (!(std::abs(after - before) <= allowed + 1e-3 * std::abs(after))) {
      return std::nullopt;
    }
    return (before + after) / 2;
  }

  // The error that a slope of `result` may have.
  double Allowed(size_t result, const Tensor& tangent) const {
    return step.tolerance * LargestOf(tangent) +
           step.tolerance_of_results * LargestOf(at[result]);
  }

  Step step;
  absl::Span<const Tensor> at;
  std::vector<Tensor> ahead;
  std::vector<Tensor> behind;
};

// The first element of a tangent that is off; `compared` counts those that
// were compared.
std::optional<SlopeSuspicion> OffTangent(const Graph& body,
                                         const Differences& differences,
                                         const std::vector<bool>& has_tangent,
                                         absl::Span<const Tensor> tangents,
                                         int64_t& compared) {
  size_t next = 0;
  for (size_t r = 0; r < has_tangent.size(); ++r) {
    if (!has_tangent[r]) continue;
    const Tensor& tangent = tangents[next++];
    if (tangent.size() != differences.at[r].size()) continue;
    const double allowed = differences.Allowed(r, tangent);
    for (int64_t i = 0; i < tangent.size(); ++i) {
      const std::optional<double> slope = differences.Slope(r, i, allowed);
      if (!slope) continue;
      ++compared;
      const double got = tangent.GetDouble(i);
      if (std::abs(got - *slope) <= allowed + 1e-5 * std::abs(*slope)) continue;
      return SlopeSuspicion{
          absl::StrCat("derivative of ", body.outputs()[r].name, "[", i, "]"),
          false, *slope, got};
    }
  }
  return std::nullopt;
}

// The inner product of tensors of the same types.
SizedSum ProductOf(absl::Span<const Tensor> a, absl::Span<const Tensor> b) {
  SizedSum product;
  for (size_t k = 0; k < a.size(); ++k) {
    for (int64_t i = 0; i < a[k].size(); ++i) {
      product.Add(a[k].GetDouble(i) * b[k].GetDouble(i));
    }
  }
  return product;
}

}  // namespace

absl::StatusOr<SlopeScreen> ScreenSlopes(const Graph& body,
                                         const CallSlopes& slopes,
                                         absl::Span<const Tensor> x,
                                         absl::Span<const Tensor> directions,
                                         absl::Span<const Tensor> cotangents) {
  SlopeScreen screen;
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> tangents,
                          Interpret(slopes.jvp, Joined(x, directions)));
  tangents.erase(
      tangents.begin(),
      tangents.begin() + static_cast<int64_t>(body.outputs().size()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> at, Interpret(body, x));
  for (const Step& step : kSteps) {
    CLEAVE_ASSIGN_OR_RETURN(const Differences differences,
                            Differences::Make(body, x, at, directions, step));
    screen.compared = 0;
    screen.suspicion = OffTangent(body, differences, slopes.has_tangent,
                                  tangents, screen.compared);
    if (!screen.suspicion) break;
  }
  if (screen.suspicion) return screen;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pulled,
                          Interpret(slopes.vjp, Joined(x, cotangents)));
  const SizedSum want = ProductOf(tangents, cotangents);
  const SizedSum got = ProductOf(pulled, directions);
  if (!std::isfinite(want.size)) return screen;
  ++screen.compared;
  const double allowed = kProductTolerance * std::max(want.size, got.size);
  // A NaN is off, too.
  if (!(std::abs(want.value - got.value) <= allowed)) {
    screen.suspicion =
        SlopeSuspicion{"<Jv, w> = <v, J^T w>", true, want.value, got.value};
  }
  return screen;
}

}  // namespace cleave
