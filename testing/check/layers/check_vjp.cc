#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/reference/real.h"
#include "ops/status_macros.h"
#include "testing/check/layers/check_transforms.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/large_slopes.h"
#include "testing/check/layers/sized_sum.h"
#include "testing/check/reference/derivative.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/ties.h"
#include "testing/check/samples/over_reals.h"
#include "testing/check/samples/shrink.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/names.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

// Graphs are evaluated over the reals, so that what cancels does so; their
// inner products are compared to this part of the absolute values of all that
// was added, or to what rounding leaves of zero.
constexpr int kBits = 256;
constexpr double kTolerance = 1e-12;
constexpr double kZero = 1e-40;
// The tolerance of graphs that are evaluated in floats, in steps of the dtype.
constexpr double kRoundedTolerance = 4096;

struct Sum : SizedSum {
  // The error that `value` may have, as a part of `size`.
  double tolerance = kTolerance;
};

// Which inputs and outputs of a graph are floats.
std::vector<bool> Floats(const Graph& graph,
                         const std::vector<NamedValue>& values) {
  std::vector<bool> floats;
  for (const NamedValue& value : values) {
    floats.push_back(IsFloat(graph.type(value.value).dtype));
  }
  return floats;
}

bool HasKnownExtents(const Graph& graph) {
  for (const NamedValue& output : graph.outputs()) {
    for (const Dim& extent : graph.type(output.value).shape) {
      if (!extent.IsConstant()) return false;
    }
  }
  return true;
}

constexpr char kSlopeLaw[] = "jvp of jvp is the derivative of jvp";

// A law that does not hold, and the place where it breaks.
struct Broken {
  std::string law;
  Sum expected;
  Sum got;
};

