#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_tangents.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/layers/check_transforms.h"
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

struct JvpGraphs {
  Graph graph;  // expanded
  std::vector<bool> has_tangent;
};

absl::StatusOr<JvpGraphs> Differentiate(const OpContext& context,
                                        const Graph& call,
                                        const std::vector<bool>& active,
                                        const RuleSet& rules) {
  JvpGraphs graphs;
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult result, Jvp(call, active, rules));
  graphs.has_tangent = result.has_tangent;
  CLEAVE_ASSIGN_OR_RETURN(graphs.graph, Expand(result.graph, context.rules()));
  return graphs;
}

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
  CLEAVE_ASSIGN_OR_RETURN(graphs.graph, Expand(result.graph, context.rules()));
  return graphs;
}

// The graph that the reference differentiates.
const Graph& Primal(const CallGraphs& graphs) {
  return graphs.spec ? *graphs.spec : graphs.body;
}

// Adds a status that is no verdict against the op. False if it settles the
// layer: there is no derivative, or no reference.
bool AddStatus(const std::string& where, const absl::Status& status,
               Verdict& verdict) {
  const std::string message(status.message());
  if (IsBadSample(status)) return true;
  if (status.code() == absl::StatusCode::kUnimplemented) {
    Merge(verdict, Verdict::NotChecked(message));
    return false;
  }
  Merge(verdict, Verdict::Inconclusive(absl::StrCat(where, ": ", message)));
  return true;
}

// Adds why a call has no derivative. False if that settles the layer.
bool AddRefusal(const OpContext& context, const PreparedCall& prepared,
                const std::string& what, const absl::Status& status,
                Verdict& verdict) {
  const Verdict refusal = NotTransformed(context, prepared.call, what, status);
  Merge(verdict, refusal);
  return refusal.kind == VerdictKind::kInconclusive;
}

Counterexample Explain(const OpContext& context, const PreparedCall& prepared,
                       const std::string& operand,
                       absl::Span<const Tensor> inputs,
                       const TangentFailure& failure) {
  Counterexample example;
  example.call = prepared.call.ToString();
  example.inputs = DescribeInputs(prepared.call.OperandNames(), inputs);
  example.what = absl::StrCat(
      "derivative of ", prepared.graphs.body.outputs()[failure.result].name,
      "[", failure.element, "] by ", operand);
  example.expected = failure.expected;
  example.got = failure.got;
  example.ulp = failure.ulp;
  example.bound = failure.bound;
  example.place = failure.place;
  example.replay = context.Replay();
  return example;
}

// The points whose operands are all zeros or normal numbers: at infinities
// slopes are limits, and at denormals the inverse overflows.
std::vector<Tensor> NormalPoints(const std::vector<Tensor>& points) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < points[0].size(); ++i) {
    if (std::all_of(points.begin(), points.end(), [&](const Tensor& point) {
          if (!IsFloat(point.dtype())) return true;
          const int64_t normal = int64_t{1}
                                 << (SignificandBits(point.dtype()) - 1);
          const double x = point.GetDouble(i);
          return x == 0 || (std::isfinite(x) &&
                            std::abs(Ordinal(x, point.dtype())) >= normal);
        })) {
      kept.push_back(i);
    }
  }
  return SelectElements(points, kept);
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

