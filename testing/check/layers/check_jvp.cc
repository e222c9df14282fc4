#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "ops/budget.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_tangents.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/layers/check_transforms.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/jvp_laws.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/layers/large_slopes.h"
#include "testing/check/layers/tangent_faults.h"
#include "testing/check/reference/derivative.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

constexpr int64_t kTangentPoints = 1000;
constexpr int64_t kVariantTangentPoints = 200;
constexpr int64_t kNarrowTangentPoints = 60;  // of f16 and bf16
constexpr int64_t kTangentEdgePoints = 200;
// Tangents of structured ops are compared to this part of the largest, in f64.
constexpr double kStructuredTolerance = 1e-8;
// One-hot directions of one operand, in the first calls of an op and in more.
constexpr int64_t kMaxDirections = 5;
constexpr int64_t kFewDirections = 2;
constexpr int kManyDirectionsCalls = 8;
constexpr int kShrinkTrials = 120;
// Calls at which jvp is compared with its multiples and with vmap.
constexpr int kLawCalls = 6;
// Work of a large call (WorkOf) whose tangent is compared, and how many are.
constexpr double kLargeTangentWork = 6e4;
constexpr int kLargeTangents = 2;
// All numbers of points up to this one are taken.
constexpr int64_t kFewPoints = 5;

// The same in reverse mode, for one result of the operand's dtype: of an
// elementwise call the cotangent for ones is the slope. Without a graph where
// the call is no such one.
absl::StatusOr<std::optional<JvpGraphs>> DifferentiateInReverse(
    const OpContext& context, const Graph& call, int active,
    const RuleSet& rules) {
  const TensorType& operand = call.type(call.inputs()[active].value);
  if (call.outputs().size() != 1 ||
      call.type(call.outputs()[0].value) != operand) {
    return std::nullopt;
  }
  std::vector<bool> mask(call.inputs().size());
  mask[active] = true;
  JvpGraphs graphs;
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult result, Vjp(call, mask, rules));
  graphs.has_tangent = {true};
  CLEAVE_RETURN_IF_ERROR(
      ExpandDerivative(result.graph, context.rules(), graphs));
  return graphs;
}

// Points of which the first `normal` have operands that are all zeros or normal
// numbers: at infinities slopes are limits, and at denormals the inverse
// overflows.
struct SortedPoints {
  std::vector<Tensor> all;
  int64_t normal = 0;

  std::vector<Tensor> Normal() const {
    std::vector<int64_t> first(normal);
    std::iota(first.begin(), first.end(), int64_t{0});
    return SelectElements(all, first);
  }
  // Numbers of so many points, of all magnitudes.
  std::vector<int64_t> Few(int64_t count) const {
    std::vector<int64_t> few;
    for (int64_t i = 0; i < count; ++i) {
      few.push_back((2 * i + 1) * all[0].size() / (2 * count));
    }
    return few;
  }
};

// The slopes at some of the points, by their numbers. A result without a
// tangent has none.
Slopes SelectSlopes(const Slopes& slopes, const std::vector<int64_t>& points) {
  Slopes some;
  for (const std::vector<std::optional<Real>>& all : slopes.values) {
    std::vector<std::optional<Real>>& of = some.values.emplace_back();
    if (all.empty()) continue;
    for (const int64_t i : points) of.push_back(all[i]);
  }
  return some;
}

