#include "testing/fuzz/differential/check_derivatives.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "testing/fuzz/differential/decisions.h"
#include "testing/fuzz/differential/noise.h"
#include "testing/fuzz/differential/parts.h"
#include "testing/fuzz/differential/random.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"

namespace cleave::fuzz {
namespace {

// The part of the summed magnitudes by which the two sums may differ.
constexpr double kAdjointTolerance = 1e-13;
constexpr double kSteps[] = {1e-4, 0.5e-4, 0.25e-4};
constexpr uint64_t kNoises = 6;
// For what is seen of rounding in so many samples.
constexpr double kMargin = 8;

bool IsFinite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!IsInexact(tensor.dtype())) continue;
    for (int64_t i = 0; i < Parts(tensor); ++i) {
      if (!(std::abs(GetPart(tensor, i)) < 1e12)) return false;
    }
  }
  return true;
}

Tensor Direction(const Tensor& like, Random& random) {
  Tensor tensor(like.dtype(), like.shape());
  for (int64_t i = 0; i < Parts(tensor); ++i) {
    SetPart(tensor, i, static_cast<double>(random.Between(-64, 64)) / 64);
  }
  return tensor;
}

Tensor Moved(const Tensor& x, const Tensor& by, double step) {
  Tensor result(x.dtype(), x.shape());
  for (int64_t i = 0; i < Parts(x); ++i) {
    SetPart(result, i, GetPart(x, i) + step * GetPart(by, i));
  }
  return result;
}

// The sum of the products, and that of their magnitudes.
void AddProducts(const Tensor& a, const Tensor& b, double& sum, double& size) {
  for (int64_t i = 0; i < Parts(a); ++i) {
    const double product = GetPart(a, i) * GetPart(b, i);
    sum += product;
    size += std::abs(product);
  }
}

class Comparer {
 public:
  Comparer(const Graph& function, Graph primal, Graph jvp, Graph vjp)
      : function_(function),
        primal_(std::move(primal)),
        jvp_(std::move(jvp)),
        vjp_(std::move(vjp)) {
    for (const NamedValue& input : function_.inputs()) {
      active_.push_back(IsInexact(function_.type(input.value).dtype));
    }
  }

  void Compare(const std::vector<Tensor>& x, uint64_t seed, Slopes& slopes) {
    const auto want = Interpret(primal_, x);
    if (!want.ok() || !IsFinite(*want)) return;
    Random random(seed);
    std::vector<Tensor> tangents;
    for (size_t i = 0; i < x.size(); ++i) {
      if (active_[i]) tangents.push_back(Direction(x[i], random));
    }
    std::vector<Tensor> forward = x;
    forward.insert(forward.end(), tangents.begin(), tangents.end());
    const auto pushed = Interpret(jvp_, forward);
    // A derivative may need more than the limits that its function just keeps.
    if (absl::IsResourceExhausted(pushed.status())) return;
    if (!pushed.ok()) {
      slopes.what = "jvp fails";
      slopes.text = pushed.status().ToString();
      return;
    }
    std::vector<Tensor> backward = x;
    std::vector<Tensor> cotangents;
    for (const Tensor& y : *want) {
      if (!IsInexact(y.dtype())) continue;
      cotangents.push_back(Direction(y, random));
      backward.push_back(cotangents.back());
    }
    const auto pulled = Interpret(vjp_, backward);
    if (absl::IsResourceExhausted(pulled.status())) return;
    if (!pulled.ok()) {
      slopes.what = "vjp fails";
      slopes.text = pulled.status().ToString();
      return;
    }
    slopes.gradient_points.push_back(backward);
    for (size_t r = 0; r < want->size(); ++r) {
      if (!SameValue((*pushed)[r], (*want)[r]) ||
          !SameValue((*pulled)[r], (*want)[r])) {
        slopes.what = "primal of a derivative";
        slopes.text = absl::StrCat(
            "result ", r, ": jvp ", (*pushed)[r].ToString(), "\nvjp ",
            (*pulled)[r].ToString(), "\nwant ", (*want)[r].ToString());
        return;
      }
    }
    const std::vector<Tensor> jv(pushed->begin() + want->size(), pushed->end());
    const std::vector<Tensor> jtw(pulled->begin() + want->size(),
                                  pulled->end());
    if (!IsFinite(jv) || !IsFinite(jtw)) return;
    ++slopes.comparisons;
    double left = 0, right = 0, size = 0;
    for (size_t i = 0; i < jv.size(); ++i) {
      AddProducts(jv[i], cotangents[i], left, size);
    }
    for (size_t i = 0; i < jtw.size(); ++i) {
      AddProducts(jtw[i], tangents[i], right, size);
    }
    double allowed = kAdjointTolerance * size;
    if (std::abs(left - right) > allowed) {
      allowed +=
          kMargin * (SpreadOfSum(jvp_, forward, want->size(), cotangents) +
                     SpreadOfSum(vjp_, backward, want->size(), tangents));
    }
    if (std::abs(left - right) > allowed) {
      slopes.what = "vjp against jvp";
      slopes.text = absl::StrCat("<Jv, w> = ", left, ", <v, J^T w> = ", right,
                                 ", allowed ", allowed);
      for (const Tensor& t : tangents) {
        absl::StrAppend(&slopes.text, "\nv ", t.ToString());
      }
      for (const Tensor& t : jv) {
        absl::StrAppend(&slopes.text, "\nJv ", t.ToString());
      }
      for (const Tensor& t : cotangents) {
        absl::StrAppend(&slopes.text, "\nw ", t.ToString());
      }
      for (const Tensor& t : jtw) {
        absl::StrAppend(&slopes.text, "\nJ^T w ", t.ToString());
      }
      return;
    }
    CompareDifferences(x, tangents, random, slopes);
  }