// The slopes of an elementwise call, by one operand at a time, in forward and
// in reverse mode. False once the layer is settled.
bool CheckPoints(const OpContext& context, const PreparedCall& prepared,
                 ValueSampler& sampler, const RuleSet& rules, Verdict& verdict,
                 int64_t& ties) {
  const std::vector<TensorType> types = prepared.call.OperandTypes();
  const std::vector<std::string> names = prepared.call.OperandNames();
  const bool narrow = SignificandBits(MainDType(prepared.call)) < 24;
  const std::vector<Tensor> sampled =
      Concatenated(sampler.Points(prepared.call,
                                  prepared.default_attributes ? kTangentPoints
                                  : narrow ? kNarrowTangentPoints
                                           : kVariantTangentPoints,
                                  false),
                   NormalPoints(sampler.EdgePoints(
                       prepared.call, GuardConstants(prepared.graphs.body),
                       kTangentEdgePoints)));
  const std::vector<Tensor> all_points =
      prepared.domain.Within(sampled).value_or(sampled);
  if (all_points[0].size() == 0) return true;
  // In reverse mode a coefficient that overflows meets zeros.
  const std::vector<Tensor> normal_points = NormalPoints(all_points);
  // False once the layer is settled.
  const auto check = [&](const JvpGraphs& graphs, const std::string& mode,
                         int k, const std::vector<Tensor>& points) {
    const std::string where =
        absl::StrCat(mode, " of ", prepared.call.ToString());
    const TangentComparer comparer(Primal(prepared.graphs),
                                   prepared.graphs.body, graphs.graph,
                                   graphs.has_tangent, k);
    const auto compare = [&](absl::Span<const Tensor> inputs) {
      return comparer.ComparePoints(inputs);
    };
    const auto comparison = compare(points);
    if (!comparison.ok()) return AddStatus(where, comparison.status(), verdict);
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
        const auto again = compare(trial);
        if (!again.ok() || !again->failure) return false;
        shown = *again->failure;
        return true;
      };
      if (fails(smallest)) {
        smallest =
            ShrinkValues(std::move(smallest), fails, context.ShrinkTrials());
      }
      shown.place = context.Place(
          graphs.graph, static_cast<int>(graphs.graph.outputs().size()) - 1);
      Counterexample example =
          Explain(context, prepared, names[k], smallest, shown);
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
  for (size_t k = 0; k < types.size(); ++k) {
    if (!IsFloat(types[k].dtype)) continue;
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      return false;
    }
    const int active = static_cast<int>(k);
    std::vector<bool> mask(types.size());
    mask[k] = true;
    const auto jvp = Differentiate(context, prepared.graphs.call, mask, rules);
    if (!jvp.ok()) {
      if (!AddRefusal(context, prepared, "jvp", jvp.status(), verdict)) {
        return false;
      }
      continue;
    }
    if (!check(*jvp, "jvp", active, all_points)) return false;
    const auto vjp =
        DifferentiateInReverse(context, prepared.graphs.call, active, rules);
    if (!vjp.ok()) {
      if (!AddRefusal(context, prepared, "vjp", vjp.status(), verdict)) {
        return false;
      }
      continue;
    }
    if (*vjp && !check(**vjp, "vjp", active, normal_points)) return false;
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
                     Pattern pattern, int64_t one_hots, ValueSampler& sampler,
                     const RuleSet& rules, Verdict& verdict) {
  const auto within = TensorsWithin(prepared, pattern, sampler);
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
    const TangentComparer comparer(Primal(prepared.graphs),
                                   prepared.graphs.body, jvp->graph,
                                   jvp->has_tangent, static_cast<int>(k));
    for (const Tensor& direction : Directions(inputs[k], one_hots, sampler)) {
      if (context.Expired()) {
        Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
        return false;
      }
      const auto compare = [&](absl::Span<const Tensor> trial) {
        return comparer.CompareAlong(trial, direction, kStructuredTolerance);
      };
      const auto comparison = compare(inputs);
      if (IsBadSample(comparison.status())) {
        std::vector<Tensor> arguments = inputs;
        arguments.push_back(direction);
        const auto tangents = Interpret(jvp->graph, arguments);
        const auto fault = tangents.ok()
                               ? std::nullopt
                               : NotEvaluated(context, prepared, "jvp", inputs,
                                              tangents.status());
        if (fault) {
          Merge(verdict, *fault);
          return false;
        }
        continue;
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
            Explain(context, prepared, names[k], smallest, shown);
        absl::StrAppend(&example.what, " along ", direction.ToString());
        Merge(verdict, Verdict::Disagrees(std::move(example)));
        return false;
      }
      Merge(verdict, Verdict::Agrees(comparison->samples));
    }
  }
  return true;
}

// The largest difference of two lists of results as a part of the largest
// finite element.
double RelativeDifference(absl::Span<const Tensor> a,
                          absl::Span<const Tensor> b) {
  double largest = 0;
  double difference = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    if (!IsFloat(a[r].dtype())) continue;
    for (int64_t i = 0; i < a[r].size(); ++i) {
      const double x = a[r].GetDouble(i);
      const double y = b[r].GetDouble(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      if (!std::isfinite(x) || !std::isfinite(y)) return HUGE_VAL;
      largest = std::max({largest, std::abs(x), std::abs(y)});
      difference = std::max(difference, std::abs(x - y));
    }
  }
  return difference == 0 ? 0 : difference / largest;
}