SortedPoints NormalFirst(const std::vector<Tensor>& points) {
  std::vector<int64_t> order(points[0].size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto is_normal = [&](int64_t i) {
    return std::all_of(points.begin(), points.end(), [i](const Tensor& point) {
      if (!IsFloat(point.dtype())) return true;
      const int64_t normal = int64_t{1} << (SignificandBits(point.dtype()) - 1);
      const double x = point.GetDouble(i);
      return x == 0 || (std::isfinite(x) &&
                        std::abs(Ordinal(x, point.dtype())) >= normal);
    });
  };
  const auto behind =
      std::stable_partition(order.begin(), order.end(), is_normal);
  return {SelectElements(points, order), behind - order.begin()};
}

// The points of both, one behind the other.
std::vector<Tensor> Concatenated(const std::vector<Tensor>& points,
                                 const std::vector<Tensor>& edges) {
  std::vector<Tensor> all;
  for (size_t k = 0; k < points.size(); ++k) {
    const int64_t n = points[k].size();
    Tensor both(points[k].dtype(), {n + edges[k].size()});
    std::memcpy(both.mutable_data(), points[k].data(), points[k].byte_size());
    std::memcpy(both.mutable_data() + points[k].byte_size(), edges[k].data(),
                edges[k].byte_size());
    all.push_back(std::move(both));
  }
  return all;
}

// The derivatives by each float operand at a time, in forward mode.
std::map<int, absl::StatusOr<JvpGraphs>> Derivatives(
    const OpContext& context, const PreparedCall& prepared,
    const std::vector<TensorType>& types, const RuleSet& rules) {
  std::map<int, absl::StatusOr<JvpGraphs>> derivatives;
  for (size_t k = 0; k < types.size(); ++k) {
    if (!IsFloat(types[k].dtype)) continue;
    std::vector<bool> mask(types.size());
    mask[k] = true;
    derivatives.emplace(
        k, Differentiate(context, prepared.graphs.call, mask, rules));
  }
  return derivatives;
}

// The constants that the body, its domain and its derivatives compare with:
// branches of a derivative meet where none of the body's do.
std::vector<double> GuardsOf(
    const PreparedCall& call,
    const std::map<int, absl::StatusOr<JvpGraphs>>& derivatives) {
  std::vector<double> guards = GuardConstants(call.graphs.body);
  const std::vector<double> ends = call.domain.Guards();
  guards.insert(guards.end(), ends.begin(), ends.end());
  for (const auto& [k, jvp] : derivatives) {
    if (!jvp.ok()) continue;
    const std::vector<double> more = GuardConstants(jvp->graph);
    guards.insert(guards.end(), more.begin(), more.end());
  }
  std::sort(guards.begin(), guards.end());
  guards.erase(std::unique(guards.begin(), guards.end()), guards.end());
  return guards;
}

// The slopes of an elementwise call, by one operand at a time, in forward and
// in reverse mode. False once the layer is settled.
bool CheckPoints(const OpContext& context, const PreparedCall& prepared,
                 ValueSampler& sampler, const RuleSet& rules, Verdict& verdict,
                 int64_t& ties) {
  const std::vector<TensorType> types = prepared.call.OperandTypes();
  const std::vector<std::string> names = prepared.call.OperandNames();
  const bool narrow = SignificandBits(MainDType(prepared.call)) < 24;
  const std::map<int, absl::StatusOr<JvpGraphs>> derivatives =
      Derivatives(context, prepared, types, rules);
  const std::vector<Tensor> sampled = Concatenated(
      sampler.Points(prepared.call,
                     prepared.default_attributes ? kTangentPoints
                     : narrow                    ? kNarrowTangentPoints
                                                 : kVariantTangentPoints,
                     false),
      NormalFirst(sampler.EdgePoints(prepared.call,
                                     GuardsOf(prepared, derivatives),
                                     kTangentEdgePoints))
          .Normal());
  const SortedPoints points =
      NormalFirst(prepared.domain.Within(sampled).value_or(sampled));
  if (points.all[0].size() == 0) return true;
  // In reverse mode a coefficient that overflows meets zeros.
  const std::vector<Tensor> normal_points = points.Normal();
  // False once the layer is settled.
  const auto check = [&](const JvpGraphs& graphs, const std::string& mode,
                         int k, const std::vector<Tensor>& points,
                         const Slopes& slopes) {
    const std::string where =
        absl::StrCat(mode, " of ", prepared.call.ToString());
    const TangentComparer comparer(prepared.graphs.Meaning(),
                                   prepared.graphs.BodyOverReals(), graphs, k);
    const auto comparison = comparer.ComparePoints(points, slopes);
    if (!comparison.ok()) {
      // The first of the points at which it is so, if it is one.
      for (int64_t i = 0; i < points[0].size(); ++i) {
        const std::vector<Tensor> point = SelectElements(points, {i});
        std::vector<Tensor> arguments = point;
        arguments.push_back(Ones(point[k]));
        const auto fault =
            FaultOf(context, prepared, mode, graphs.graph, point, arguments);
        if (!fault) continue;
        Merge(verdict, *fault);
        return false;
      }
      return AddStatus(where, comparison.status(), verdict);
    }
    if (mode == "jvp" && context.profiles != nullptr) {
      AddErrors(prepared, points, comparison->errors, context.profiles->slope);
    }
    if (comparison->failure) {
      TangentFailure shown = *comparison->failure;
      std::vector<Tensor> smallest = SelectElements(points, {shown.element});
      const auto fails = [&](absl::Span<const Tensor> trial) {
        if (context.Expired()) return false;
        const auto within =
            prepared.domain.Within({trial.begin(), trial.end()});
        if (within.ok() && (*within)[0].size() == 0) return false;
        const auto again = comparer.ComparePoints(trial);
        if (!again.ok() || !again->failure) return false;
        shown = *again->failure;
        return true;
      };
      if (fails(smallest)) {
        smallest =
            ShrinkValues(std::move(smallest), fails, context.ShrinkTrials());
      } else if (points[0].size() <= kFewPoints) {
        smallest = points;  // it is wrong for so many elements
      }
      shown.place = context.Place(
          graphs.graph, static_cast<int>(graphs.graph.outputs().size()) - 1);
      Counterexample example =
          ExplainTangent(context, prepared, names[k], smallest, shown);
      if (mode != "jvp") absl::StrAppend(&example.what, ", by ", mode);
      Merge(verdict, Verdict::Disagrees(std::move(example)));
      return false;
    }
    ties += comparison->ties;
    Verdict agrees = Verdict::Agrees(comparison->samples);
    agrees.worst_ulp = comparison->worst_ulp;
    agrees.worst_part = comparison->worst_part;
    if (comparison->worst_element >= 0) {
      agrees.worst_at = absl::StrCat(
          DescribeInputs(names,
                         SelectElements(points, {comparison->worst_element})),
          " in ", DTypeName(types[k].dtype));
    }
    Merge(verdict, agrees);
    return true;
  };
  for (const auto& [active, jvp] : derivatives) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      return false;
    }
    if (!jvp.ok()) {
      if (!AddRefusal(context, prepared, "jvp", jvp.status(), verdict)) {
        return false;
      }
      continue;
    }
    // One reference for both modes: it takes most of the time.
    const absl::StatusOr<Slopes> slopes =
        PointSlopes(prepared.graphs.Meaning(), points.all, active);
    if (!slopes.ok()) {
      if (!AddStatus(absl::StrCat("jvp of ", prepared.call.ToString()),
                     slopes.status(), verdict)) {
        return false;
      }
      continue;
    }
    if (!check(*jvp, "jvp", active, points.all, *slopes)) return false;
    // A slope may go by the number of elements.
    for (int64_t count = 1; count <= kFewPoints; ++count) {
      const std::vector<int64_t> few = points.Few(count);
      if (!check(*jvp, "jvp", active, SelectElements(points.all, few),
                 SelectSlopes(*slopes, few))) {
        return false;
      }
    }
    const auto vjp =
        DifferentiateInReverse(context, prepared.graphs.call, active, rules);
    if (!vjp.ok()) {
      if (!AddRefusal(context, prepared, "vjp", vjp.status(), verdict)) {
        return false;
      }
      continue;
    }
    if (*vjp && !check(**vjp, "vjp", active, normal_points, *slopes)) {
      return false;
    }
  }
  return true;
}

