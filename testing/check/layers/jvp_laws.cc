#include "testing/check/layers/jvp_laws.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/reference/derivative.h"
#include "testing/check/reference/reference.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/over_reals.h"
#include "testing/check/samples/shrink.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// The largest difference of two lists of results as a part of the largest
// finite element. One below the least normal number is what denormals leave.
double RelativeDifference(absl::Span<const Tensor> a,
                          absl::Span<const Tensor> b) {
  double largest = 0;
  double difference = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    if (!IsFloat(a[r].dtype())) continue;
    const double least = std::ldexp(1.0, MinExponent(a[r].dtype()));
    for (int64_t i = 0; i < a[r].size(); ++i) {
      const double x = a[r].GetDouble(i);
      const double y = b[r].GetDouble(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      if (!std::isfinite(x) || !std::isfinite(y)) return HUGE_VAL;
      largest = std::max({largest, std::abs(x), std::abs(y)});
      const double off = std::abs(x - y);
      if (off >= least) difference = std::max(difference, off);
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

}  // namespace

absl::Status ExpandDerivative(const Graph& derivative, const RuleSet& rules,
                              JvpGraphs& jvp) {
  CLEAVE_ASSIGN_OR_RETURN(jvp.graph, Expand(derivative, rules));
  CLEAVE_ASSIGN_OR_RETURN(jvp.over_reals,
                          ExpandIfOtherOverReals(derivative, rules));
  return absl::OkStatus();
}

absl::StatusOr<JvpGraphs> Differentiate(const OpContext& context,
                                        const Graph& call,
                                        const std::vector<bool>& active,
                                        const RuleSet& rules) {
  JvpGraphs graphs;
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult result, Jvp(call, active, rules));
  graphs.has_tangent = result.has_tangent;
  CLEAVE_RETURN_IF_ERROR(
      ExpandDerivative(result.graph, context.rules(), graphs));
  return graphs;
}

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

bool CheckJvpLaws(const OpContext& context, const PreparedCall& prepared,
                  DomainSampler& sampler, const RuleSet& rules,
                  Verdict& verdict) {
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
  // Nullopt where no inputs are within the domain.
  const auto run = [&]() -> absl::StatusOr<std::optional<bool>> {
    constexpr int64_t kBatch = 2;
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp,
                            Jvp(prepared.graphs.call, active, rules));
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph,
                            Expand(jvp.graph, context.rules()));
    std::vector<std::vector<Tensor>> examples;
    std::vector<std::vector<Tensor>> outputs;
    for (int64_t b = 0; b < kBatch; ++b) {
      std::optional<std::vector<Tensor>> within =
          sampler.Tensors(prepared, Pattern::kNormal);
      // Outside of its domain the op means nothing.
      if (!within) return std::nullopt;
      std::vector<Tensor> inputs = *std::move(within);
      for (size_t k = 0; k < types.size(); ++k) {
        if (active[k]) inputs.push_back(sampler.values().Tangent(types[k]));
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
  const absl::StatusOr<std::optional<bool>> holds = run();
  if (!holds.ok()) {
    return AddStatus(absl::StrCat("jvp of ", call.ToString()), holds.status(),
                     verdict);
  }
  if (!holds->has_value()) return true;
  if (!**holds) return false;
  Merge(verdict, Verdict::Agrees(2));
  return true;
}

}  // namespace cleave