 private:
  // Central differences with three steps, at a point off the lattice of the
  // inputs, on which ties and kinks are.
  void CompareDifferences(const std::vector<Tensor>& lattice,
                          const std::vector<Tensor>& tangents, Random& random,
                          Slopes& slopes) {
    std::vector<Tensor> x = lattice;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!active_[i]) continue;
      for (int64_t e = 0; e < Parts(x[i]); ++e) {
        SetPart(x[i], e,
                GetPart(x[i], e) +
                    static_cast<double>(random.Between(1'000, 99'999)) / 1e6);
      }
    }
    const auto decided = DecisionsAt(primal_, x);
    if (!decided.ok()) return;
    std::vector<std::vector<Tensor>> at;
    for (const double step : kSteps) {
      for (const double way : {step, -step}) {
        std::vector<Tensor> inputs = x;
        size_t next = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          if (active_[i]) inputs[i] = Moved(x[i], tangents[next++], way);
        }
        const auto decisions = DecisionsAt(primal_, inputs);
        auto results = Interpret(primal_, inputs);
        if (!decisions.ok() || *decisions != *decided || !results.ok() ||
            !IsFinite(*results)) {
          return;
        }
        at.push_back(*std::move(results));
      }
    }
    std::vector<Tensor> forward = x;
    forward.insert(forward.end(), tangents.begin(), tangents.end());
    const auto pushed = Interpret(jvp_, forward);
    if (!pushed.ok() || !IsFinite(*pushed)) return;
    const std::optional<std::vector<std::vector<double>>> spread =
        RoundingSpread(primal_, x);
    const std::optional<std::vector<std::vector<double>>> slope_spread =
        RoundingSpread(jvp_, forward);
    if (!spread.has_value() || !slope_spread.has_value()) return;
    const size_t results = at[0].size();
    size_t next = results;
    for (size_t r = 0; r < results; ++r) {
      if (!IsInexact(at[0][r].dtype())) continue;
      const size_t tangent = next++;
      const Tensor& slope = (*pushed)[tangent];
      for (int64_t i = 0; i < Parts(slope); ++i) {
        double difference[3];
        for (int s = 0; s < 3; ++s) {
          difference[s] =
              (GetPart(at[2 * s][r], i) - GetPart(at[2 * s + 1][r], i)) /
              (2 * kSteps[s]);
        }
        const double got = GetPart(slope, i);
        // Central differences are off by O(step^2): by a third of how far two
        // of them part, at half the step. Along with what rounding does.
        const double noise = kMargin * ((*spread)[r][i] / kSteps[2] +
                                        (*slope_spread)[tangent][i]) +
                             1e-10 * std::abs(got);
        const double parting =
            std::max(std::abs(difference[0] - difference[1]),
                     std::abs(difference[1] - difference[2]));
        // Too rough, or too noisy, to say anything.
        if (!(parting + noise < 1e-2 * (1 + std::abs(difference[2])))) continue;
        ++slopes.comparisons;
        if (std::abs(difference[2] - got) <= kMargin * parting + noise)
          continue;
        slopes.what = "jvp against differences";
        slopes.text =
            absl::StrCat("result ", r, "[", i, "]: tangent ", got,
                         ", differences ", difference[0], ", ", difference[1],
                         " and ", difference[2], ", rounding ", noise, "\nat");
        for (const Tensor& t : x)
          absl::StrAppend(&slopes.text, " ", t.ToString());
        absl::StrAppend(&slopes.text, "\nalong");
        for (const Tensor& t : tangents) {
          absl::StrAppend(&slopes.text, " ", t.ToString());
        }
        return;
      }
    }
  }

  // How far rounding may move the sum of the products with `weights`.
  static double SpreadOfSum(const Graph& graph,
                            const std::vector<Tensor>& inputs, size_t first,
                            const std::vector<Tensor>& weights) {
    const auto spread = RoundingSpread(graph, inputs);
    if (!spread.has_value()) return 0;
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      for (int64_t e = 0; e < Parts(weights[i]); ++e) {
        sum += (*spread)[first + i][e] * std::abs(GetPart(weights[i], e));
      }
    }
    return sum;
  }

  const Graph& function_;
  const Graph primal_;
  const Graph jvp_;
  const Graph vjp_;
  std::vector<bool> active_;
};

}  // namespace