// The transforms of one call, expanded once.
class Transformed {
 public:
  static absl::StatusOr<Transformed> Make(const Graph& call,
                                          const RuleSet& rules) {
    Transformed t;
    t.active_ = Floats(call, call.inputs());
    const size_t results = call.outputs().size();
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(call, t.active_, rules));
    CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, t.active_, rules));
    const Graph push = WithoutOutputsBefore(jvp.graph, results);
    const Graph pull = WithoutOutputsBefore(vjp.graph, results);
    for (const NamedValue& tangent : push.outputs()) {
      t.result_types_.push_back(push.type(tangent.value));
    }
    const auto keep = [&](const Graph& graph, size_t first,
                          Graph& kept) -> absl::Status {
      CLEAVE_ASSIGN_OR_RETURN(
          kept, Expand(WithoutOutputsBefore(graph, first), rules));
      return absl::OkStatus();
    };
    CLEAVE_RETURN_IF_ERROR(keep(push, 0, t.jvp_));
    CLEAVE_ASSIGN_OR_RETURN(t.real_jvp_, ExpandIfOtherOverReals(push, rules));
    CLEAVE_RETURN_IF_ERROR(keep(pull, 0, t.vjp_));
    // In the primals alone: directions and cotangents are constant.
    for (const auto& [once, jvp_of, vjp_of] :
         {std::tuple(&push, &t.jvp_jvp_, &t.vjp_jvp_),
          std::tuple(&pull, &t.jvp_vjp_, &t.vjp_vjp_)}) {
      std::vector<bool> active = t.active_;
      active.resize(once->inputs().size(), false);
      const size_t first = once->outputs().size();
      CLEAVE_ASSIGN_OR_RETURN(const JvpResult forward,
                              Jvp(*once, active, rules));
      CLEAVE_RETURN_IF_ERROR(keep(forward.graph, first, *jvp_of));
      CLEAVE_ASSIGN_OR_RETURN(const VjpResult reverse,
                              Vjp(*once, active, rules));
      CLEAVE_RETURN_IF_ERROR(keep(reverse.graph, first, *vjp_of));
    }
    return t;
  }

  const std::vector<bool>& active() const { return active_; }

  // The types of the float results.
  const std::vector<TensorType>& result_types() const { return result_types_; }

  // <Jv, w> = <v, J^T w>, and w^T f''[v, u] by the four nestings, which is
  // symmetric in v and u, and the derivative of w^T f'[v] along u: what a rule
  // holds constant is constant. Nullopt: all laws hold, or nothing is finite,
  // or the slopes have no slopes there.
  absl::StatusOr<std::optional<Broken>> Check(const std::vector<Tensor>& x,
                                              const std::vector<Tensor>& v,
                                              const std::vector<Tensor>& u,
                                              const std::vector<Tensor>& w,
                                              const Graph& body,
                                              int64_t& compared) const {
    CLEAVE_ASSIGN_OR_RETURN(const Sum pushed, Product(jvp_, {&x, &v}, w));
    CLEAVE_ASSIGN_OR_RETURN(const Sum pulled, Product(vjp_, {&x, &w}, v));
    std::optional<Broken> broken =
        Compare("<Jv, w> = <v, J^T w>", pushed, pulled, compared);
    if (broken) return broken;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                            Interpret(body, x));
    if (!AllFinite(results)) return std::nullopt;
    CLEAVE_ASSIGN_OR_RETURN(broken, CheckSecond(x, v, u, w, compared));
    if (!broken) return std::nullopt;
    if (broken->law == kSlopeLaw) {
      // Equals part beside the point, on both sides alike: the slope has a
      // slope there, and not that of the convention for equals.
      CLEAVE_ASSIGN_OR_RETURN(const bool tie, HasTie(body, x));
      CLEAVE_ASSIGN_OR_RETURN(const bool equal_keys, SortsEqualKeys(body, x));
      if (tie || equal_keys) return std::nullopt;
    }
    for (const auto& [first, second] : {std::pair(&v, &u), std::pair(&u, &v)}) {
      const absl::StatusOr<std::optional<Sum>> slope =
          SlopeOfSlope(x, *first, *second, w, true);
      // A graph that has no meaning over the reals is judged without it.
      if (absl::IsUnimplemented(slope.status())) return broken;
      if (IsBadSample(slope.status())) return std::nullopt;
      if (!slope.ok()) return slope.status();
      if (!*slope) return std::nullopt;
    }
    return broken;
  }

 private:
  absl::StatusOr<std::optional<Broken>> CheckSecond(
      const std::vector<Tensor>& x, const std::vector<Tensor>& v,
      const std::vector<Tensor>& u, const std::vector<Tensor>& w,
      int64_t& compared) const {
    CLEAVE_ASSIGN_OR_RETURN(const Sum want, Product(jvp_jvp_, {&x, &v, &u}, w));
    CLEAVE_ASSIGN_OR_RETURN(const Sum exchanged,
                            Product(jvp_jvp_, {&x, &u, &v}, w));
    std::optional<Broken> broken = Compare(
        "f''[v, u] = f''[u, v], by jvp of jvp", want, exchanged, compared);
    if (broken) return broken;
    CLEAVE_ASSIGN_OR_RETURN(broken,
                            CompareWithSlope(x, v, u, w, want, compared));
    if (broken) return broken;
    CLEAVE_ASSIGN_OR_RETURN(const Sum jvp_vjp,
                            Product(jvp_vjp_, {&x, &w, &u}, v));
    broken = Compare("jvp of vjp = jvp of jvp", want, jvp_vjp, compared);
    if (broken) return broken;
    CLEAVE_ASSIGN_OR_RETURN(const Sum vjp_jvp,
                            Product(vjp_jvp_, {&x, &v, &w}, u));
    broken = Compare("vjp of jvp = jvp of jvp", want, vjp_jvp, compared);
    if (broken) return broken;
    CLEAVE_ASSIGN_OR_RETURN(const Sum vjp_vjp,
                            Product(vjp_vjp_, {&x, &w, &v}, u));
    return Compare("vjp of vjp = jvp of jvp", want, vjp_vjp, compared);
  }

  // jvp of jvp, `second`, against differences of jvp; fine ones have the last
  // word.
  absl::StatusOr<std::optional<Broken>> CompareWithSlope(
      const std::vector<Tensor>& x, const std::vector<Tensor>& v,
      const std::vector<Tensor>& u, const std::vector<Tensor>& w,
      const Sum& second, int64_t& compared) const {
    int64_t ignored = 0;
    for (bool fine : {false, true}) {
      const absl::StatusOr<std::optional<Sum>> want =
          SlopeOfSlope(x, v, u, w, fine);
      // A graph that has no meaning over the reals has no slope there, and
      // neither has one that ends there: a quantile at q = 0.
      if (absl::IsUnimplemented(want.status()) || IsBadSample(want.status())) {
        return std::nullopt;
      }
      if (!want.ok()) return want.status();
      if (!*want) return std::nullopt;
      if (fine) return Compare(kSlopeLaw, **want, second, compared);
      if (!Compare(kSlopeLaw, **want, second, ignored)) break;
    }
    compared += ignored;
    return std::nullopt;
  }

  // The derivative of w^T f'[v] along u by differences; nullopt where there is
  // none. Unimplemented where the graph has no meaning over the reals.
  absl::StatusOr<std::optional<Sum>> SlopeOfSlope(const std::vector<Tensor>& x,
                                                  const std::vector<Tensor>& v,
                                                  const std::vector<Tensor>& u,
                                                  const std::vector<Tensor>& w,
                                                  bool fine) const {
    std::vector<Tensor> inputs = x;
    inputs.insert(inputs.end(), v.begin(), v.end());
    std::vector<std::optional<Tensor>> directions(inputs.size());
    size_t next = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      if (active_[k]) directions[k] = u[next++];
    }
    const RealFunction function = [&](const std::vector<RealTensor>& at,
                                      int bits) {
      return InterpretReal(real_jvp_ ? *real_jvp_ : jvp_, at, bits);
    };
    CLEAVE_ASSIGN_OR_RETURN(
        const Slopes slopes,
        fine ? FineSlopesAlong(function, inputs, directions, false)
             : SlopesAlong(function, inputs, directions, false));
    Sum sum;
    for (size_t r = 0; r < w.size(); ++r) {
      // Rounding may decide how many elements are found.
      if (slopes.values[r].size() != static_cast<size_t>(w[r].size())) {
        return std::nullopt;
      }
      for (int64_t i = 0; i < w[r].size(); ++i) {
        const std::optional<Real>& slope = slopes.values[r][i];
        if (!slope) return std::nullopt;
        sum.Add(slope->ToDouble() * w[r].GetDouble(i));
      }
    }
    return sum;
  }

  // The outputs times `factors`: over the reals, or as floats where those have
  // no meaning (bits, complex numbers).
  static absl::StatusOr<Sum> Product(
      const Graph& graph, const std::vector<const std::vector<Tensor>*>& parts,
      const std::vector<Tensor>& factors) {
    std::vector<Tensor> inputs;
    for (const std::vector<Tensor>* part : parts) {
      inputs.insert(inputs.end(), part->begin(), part->end());
    }
    std::vector<RealTensor> reals;
    for (const Tensor& input : inputs) {
      reals.push_back(RealTensor::FromTensor(input, kBits));
    }
    absl::StatusOr<std::vector<RealTensor>> results =
        InterpretReal(graph, reals, kBits);
    Sum sum;
    const bool rounded = absl::IsUnimplemented(results.status());
    if (rounded) {
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> floats,
                              Interpret(graph, inputs));
      results.emplace();
      for (const Tensor& result : floats) {
        results->push_back(RealTensor::FromTensor(result, kBits));
      }
    }
    if (!results.ok()) return results.status();
    for (size_t r = 0; rounded && r < factors.size(); ++r) {
      sum.tolerance = std::max(
          sum.tolerance, std::ldexp(kRoundedTolerance,
                                    1 - SignificandBits(factors[r].dtype())));
    }
    for (size_t r = 0; r < factors.size(); ++r) {
      for (int64_t i = 0; i < factors[r].size(); ++i) {
        sum.Add((*results)[r].reals[i].ToDouble() * factors[r].GetDouble(i));
      }
    }
    return sum;
  }

  static std::optional<Broken> Compare(const char* law, const Sum& want,
                                       const Sum& got, int64_t& compared) {
    if (!want.finite()) return std::nullopt;  // nothing to hold it against
    ++compared;
    const double allowed = std::max(want.tolerance, got.tolerance) *
                               std::max(want.size, got.size) +
                           kZero;
    if (got.finite() && std::abs(want.value - got.value) <= allowed) {
      return std::nullopt;
    }
    return Broken{law, want, got};
  }

  std::vector<bool> active_;
  std::vector<TensorType> result_types_;
  std::optional<Graph> real_jvp_;  // where it is another over the reals
  Graph jvp_, vjp_, jvp_jvp_, jvp_vjp_, vjp_jvp_, vjp_vjp_;
};

