#include "testing/check/check_primitive.h"

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/rewrite/expand.h"
#include "ops/primitive.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/check/check_transforms.h"
#include "testing/check/compare_complex.h"
#include "testing/check/compare_tangents.h"
#include "testing/check/compare_values.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

constexpr int64_t kPrimitivePoints = 1500;
// Points at which derivatives of second order are compared, in each pattern.
constexpr int64_t kLawPoints = 8;
constexpr int64_t kComplexPoints = 600;

// The primitive at [n]: operand types, as a call for the samplers.
SampledCall CallOf(const Item& item, Primitive primitive, DType dtype) {
  SampledCall call;
  call.op = item.name;
  for (size_t k = 0; k < item.parameters.size(); ++k) {
    SampledInput input;
    input.name = item.parameters[k];
    const bool predicate = primitive == Primitive::kSelect && k == 0;
    input.types.push_back(
        TensorType{predicate ? DType::kBool : dtype, {Dim::Variable("n")}});
    call.inputs.push_back(std::move(input));
  }
  return call;
}

struct PrimitiveGraphs {
  Graph primal;
  Graph jvp;
};

absl::StatusOr<PrimitiveGraphs> MakeGraphs(const RuleSet& rules,
                                           const SampledCall& call,
                                           Primitive primitive, int active) {
  PrimitiveGraphs graphs;
  const std::vector<TensorType> types = call.OperandTypes();
  Signature signature;
  signature.op = ToOpId(primitive);
  std::vector<bool> is_active(types.size());
  is_active[active] = true;
  for (const TensorType& type : types) {
    signature.operands.push_back(rules.context()->Intern(type));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph* tangent,
                          rules.PrimitiveJvp(signature, is_active));
  for (bool with_tangent : {false, true}) {
    GraphBuilder builder(rules.context());
    std::vector<Value> operands;
    const std::vector<std::string> names = call.OperandNames();
    for (size_t k = 0; k < types.size(); ++k) {
      operands.push_back(builder.Input(names[k], types[k]));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Value y,
                            builder.Add(primitive, {}, operands));
    std::vector<NamedValue> outputs = {{"y", y}};
    if (!with_tangent) {
      CLEAVE_ASSIGN_OR_RETURN(graphs.primal,
                              std::move(builder).Build(std::move(outputs)));
      continue;
    }
    std::vector<Value> arguments = operands;
    arguments.push_back(y);
    arguments.push_back(
        builder.Input(absl::StrCat(names[active], ".tangent"), types[active]));
    outputs.push_back(
        {"y.tangent", builder.Inline(*tangent, arguments).front()});
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph,
                            std::move(builder).Build(std::move(outputs)));
    CLEAVE_ASSIGN_OR_RETURN(graphs.jvp, Expand(graph, rules));
  }
  return graphs;
}

// The laws of L5 at one vector: jvp of jvp is the derivative of jvp, which the
// points above do not show, in all nestings.
Verdict CheckLaws(const OpContext& context, Primitive primitive) {
  PreparedCall prepared;
  prepared.call = CallOf(*context.item, primitive, DType::kF64);
  for (SampledInput& input : prepared.call.inputs) {
    input.types[0]->shape = {Dim(kLawPoints)};
  }
  GraphBuilder builder(context.rules().context());
  std::vector<Value> operands;
  const std::vector<TensorType> types = prepared.call.OperandTypes();
  for (size_t k = 0; k < types.size(); ++k) {
    operands.push_back(builder.Input(context.item->parameters[k], types[k]));
  }
  const Value y = builder.Apply(primitive, operands);
  absl::StatusOr<Graph> graph = std::move(builder).Build({{"y", y}});
  if (!graph.ok()) {
    return Verdict::Inconclusive(std::string(graph.status().message()));
  }
  prepared.graphs.call = prepared.graphs.body = *std::move(graph);
  PreparedCalls calls;
  calls.calls.push_back(std::move(prepared));
  return CheckVjp(context, calls, context.rules());
}

std::string ToText(std::complex<double> z) {
  return absl::StrCat(z.real(), z.imag() < 0 ? " - " : " + ",
                      std::abs(z.imag()), "i");
}