// Directions of operand `k`: a random one, and some that are 1 at one element.
std::vector<Tensor> Directions(const Tensor& input, int64_t one_hots,
                               ValueSampler& sampler) {
  std::vector<Tensor> directions = {sampler.Tangent(input.type())};
  for (int64_t i = 0; i < std::min(input.size(), one_hots); ++i) {
    Tensor one_hot(input.dtype(), input.shape());
    one_hot.SetDouble(
        input.size() <= one_hots
            ? i
            : static_cast<int64_t>(sampler.random()() % input.size()),
        1);
    directions.push_back(std::move(one_hot));
  }
  return directions;
}

bool CheckStructured(const OpContext& context, const PreparedCall& prepared,
                     Pattern pattern, int64_t one_hots, DomainSampler& sampler,
                     const RuleSet& rules, Verdict& verdict) {
  const auto within = sampler.Tensors(prepared, pattern);
  if (!within) return true;
  const std::vector<Tensor>& inputs = *within;
  const std::vector<std::string> names = prepared.call.OperandNames();
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsFloat(inputs[k].dtype())) continue;
    std::vector<bool> active(inputs.size());
    active[k] = true;
    const auto jvp =
        Differentiate(context, prepared.graphs.call, active, rules);
    if (!jvp.ok()) {
      if (!AddRefusal(context, prepared, "jvp", jvp.status(), verdict)) {
        return false;
      }
      continue;
    }
    const TangentComparer comparer(prepared.graphs.Meaning(),
                                   prepared.graphs.BodyOverReals(), *jvp,
                                   static_cast<int>(k));
    for (const Tensor& direction :
         Directions(inputs[k], one_hots, sampler.values())) {
      if (context.Expired()) {
        Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
        return false;
      }
      const auto compare = [&](absl::Span<const Tensor> trial) {
        return comparer.CompareAlong(trial, direction, kStructuredTolerance);
      };
      const auto comparison = compare(inputs);
      if (!comparison.ok()) {
        std::vector<Tensor> arguments = inputs;
        arguments.push_back(direction);
        const auto fault =
            FaultOf(context, prepared, "jvp", jvp->graph, inputs, arguments);
        if (fault) {
          Merge(verdict, *fault);
          return false;
        }
        if (IsBadSample(comparison.status())) continue;
      }
      if (!comparison.ok()) {
        if (!AddStatus(absl::StrCat("jvp of ", prepared.call.ToString()),
                       comparison.status(), verdict)) {
          return false;
        }
        continue;
      }
      if (comparison->failure) {
        TangentFailure shown = *comparison->failure;
        std::vector<Tensor> smallest = inputs;
        const auto fails = [&](absl::Span<const Tensor> trial) {
          if (context.Expired()) return false;
          if (!prepared.domain.Contains(trial).value_or(true)) return false;
          const auto again = compare(trial);
          if (!again.ok() || !again->failure) return false;
          shown = *again->failure;
          return true;
        };
        smallest = ShrinkValues(
            std::move(smallest), fails,
            context.ShrinkTrials(one_hots == 0 ? 0 : kShrinkTrials));
        shown.place = context.Place(
            jvp->graph, static_cast<int>(jvp->graph.outputs().size()) - 1);
        Counterexample example =
            ExplainTangent(context, prepared, names[k], smallest, shown);
        absl::StrAppend(&example.what, " along ", direction.ToString());
        Merge(verdict, Verdict::Disagrees(std::move(example)));
        return false;
      }
      Merge(verdict, Verdict::Agrees(comparison->samples));
    }
  }
  return true;
}