// The elements at which all results of an elementwise graph are finite.
std::vector<int64_t> FiniteElements(const Graph& body,
                                    const std::vector<Tensor>& x) {
  std::vector<int64_t> finite;
  const auto results = Interpret(body, x);
  if (!results.ok()) return finite;
  for (int64_t i = 0; i < x[0].size(); ++i) {
    if (std::all_of(results->begin(), results->end(), [&](const Tensor& y) {
          return !IsFloat(y.dtype()) || std::isfinite(y.GetDouble(i));
        })) {
      finite.push_back(i);
    }
  }
  return finite;
}

// `x`, inputs of an elementwise call, most of them where it has finite results,
// if `draw` has such: an inner product with one NaN says nothing of the others
// (acosh has no value at three of four numbers).
std::vector<Tensor> WithResults(
    const Graph& body, std::vector<Tensor> x,
    absl::FunctionRef<std::optional<std::vector<Tensor>>()> draw) {
  constexpr int kRounds = 6;
  std::vector<int64_t> finite = FiniteElements(body, x);
  const auto is_finite = [&](int64_t i) {
    return std::find(finite.begin(), finite.end(), i) != finite.end();
  };
  for (int round = 0;
       round < kRounds && finite.size() < static_cast<size_t>(x[0].size());
       ++round) {
    const std::optional<std::vector<Tensor>> further = draw();
    if (!further) break;
    for (const int64_t i : FiniteElements(body, *further)) {
      if (is_finite(i)) continue;
      CopyElements(*further, i, x, i);
      finite.push_back(i);
    }
  }
  if (finite.empty()) return x;
  for (int64_t i = 0; i < x[0].size(); ++i) {
    if (!is_finite(i)) CopyElements(x, finite.front(), x, i);
  }
  return x;
}

