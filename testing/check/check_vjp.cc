#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/check_transforms.h"
#include "testing/check/shrink.h"
#include "testing/check/value_sampler.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"

namespace cleave {
namespace {

// Inner products in f64 are compared to this part of the sum of the absolute
// values of all that was added.
constexpr double kTolerance = 1e-9;
constexpr double kSecondTolerance = 1e-7;

// A sum of products, and how large its terms were.
struct Sum {
  double value = 0;
  double size = 0;
  bool finite() const { return std::isfinite(value) && std::isfinite(size); }
};

Sum InnerProduct(absl::Span<const Tensor> a, absl::Span<const Tensor> b) {
  Sum sum;
  for (size_t r = 0; r < a.size(); ++r) {
    for (int64_t i = 0; i < a[r].size(); ++i) {
      const double product = a[r].GetDouble(i) * b[r].GetDouble(i);
      sum.value += product;
      sum.size += std::abs(product);
    }
  }
  return sum;
}

// Which inputs and outputs of a graph are floats.
std::vector<bool> Floats(const Graph& graph,
                         const std::vector<NamedValue>& values) {
  std::vector<bool> floats;
  for (const NamedValue& value : values) {
    floats.push_back(IsFloat(graph.type(value.value).dtype));
  }
  return floats;
}

// What one law found.
struct Broken {
  std::string law;
  Sum expected;
  Sum got;
};

// The transforms of one call, expanded once.
class Transformed {
 public:
  static absl::StatusOr<Transformed> Make(const Graph& call,
                                          SyntheticRules& rules) {
    Transformed t;
    t.active_ = Floats(call, call.inputs());
    t.results_ = call.outputs().size();
    t.float_results_ = Floats(call, call.outputs());
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(call, t.active_, rules));
    CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, t.active_, rules));
    // In the primals alone: directions and cotangents are constant.
    const auto primals = [&](const Graph& graph) {
      std::vector<bool> active = t.active_;
      active.resize(graph.inputs().size(), false);
      return active;
    };
    const auto expand = [&](const Graph& graph) {
      return Expand(graph, rules.rules());
    };
    CLEAVE_ASSIGN_OR_RETURN(t.jvp_, expand(jvp.graph));
    CLEAVE_ASSIGN_OR_RETURN(t.vjp_, expand(vjp.graph));
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp_jvp,
                            Jvp(jvp.graph, primals(jvp.graph), rules));
    CLEAVE_ASSIGN_OR_RETURN(t.jvp_jvp_, expand(jvp_jvp.graph));
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp_vjp,
                            Jvp(vjp.graph, primals(vjp.graph), rules));
    CLEAVE_ASSIGN_OR_RETURN(t.jvp_vjp_, expand(jvp_vjp.graph));
    CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp_jvp,
                            Vjp(jvp.graph, primals(jvp.graph), rules));
    CLEAVE_ASSIGN_OR_RETURN(t.vjp_jvp_, expand(vjp_jvp.graph));
    CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp_vjp,
                            Vjp(vjp.graph, primals(vjp.graph), rules));
    CLEAVE_ASSIGN_OR_RETURN(t.vjp_vjp_, expand(vjp_vjp.graph));
    return t;
  }

  const std::vector<bool>& active() const { return active_; }

  // Cotangents of the float results, as `draw` makes them.
  template <typename Draw>
  absl::StatusOr<std::vector<Tensor>> DrawCotangents(
      const std::vector<Tensor>& x, const std::vector<Tensor>& v,
      const Draw& draw) const {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pushed,
                            Interpret(jvp_, Joined({x, v})));
    std::vector<Tensor> cotangents;
    for (size_t r = 0; r < results_; ++r) {
      if (float_results_[r]) cotangents.push_back(draw(pushed[r].type()));
    }
    return cotangents;
  }

  // <Jv, w> = <v, J^T w>, and w^T f''[v, u] by the four nestings, which is
  // symmetric in v and u. Nullopt: all laws hold, or nothing is finite.
  absl::StatusOr<std::optional<Broken>> Check(const std::vector<Tensor>& x,
                                              const std::vector<Tensor>& v,
                                              const std::vector<Tensor>& u,
                                              const std::vector<Tensor>& w,
                                              int64_t& compared) const {
    std::optional<Broken> broken;
    const auto tail = [](const std::vector<Tensor>& all, size_t count) {
      return std::vector<Tensor>(all.end() - count, all.end());
    };
    const auto differ = [&](const char* law, const Sum& want, const Sum& got,
                            double tolerance) {
      if (!want.finite()) return false;  // nothing to hold it against
      ++compared;
      const double size = std::max(want.size, got.size);
      if (got.finite() &&
          std::abs(want.value - got.value) <= tolerance * size) {
        return false;
      }
      broken = Broken{law, want, got};
      return true;
    };
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pushed,
                            Interpret(jvp_, Joined({x, v})));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pulled,
                            Interpret(vjp_, Joined({x, w})));
    if (differ("<Jv, w> = <v, J^T w>", InnerProduct(tail(pushed, w.size()), w),
               InnerProduct(v, tail(pulled, v.size())), kTolerance)) {
      return broken;
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> second,
                            Interpret(jvp_jvp_, Joined({x, v, u})));
    const Sum want = InnerProduct(tail(second, w.size()), w);
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> exchanged,
                            Interpret(jvp_jvp_, Joined({x, u, v})));
    if (differ("f''[v, u] = f''[u, v], by jvp of jvp", want,
               InnerProduct(tail(exchanged, w.size()), w), kSecondTolerance)) {
      return broken;
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> along,
                            Interpret(jvp_vjp_, Joined({x, w, u})));
    if (differ("jvp of vjp = jvp of jvp", want,
               InnerProduct(v, tail(along, v.size())), kSecondTolerance)) {
      return broken;
    }
    std::vector<Tensor> zeros;
    for (const Tensor& cotangent : w) {
      zeros.push_back(Tensor(cotangent.dtype(), cotangent.shape()));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> of_jvp,
                            Interpret(vjp_jvp_, Joined({x, v, zeros, w})));
    if (differ("vjp of jvp = jvp of jvp", want,
               InnerProduct(u, tail(of_jvp, u.size())), kSecondTolerance)) {
      return broken;
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> of_vjp,
                            Interpret(vjp_vjp_, Joined({x, w, zeros, v})));
    differ("vjp of vjp = jvp of jvp", want,
           InnerProduct(u, tail(of_vjp, u.size())), kSecondTolerance);
    return broken;
  }

 private:
  static std::vector<Tensor> Joined(
      const std::vector<std::vector<Tensor>>& parts) {
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& part : parts) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  std::vector<bool> active_;
  std::vector<bool> float_results_;
  size_t results_ = 0;
  Graph jvp_, vjp_, jvp_jvp_, jvp_vjp_, vjp_jvp_, vjp_vjp_;
};