// The tangents of the results where operand `alone` is the only one that has a
// tangent: those of `graph`, where all `active` ones have, for zeros instead of
// the others. Returns their difference as a part of the largest tangent.
absl::StatusOr<double> DifferenceAlone(
    const OpContext& context, const PreparedCall& prepared, const Graph& graph,
    const std::vector<bool>& active, size_t alone,
    const std::vector<Tensor>& inputs, const RuleSet& rules) {
  std::vector<bool> one(active.size());
  one[alone] = true;
  CLEAVE_ASSIGN_OR_RETURN(
      const JvpGraphs single,
      Differentiate(context, prepared.graphs.call, one, rules));
  std::vector<Tensor> zeros = inputs;
  std::vector<Tensor> few(inputs.begin(),
                          inputs.begin() + static_cast<int>(active.size()));
  size_t next = active.size();
  for (size_t k = 0; k < active.size(); ++k) {
    if (!active[k]) continue;
    if (k == alone) {
      few.push_back(inputs[next]);
    } else {
      zeros[next] = Tensor(inputs[next].dtype(), inputs[next].shape());
    }
    ++next;
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> all,
                          Interpret(graph, zeros));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> own,
                          Interpret(single.graph, few));
  if (all.size() != own.size()) return HUGE_VAL;
  // A slope that is not finite hides the others, times a zero.
  if (!AllFinite(all)) return 0.0;
  return RelativeDifference(all, own);
}