// False once the layer is settled.
bool CheckCall(const OpContext& context, const PreparedCall& prepared,
               const std::vector<Pattern>& patterns, DomainSampler& sampler,
               const RuleSet& rules, Verdict& verdict) {
  const SampledCall& call = prepared.call;
  const auto settle = [&](const absl::Status& status) {
    if (status.code() == absl::StatusCode::kUnimplemented) {
      Merge(verdict, Verdict::NotChecked(std::string(status.message())));
      return false;
    }
    Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                       "vjp of ", call.ToString(), ": ", status.message())));
    return true;
  };
  const auto transformed = Transformed::Make(prepared.graphs.call, rules);
  if (!transformed.ok()) {
    const Verdict refusal =
        NotTransformed(context, call, "vjp", transformed.status());
    Merge(verdict, refusal);
    return refusal.kind == VerdictKind::kInconclusive;
  }
  const auto direction = [&](const TensorType& type) {
    return sampler.values().Tangent(type);
  };
  const bool elementwise = IsElementwise(prepared.graphs.body);
  for (Pattern pattern : patterns) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      return false;
    }
    std::optional<std::vector<Tensor>> within =
        sampler.Tensors(prepared, pattern);
    if (within && elementwise) {
      within = WithResults(prepared.graphs.body, *std::move(within),
                           [&] { return sampler.Tensors(prepared, pattern); });
    }
    if (!within) continue;
    const std::vector<Tensor>& x = *within;
    std::vector<Tensor> v;
    std::vector<Tensor> u;
    for (size_t k = 0; k < x.size(); ++k) {
      if (!transformed->active()[k]) continue;
      v.push_back(direction(x[k].type()));
      u.push_back(direction(x[k].type()));
    }
    std::vector<Tensor> w;
    for (const TensorType& type : transformed->result_types()) {
      w.push_back(direction(type));
    }
    int64_t compared = 0;
    const auto broken = transformed->Check(
        x, v, u, w, prepared.graphs.BodyOverReals(), compared);
    if (IsBadSample(broken.status())) {
      if (const auto fault =
              NotEvaluated(context, prepared, "vjp", x, broken.status())) {
        Merge(verdict, *fault);
        return false;
      }
      continue;
    }
    if (!broken.ok()) {
      if (!settle(broken.status())) return false;
      continue;
    }
    // The slope by weights of 0 of the covariance of no rows: nothing depends
    // on that 0 / 0.
    if (*broken && !(*broken)->got.finite() &&
        prepared.domain.HoldsOfNothing()) {
      continue;
    }
    if (*broken) {
      Broken shown = **broken;
      const std::vector<Tensor> smallest = ShrinkValues(
          x,
          [&](absl::Span<const Tensor> trial) {
            if (context.Expired()) return false;
            if (!prepared.domain.Contains(trial).value_or(true)) return false;
            int64_t ignored = 0;
            const auto again =
                transformed->Check({trial.begin(), trial.end()}, v, u, w,
                                   prepared.graphs.BodyOverReals(), ignored);
            if (!again.ok() || !*again || (*again)->law != shown.law) {
              return false;
            }
            shown = **again;
            return true;
          },
          context.ShrinkTrials(60));
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
    Merge(verdict, Verdict::Agrees(compared));
  }
  return true;
}

}  // namespace