// Complex operands, of primitives that take them.
Verdict CheckComplex(const OpContext& context, Primitive primitive) {
  const Item& item = *context.item;
  const SampledCall call = CallOf(item, primitive, DType::kC128);
  std::mt19937_64 random(context.seed + 11);
  std::vector<Tensor> points;
  for (const TensorType& type : call.OperandTypes()) {
    Tensor point = ComplexPoints(kComplexPoints, random);
    if (type.dtype != DType::kC128) {
      point = Tensor(type.dtype, {kComplexPoints});
      for (int64_t i = 0; i < kComplexPoints; i += 2) point.SetInt(i, 1);
    }
    points.push_back(std::move(point));
  }
  Verdict verdict;
  for (size_t k = 0; k < points.size(); ++k) {
    if (!IsComplex(points[k].dtype())) continue;
    // The types are refused, or it has no derivative: reals say so.
    const auto graphs =
        MakeGraphs(context.rules(), call, primitive, static_cast<int>(k));
    if (!graphs.ok()) continue;
    const Tensor tangent = ComplexPoints(kComplexPoints, random);
    const auto found = CompareComplexTangents(
        graphs->primal, graphs->jvp, points, static_cast<int>(k), tangent);
    if (!found.ok()) {
      Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                         "complex operands: ", found.status().message())));
      continue;
    }
    if (found->failure) {
      const auto& [element, expected, got] = *found->failure;
      std::vector<std::string> inputs;
      for (size_t j = 0; j < points.size(); ++j) {
        inputs.push_back(absl::StrCat(item.parameters[j], " = ",
                                      ToText(points[j].GetComplex(element))));
      }
      inputs.push_back(absl::StrCat("d", item.parameters[k], " = ",
                                    ToText(tangent.GetComplex(element))));
      Counterexample example;
      example.call = call.ToString();
      example.inputs = absl::StrJoin(inputs, ", ");
      example.what =
          absl::StrCat("derivative of ", item.name, " by ", item.parameters[k]);
      example.expected = absl::StrCat(ToText(expected), ", by differences");
      example.got = ToText(got);
      example.ulp = std::numeric_limits<double>::infinity();
      example.place = context.Place();
      example.replay = context.Replay();
      return Verdict::Disagrees(std::move(example));
    }
    Verdict agrees;
    agrees.kind = VerdictKind::kAgrees;
    agrees.samples = found->samples;
    agrees.notes = {absl::StrCat("complex ", item.parameters[k], ": ",
                                 found->samples, " points within ",
                                 kComplexTolerance, " of differences")};
    if (found->samples < kComplexPoints / 2) {
      agrees = Verdict::Inconclusive(
          absl::StrCat("complex ", item.parameters[k],
                       ": differences settle "
                       "at ",
                       found->samples, " of ", kComplexPoints, " points"));
    }
    Merge(verdict, agrees);
  }
  return verdict;
}

}  // namespace

Verdict CheckPrimitiveJvp(const OpContext& context) {
  const Item& item = *context.item;
  const auto primitive = FindPrimitive(item.name);
  if (!primitive) return Verdict::NotChecked("no primitive of that name");
  Verdict verdict;
  ValueSampler sampler(context.seed + 10);
  for (DType dtype : {DType::kF64, DType::kF32}) {
    if (!context.Wants(dtype)) continue;
    const SampledCall call = CallOf(item, *primitive, dtype);
    std::vector<Tensor> points = sampler.Points(call, kPrimitivePoints, false);
    // The order of a polygamma is a small whole number.
    for (int64_t i = 0;
         *primitive == Primitive::kPolygamma && i < points[0].size(); ++i) {
      points[0].SetDouble(i, static_cast<double>(i % 5));
    }
    for (size_t k = 0; k < points.size(); ++k) {
      if (!IsFloat(points[k].dtype())) continue;
      if (context.Expired()) {
        Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
        return verdict;
      }
      const auto graphs =
          MakeGraphs(context.rules(), call, *primitive, static_cast<int>(k));
      if (!graphs.ok()) {
        const std::string message(graphs.status().message());
        const std::string by =
            absl::StrCat("by ", item.parameters[k], ": ", message);
        if (IsImpossible(graphs.status())) {
          Verdict none;
          none.notes = {by};
          Merge(verdict, none);
        } else {
          Merge(verdict, Verdict::Inconclusive(by));
        }
        continue;
      }
      const TangentComparer comparer(graphs->primal, graphs->primal,
                                     graphs->jvp, {true}, static_cast<int>(k));
      const auto comparison = comparer.ComparePoints(points);
      if (!comparison.ok()) {
        Merge(verdict, Verdict::Inconclusive(
                           std::string(comparison.status().message())));
        continue;
      }
      if (comparison->failure) {
        TangentFailure shown = *comparison->failure;
        std::vector<Tensor> smallest = SelectElements(points, {shown.element});
        const auto fails = [&](absl::Span<const Tensor> trial) {
          if (context.Expired()) return false;
          const auto again = comparer.ComparePoints(trial);
          if (!again.ok() || !again->failure) return false;
          shown = *again->failure;
          return true;
        };
        if (fails(smallest)) {
          smallest =
              ShrinkValues(std::move(smallest), fails, context.ShrinkTrials());
        }
        Counterexample example;
        example.call = call.ToString();
        example.inputs = DescribeInputs(call.OperandNames(), smallest);
        example.what = absl::StrCat("derivative of ", item.name, " by ",
                                    item.parameters[k]);
        example.expected = shown.expected;
        example.got = shown.got;
        example.ulp = shown.ulp;
        example.bound = shown.bound;
        example.place = context.Place();
        example.replay = context.Replay();
        Merge(verdict, Verdict::Disagrees(std::move(example)));
        return verdict;
      }
      Verdict agrees;
      agrees.kind = VerdictKind::kAgrees;
      agrees.samples = comparison->samples;
      agrees.worst_ulp = comparison->worst_ulp;
      agrees.worst_part = comparison->worst_part;
      if (comparison->worst_element >= 0) {
        agrees.worst_at = absl::StrCat(
            DescribeInputs(call.OperandNames(),
                           SelectElements(points, {comparison->worst_element})),
            " in ", DTypeName(dtype));
      }
      Merge(verdict, agrees);
    }
  }
  if (context.Wants(DType::kC128)) {
    const Verdict complex = CheckComplex(context, *primitive);
    if (complex.kind != VerdictKind::kNotChecked) Merge(verdict, complex);
  }
  const Verdict laws = CheckLaws(context, *primitive);
  // Where one operand has no derivative, nor has the whole.
  if (laws.kind != VerdictKind::kNotChecked) Merge(verdict, laws);
  return verdict;
}

}  // namespace cleave