// Adds why a large call, whose op has a derivative at small sizes, has none.
// False if that refutes the op: where a limit is the reason, it does not.
bool AddFault(const std::optional<Verdict>& fault, Verdict& verdict) {
  if (!fault || fault->kind != VerdictKind::kDisagrees) return true;
  Merge(verdict, *fault);
  return false;
}

// The slopes of a large call, by floats where those over the reals are too
// dear. False once the layer is settled.
bool CheckLargeCall(const OpContext& context, const PreparedCall& large,
                    double most_work, DomainSampler& sampler,
                    const RuleSet& rules, Verdict& verdict) {
  const LargeSlopes slopes(context, large, most_work, rules);
  if (!slopes.status().ok()) {
    return AddFault(
        NotTransformed(context, slopes.call().call, "jvp", slopes.status()),
        verdict);
  }
  std::vector<Tensor> inputs;
  std::optional<SlopeSuspicion> suspicion;
  for (int screens = 0; screens < kScreens; ++screens) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      return false;
    }
    std::optional<ScreenedInputs> screened = slopes.Screen(sampler);
    if (!screened) return true;
    inputs = std::move(screened->inputs);
    if (const absl::Status& status = screened->screen.status(); !status.ok()) {
      return EndsCall(status) || AddFault(NotEvaluated(context, slopes.call(),
                                                       "jvp", inputs, status),
                                          verdict);
    }
    suspicion = screened->screen->suspicion;
    if (!suspicion) {
      Merge(verdict, Verdict::Agrees(screened->screen->compared));
      return true;
    }
    // Derivatives over the reals have the last word.
    if (!suspicion->in_reverse && WorkOf(slopes.call().graphs) <= kJudgedWork) {
      return CheckStructured(context, slopes.call(), Pattern::kNormal, 0,
                             sampler, rules, verdict);
    }
  }
  Counterexample example;
  example.call = slopes.call().call.ToString();
  example.inputs = DescribeInputs(slopes.call().call.OperandNames(), inputs);
  example.what = absl::StrCat(suspicion->what, ", by differences in f64");
  example.expected = absl::StrFormat("%.17g", suspicion->expected);
  example.got = absl::StrFormat("%.17g", suspicion->got);
  example.place = context.Place();
  example.replay = context.Replay();
  Merge(verdict, Verdict::Disagrees(std::move(example)));
  return false;
}