Verdict CheckVjp(const OpContext& context, const PreparedCalls& concrete,
                 const RuleSet& rules) {
  Verdict verdict;
  DomainSampler sampler(context.seed + 7);
  bool any = false;
  bool dynamic = false;
  bool screened = false;
  int number = 0;
  for (const PreparedCall& call : concrete.calls) {
    const std::vector<bool> inputs =
        Floats(call.graphs.call, call.graphs.call.inputs());
    const std::vector<bool> outputs =
        Floats(call.graphs.call, call.graphs.call.outputs());
    const bool differentiable =
        std::find(inputs.begin(), inputs.end(), true) != inputs.end() &&
        std::find(outputs.begin(), outputs.end(), true) != outputs.end();
    const int place = number++;
    if (!differentiable) continue;
    if (!HasKnownExtents(call.graphs.call)) {
      dynamic = true;
      continue;
    }
    any = true;
    if (IsScreened(context, call)) {
      screened = true;
      continue;
    }
    if (!CheckCall(context, call, DerivativePatterns(concrete, place), sampler,
                   rules, verdict)) {
      return verdict;
    }
  }
  if (!any) {
    return Verdict::NotChecked(
        dynamic ? "extents of its results are known only at run time"
                : "no float operand and result");
  }
  if (screened) {
    Merge(verdict, Verdict::NotChecked("at large sizes with jvp, in f64"));
  }
  return verdict;
}

}  // namespace cleave