std::optional<std::vector<std::vector<double>>> RoundingSpread(
    const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto exact = Interpret(graph, inputs);
  if (!exact.ok()) return std::nullopt;
  std::vector<std::vector<double>> spread;
  for (const Tensor& tensor : *exact) {
    spread.emplace_back(
        IsInexact(tensor.dtype()) ? Parts(tensor) : tensor.size(), 0.0);
  }
  for (uint64_t seed = 0; seed < kNoises; ++seed) {
    Random random(seed + 100);
    std::vector<Tensor> moved = inputs;
    for (Tensor& tensor : moved) {
      if (!IsInexact(tensor.dtype())) continue;
      Tensor other(tensor.dtype(), tensor.shape());
      for (int64_t i = 0; i < Parts(tensor); ++i) {
        const double part = GetPart(tensor, i);
        SetPart(
            other, i,
            part * (1 + 0x1p-52 * static_cast<double>(random.Between(-1, 1))));
      }
      tensor = other;
    }
    const auto noisy = InterpretWithNoise(graph, moved, seed, NoiseOf::kAll);
    if (!noisy.ok()) return std::nullopt;
    for (size_t r = 0; r < exact->size(); ++r) {
      if (!IsInexact((*exact)[r].dtype())) continue;
      for (int64_t i = 0; i < Parts((*exact)[r]); ++i) {
        const double by =
            std::abs(GetPart((*noisy)[r], i) - GetPart((*exact)[r], i));
        // NaN, too: nothing is known then.
        if (!(by <= spread[r][i])) spread[r][i] = by;
      }
    }
  }
  return spread;
}

Slopes CheckDerivatives(const Graph& function, const RuleSet& rules,
                        const std::vector<std::vector<Tensor>>& points) {
  Slopes slopes;
  std::vector<bool> active;
  bool any = false;
  for (const NamedValue& input : function.inputs()) {
    active.push_back(IsInexact(function.type(input.value).dtype));
    any |= active.back();
  }
  const auto primal = Expand(function, rules);
  if (!any || !primal.ok()) return slopes;
  const auto fail = [&](const std::string& what, const absl::Status& status) {
    // No derivative is known of some operations.
    if (status.code() == absl::StatusCode::kUnimplemented) return slopes;
    slopes.what = what;
    slopes.text = status.ToString();
    return slopes;
  };
  const auto jvp = Jvp(function, active, rules);
  if (!jvp.ok()) return fail("jvp", jvp.status());
  const auto vjp = Vjp(function, active, rules);
  if (!vjp.ok()) return fail("vjp", vjp.status());
  auto forward = Expand(jvp->graph, rules);
  if (!forward.ok()) return fail("jvp", forward.status());
  auto backward = Expand(vjp->graph, rules);
  if (!backward.ok()) return fail("vjp", backward.status());
  slopes.gradient = *backward;
  Comparer comparer(function, *primal, *std::move(forward),
                    *std::move(backward));
  for (size_t i = 0; i < points.size() && slopes.what.empty(); ++i) {
    comparer.Compare(points[i], i, slopes);
  }
  return slopes;
}

}  // namespace cleave::fuzz