// The same of all large calls, by draws of their own.
bool CheckLargeSlopes(const OpContext& context, const PreparedCalls& prepared,
                      const RuleSet& rules, Verdict& verdict) {
  DomainSampler sampler(context.seed + 25);
  for (const PreparedCall& call : prepared.large) {
    // Slopes at small extents are judged over the reals.
    if (LargestExtent(call.call) <= kAllExtents ||
        WorkOf(call.graphs) > kScreenedWork) {
      continue;
    }
    if (!CheckLargeCall(context, call, kSlopesWork, sampler, rules, verdict)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Verdict CheckJvp(const OpContext& context, const PreparedCalls& prepared,
                 const PreparedCalls& concrete, const RuleSet& rules) {
  Verdict verdict;
  DomainSampler sampler(context.seed + 6);
  bool differentiable = false;
  for (const PreparedCall& call : prepared.calls) {
    differentiable |= IsFloat(MainDType(call.call));
  }
  if (prepared.calls.empty()) {
    return Verdict::Inconclusive("no sampled call is accepted");
  }
  if (!differentiable) return Verdict::NotChecked("no float operand");
  if (prepared.elementwise) {
    int64_t ties = 0;
    for (const PreparedCall& call : prepared.calls) {
      if (!CheckPoints(context, call, sampler.values(), rules, verdict, ties)) {
        return verdict;
      }
    }
    if (ties > 0) {
      verdict.notes.push_back(absl::StrCat(
          ties, " points at ties, where the derivative is a convention"));
    }
  } else {
    int number = 0;
    // Calls in f64, which stand for those in other dtypes.
    std::set<std::string> screened;
    for (const PreparedCall& call : concrete.calls) {
      if (IsScreened(context, call)) {
        if (!screened.insert(InF64(call.call).ToString()).second) continue;
        const int64_t before = verdict.samples;
        if (!CheckLargeCall(context, call, kDearSlopesWork, sampler, rules,
                            verdict)) {
          return verdict;
        }
        if (verdict.samples == before && IsFloat(MainDType(call.call))) {
          Merge(verdict, TooDear());
        }
        continue;
      }
      const int64_t one_hots =
          number < kManyDirectionsCalls ? kMaxDirections : kFewDirections;
      for (Pattern pattern : DerivativePatterns(concrete, number++)) {
        if (!CheckStructured(context, call, pattern, one_hots, sampler, rules,
                             verdict)) {
          return verdict;
        }
      }
    }
    // The most dear ones that are affordable, along one direction: all of them
    // where the rule has slopes of its own, which may go by an extent.
    const auto has_lines = [&](StatementKind kind) {
      return !context.rules().Lines(context.item->name, kind).empty();
    };
    const bool own = has_lines(StatementKind::kJvp);
    int large = 0;
    for (auto call = prepared.large.rbegin(); call != prepared.large.rend();
         ++call) {
      if (WorkOf(call->graphs) > kLargeTangentWork) continue;
      if (++large > kLargeTangents && !own) break;
      if (!CheckStructured(context, *call, Pattern::kNormal, 0, sampler, rules,
                           verdict)) {
        return verdict;
      }
    }
    if ((own || has_lines(StatementKind::kVjp)) &&
        !CheckLargeSlopes(context, prepared, rules, verdict)) {
      return verdict;
    }
  }
  int laws = 0;
  for (const PreparedCall& call : concrete.calls) {
    // In few digits what cancels in a tangent is not linear.
    if (!IsFloat(MainDType(call.call)) ||
        SignificandBits(MainDType(call.call)) < 24) {
      continue;
    }
    if (++laws > kLawCalls) break;
    if (!CheckJvpLaws(context, call, sampler, rules, verdict)) return verdict;
  }
  return verdict;
}

}  // namespace cleave