// False once the layer is settled.
bool CheckCall(const OpContext& context, const PreparedCall& prepared,
               ValueSampler& sampler, SyntheticRules& rules, Verdict& verdict) {
  const SampledCall& call = prepared.call;
  const auto settle = [&](const absl::Status& status) {
    if (IsBadSample(status)) return true;
    if (status.code() == absl::StatusCode::kUnimplemented) {
      Merge(verdict, Verdict::NotChecked(std::string(status.message())));
      return false;
    }
    Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                       "vjp of ", call.ToString(), ": ", status.message())));
    return true;
  };
  const auto transformed = Transformed::Make(prepared.graphs.call, rules);
  if (!transformed.ok()) return settle(transformed.status());
  const auto direction = [&](const TensorType& type) {
    return sampler.Tangent(type);
  };
  for (Pattern pattern : {Pattern::kNormal, Pattern::kUnit}) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive("its time was up"));
      return false;
    }
    const std::vector<Tensor> x = sampler.Tensors(call, pattern);
    std::vector<Tensor> v;
    std::vector<Tensor> u;
    for (size_t k = 0; k < x.size(); ++k) {
      if (!transformed->active()[k]) continue;
      v.push_back(direction(x[k].type()));
      u.push_back(direction(x[k].type()));
    }
    const auto w = transformed->DrawCotangents(x, v, direction);
    if (!w.ok()) {
      if (!settle(w.status())) return false;
      continue;
    }
    int64_t compared = 0;
    const auto broken = transformed->Check(x, v, u, *w, compared);
    if (!broken.ok()) {
      if (!settle(broken.status())) return false;
      continue;
    }
    if (*broken) {
      Broken shown = **broken;
      const std::vector<Tensor> smallest = ShrinkValues(
          x,
          [&](absl::Span<const Tensor> trial) {
            if (context.Expired()) return false;
            int64_t ignored = 0;
            const auto again = transformed->Check({trial.begin(), trial.end()},
                                                  v, u, *w, ignored);
            if (!again.ok() || !*again || (*again)->law != shown.law) {
              return false;
            }
            shown = **again;
            return true;
          },
          60);
      Counterexample example;
      example.call = call.ToString();
      example.inputs = DescribeInputs(call.OperandNames(), smallest);
      example.what = shown.law;
      example.expected = absl::StrFormat("%.17g", shown.expected.value);
      example.got = absl::StrFormat("%.17g", shown.got.value);
      example.place = context.Place();
      example.replay = context.Replay();
      Merge(verdict, Verdict::Disagrees(std::move(example)));
      return false;
    }
    Verdict agrees;
    agrees.kind = VerdictKind::kAgrees;
    agrees.samples = compared;
    Merge(verdict, agrees);
  }
  return true;
}

}  // namespace

Verdict CheckVjp(const OpContext& context, const PreparedCalls& concrete,
                 SyntheticRules& rules) {
  Verdict verdict;
  ValueSampler sampler(context.seed + 7);
  bool any = false;
  for (const PreparedCall& call : concrete.calls) {
    const std::vector<bool> inputs =
        Floats(call.graphs.call, call.graphs.call.inputs());
    const std::vector<bool> outputs =
        Floats(call.graphs.call, call.graphs.call.outputs());
    const bool differentiable =
        std::find(inputs.begin(), inputs.end(), true) != inputs.end() &&
        std::find(outputs.begin(), outputs.end(), true) != outputs.end();
    // Other float dtypes have the same rules, and more rounding.
    if (!differentiable || MainDType(call.call) != DType::kF64) continue;
    any = true;
    if (!CheckCall(context, call, sampler, rules, verdict)) return verdict;
  }
  if (!any) return Verdict::NotChecked("no f64 operand and float result");
  return verdict;
}

}  // namespace cleave