// jvp(x, 2 t) = 2 jvp(x, t), jvp(x, 0) = 0, jvp along one operand alone is that
// along zeros of the others, and jvp of vmap = vmap of jvp.
bool CheckLaws(const OpContext& context, const PreparedCall& prepared,
               ValueSampler& sampler, const RuleSet& rules, Verdict& verdict) {
  const SampledCall& call = prepared.call;
  const std::vector<TensorType> types = call.OperandTypes();
  std::vector<bool> active;
  for (const TensorType& type : types) active.push_back(IsFloat(type.dtype));
  if (std::find(active.begin(), active.end(), true) == active.end()) {
    return true;
  }
  const auto disagree = [&](const std::string& what,
                            absl::Span<const Tensor> inputs, double part) {
    Counterexample example;
    example.call = call.ToString();
    example.inputs = DescribeInputs(call.OperandNames(), inputs);
    example.what = what;
    example.got = absl::StrFormat("a difference of %.3g of the largest", part);
    example.expected = "equality";
    example.place = context.Place();
    example.replay = context.Replay();
    Merge(verdict, Verdict::Disagrees(std::move(example)));
    return false;
  };
  const auto run = [&]() -> absl::StatusOr<bool> {
    constexpr int64_t kBatch = 2;
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp,
                            Jvp(prepared.graphs.call, active, rules));
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph,
                            Expand(jvp.graph, context.rules()));
    std::vector<std::vector<Tensor>> examples;
    std::vector<std::vector<Tensor>> outputs;
    for (int64_t b = 0; b < kBatch; ++b) {
      std::vector<Tensor> inputs = sampler.Tensors(call, Pattern::kNormal);
      for (size_t k = 0; k < types.size(); ++k) {
        if (active[k]) inputs.push_back(sampler.Tangent(types[k]));
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                              Interpret(graph, inputs));
      examples.push_back(std::move(inputs));
      outputs.push_back(std::move(results));
    }
    // Linear: powers of two are exact but for denormals.
    const size_t primals = prepared.graphs.call.outputs().size();
    std::vector<Tensor> doubled = examples[0];
    for (size_t k = types.size(); k < doubled.size(); ++k) {
      Tensor twice(doubled[k].dtype(), doubled[k].shape());
      for (int64_t i = 0; i < twice.size(); ++i) {
        twice.SetDouble(i, 2 * doubled[k].GetDouble(i));
      }
      doubled[k] = std::move(twice);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> twice,
                            Interpret(graph, doubled));
    std::vector<Tensor> wanted;
    std::vector<Tensor> got;
    for (size_t r = primals; r < twice.size(); ++r) {
      Tensor want(twice[r].dtype(), twice[r].shape());
      for (int64_t i = 0; i < want.size(); ++i) {
        want.SetDouble(i, 2 * outputs[0][r].GetDouble(i));
      }
      wanted.push_back(std::move(want));
      got.push_back(twice[r]);
    }
    const double epsilon = std::ldexp(64, -SignificandBits(MainDType(call)));
    double part = RelativeDifference(wanted, got);
    if (part > epsilon) return disagree("jvp is not linear", doubled, part);
    for (size_t k = 0; k < types.size() && types.size() > 1; ++k) {
      if (!active[k]) continue;
      const absl::StatusOr<double> alone = DifferenceAlone(
          context, prepared, graph, active, k, examples[0], rules);
      const std::string what = absl::StrCat(
          "jvp along `", call.OperandNames()[k], "` alone is not that of all");
      if (alone.status().code() == absl::StatusCode::kInvalidArgument) {
        return disagree(absl::StrCat(what, ": ", alone.status().message()),
                        examples[0], HUGE_VAL);
      }
      CLEAVE_RETURN_IF_ERROR(alone.status());
      if (*alone > epsilon) return disagree(what, examples[0], *alone);
    }
    // jvp of vmap against the stacked jvps, which vmap of jvp is.
    const std::vector<int> in_axes(types.size(), 0);
    CLEAVE_ASSIGN_OR_RETURN(const Graph batched,
                            Vmap(prepared.graphs.call, in_axes, Dim(kBatch),
                                 std::vector<int>(primals, 0), rules));
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult of_batched,
                            Jvp(batched, active, rules));
    CLEAVE_ASSIGN_OR_RETURN(const Graph left,
                            Expand(of_batched.graph, context.rules()));
    CLEAVE_ASSIGN_OR_RETURN(
        const Graph vmap_of_jvp,
        Vmap(jvp.graph, std::vector<int>(examples[0].size(), 0), Dim(kBatch),
             std::vector<int>(jvp.graph.outputs().size(), 0), rules));
    CLEAVE_ASSIGN_OR_RETURN(const Graph right,
                            Expand(vmap_of_jvp, context.rules()));
    std::vector<Tensor> stacked;
    for (size_t k = 0; k < examples[0].size(); ++k) {
      stacked.push_back(
          Stack(examples[0][k], {examples[0][k], examples[1][k]}));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> a,
                            Interpret(left, stacked));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> b,
                            Interpret(right, stacked));
    part = RelativeDifference(a, b);
    if (part > epsilon) {
      return disagree("jvp of vmap is not vmap of jvp", stacked, part);
    }
    return true;
  };
  const absl::StatusOr<bool> holds = run();
  if (!holds.ok()) {
    return AddStatus(absl::StrCat("jvp of ", call.ToString()), holds.status(),
                     verdict);
  }
  if (!*holds) return false;
  Merge(verdict, Verdict::Agrees(2));
  return true;
}

}  // namespace

Verdict CheckJvp(const OpContext& context, const PreparedCalls& prepared,
                 const PreparedCalls& concrete, const RuleSet& rules) {
  Verdict verdict;
  ValueSampler sampler(context.seed + 6);
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
      if (!CheckPoints(context, call, sampler, rules, verdict, ties)) {
        return verdict;
      }
    }
    if (ties > 0) {
      verdict.notes.push_back(absl::StrCat(
          ties, " points at ties, where the derivative is a convention"));
    }
  } else {
    int number = 0;
    for (const PreparedCall& call : concrete.calls) {
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
    const bool own =
        !context.rules().Lines(context.item->name, StatementKind::kJvp).empty();
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
  }
  int laws = 0;
  for (const PreparedCall& call : concrete.calls) {
    // In few digits what cancels in a tangent is not linear.
    if (!IsFloat(MainDType(call.call)) ||
        SignificandBits(MainDType(call.call)) < 24) {
      continue;
    }
    if (++laws > kLawCalls) break;
    if (!CheckLaws(context, call, sampler, rules, verdict)) return verdict;
  }
  return verdict;
}

}  // namespace cleave
