#include "testing/fuzz/differential/check_derivatives.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "testing/fuzz/differential/random.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"

namespace cleave::fuzz {
namespace {

// Of the magnitudes that are summed.
constexpr double kAdjointTolerance = 1e-8;
constexpr double kDifferenceTolerance = 1e-4;
constexpr double kStep = 1e-4;

bool IsFinite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!IsFloat(tensor.dtype())) continue;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (!(std::abs(tensor.GetDouble(i)) < 1e12)) return false;
    }
  }
  return true;
}

Tensor Direction(const std::vector<int64_t>& shape, Random& random) {
  Tensor tensor(DType::kF64, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, static_cast<double>(random.Between(-64, 64)) / 64);
  }
  return tensor;
}

Tensor Moved(const Tensor& x, const Tensor& by, double step) {
  Tensor result(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    result.SetDouble(i, x.GetDouble(i) + step * by.GetDouble(i));
  }
  return result;
}

// The sum of the products, and that of their magnitudes.
void AddProducts(const Tensor& a, const Tensor& b, double& sum, double& size) {
  for (int64_t i = 0; i < a.size(); ++i) {
    const double product = a.GetDouble(i) * b.GetDouble(i);
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
      active_.push_back(IsFloat(function_.type(input.value).dtype));
    }
  }

  void Compare(const std::vector<Tensor>& x, uint64_t seed, Slopes& slopes) {
    const auto want = Interpret(primal_, x);
    if (!want.ok() || !IsFinite(*want)) return;
    Random random(seed);
    std::vector<Tensor> tangents;
    for (size_t i = 0; i < x.size(); ++i) {
      if (active_[i]) tangents.push_back(Direction(x[i].shape(), random));
    }
    std::vector<Tensor> forward = x;
    forward.insert(forward.end(), tangents.begin(), tangents.end());
    const auto pushed = Interpret(jvp_, forward);
    if (!pushed.ok()) {
      slopes.what = "jvp fails";
      slopes.text = pushed.status().ToString();
      return;
    }
    std::vector<Tensor> backward = x;
    std::vector<Tensor> cotangents;
    for (const Tensor& y : *want) {
      if (!IsFloat(y.dtype())) continue;
      cotangents.push_back(Direction(y.shape(), random));
      backward.push_back(cotangents.back());
    }
    const auto pulled = Interpret(vjp_, backward);
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
    if (std::abs(left - right) > kAdjointTolerance * size + 1e-12) {
      slopes.what = "vjp against jvp";
      slopes.text = absl::StrCat("<Jv, w> = ", left, ", <v, J^T w> = ", right);
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
    CompareDifferences(x, tangents, *want, jv, slopes);
  }

 private:
  // Central differences with two steps: where they agree, the function is taken
  // to be smooth.
  void CompareDifferences(const std::vector<Tensor>& x,
                          const std::vector<Tensor>& tangents,
                          const std::vector<Tensor>& want,
                          const std::vector<Tensor>& jv, Slopes& slopes) {
    std::vector<std::vector<Tensor>> at;
    // Off the lattice of the inputs, where ties and kinks are.
    for (const double step : {kStep, -kStep, kStep / 2, -kStep / 2}) {
      std::vector<Tensor> inputs = x;
      size_t next = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (active_[i]) inputs[i] = Moved(x[i], tangents[next++], step);
      }
      auto results = Interpret(primal_, inputs);
      if (!results.ok() || !IsFinite(*results)) return;
      at.push_back(*std::move(results));
    }
    size_t next = 0;
    for (size_t r = 0; r < want.size(); ++r) {
      if (!IsFloat(want[r].dtype())) continue;
      const Tensor& slope = jv[next++];
      for (int64_t i = 0; i < slope.size(); ++i) {
        const double y = want[r].GetDouble(i);
        const double a = at[0][r].GetDouble(i), b = at[1][r].GetDouble(i);
        const double c = at[2][r].GetDouble(i), d = at[3][r].GetDouble(i);
        const double wide = (a - b) / (2 * kStep);
        const double narrow = (c - d) / kStep;
        // One-sided slopes tell kinks.
        const double up = (c - y) / (kStep / 2), down = (y - d) / (kStep / 2);
        // Rounding of y over the step, too.
        const double size = 1 + std::abs(narrow);
        const double noise = 1e-11 * std::abs(y);
        if (std::abs(wide - narrow) >
                kDifferenceTolerance * size / 10 + noise ||
            std::abs(up - down) > 1e-2 * std::abs(narrow) + 1e-3 + noise) {
          continue;
        }
        ++slopes.comparisons;
        if (std::abs(narrow - slope.GetDouble(i)) <=
            kDifferenceTolerance * size + noise) {
          continue;
        }
        slopes.what = "jvp against differences";
        slopes.text =
            absl::StrCat("result ", r, "[", i, "]: tangent ",
                         slope.GetDouble(i), ", differences ", wide, " and ",
                         narrow, ", one-sided ", up, " and ", down);
        return;
      }
    }
  }

  const Graph& function_;
  const Graph primal_;
  const Graph jvp_;
  const Graph vjp_;
  std::vector<bool> active_;
};

}  // namespace

Slopes CheckDerivatives(const Graph& function, const RuleSet& rules,
                        const std::vector<std::vector<Tensor>>& points) {
  Slopes slopes;
  std::vector<bool> active;
  bool any = false;
  for (const NamedValue& input : function.inputs()) {
    active.push_back(IsFloat(function.type(input.value).dtype));
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
