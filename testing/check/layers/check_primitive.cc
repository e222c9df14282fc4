#include "testing/check/layers/check_primitive.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/infer_type.h"
#include "ops/primitive.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_tangents.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/layers/check_transforms.h"
#include "testing/check/layers/complex_points.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

constexpr int64_t kPrimitivePoints = 1500;
constexpr int64_t kNarrowPrimitivePoints = 300;  // of f16 and bf16
// Points at which derivatives of second order are compared, in each pattern.
constexpr int64_t kLawPoints = 8;
// Complex points, and what part of the slope it may differ by from differences.
constexpr int64_t kComplexPoints = 64;
constexpr double kComplexTolerance = 1e-8;

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
  JvpGraphs jvp;
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
    CLEAVE_ASSIGN_OR_RETURN(graphs.jvp.graph, Expand(graph, rules));
    graphs.jvp.has_tangent = {true};
  }
  return graphs;
}

// Points at which rules choose: 0, 1, and the axes.
constexpr std::complex<double> kChosenPoints[] = {{0, 0}, {1, 0},  {-1, 0},
                                                  {2, 0}, {-2, 0}, {0.5, 0},
                                                  {0, 1}, {0, -1}, {0, 2}};

// The slopes of a function at complex points, along one direction at each:
// the last result of `derivative` at `points` and the tangent of operand
// `active`, against differences of the last one of `function`. From the point
// `first_chosen` on, those count where the coarse and the fine ones are the
// same: a chosen point may lie on a branch cut, or have no slope. Nullopt where
// all agree, else the first point where they do not.
struct ComplexFailure {
  int64_t element = 0;
  std::complex<double> expected;
  std::complex<double> got;
};
absl::StatusOr<std::optional<ComplexFailure>> CompareComplexSlopes(
    const Graph& function, const Graph& derivative,
    const std::vector<Tensor>& points, const Tensor& tangent, int active,
    int64_t first_chosen) {
  std::vector<Tensor> arguments = points;
  arguments.push_back(tangent);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          Interpret(derivative, arguments));
  const Tensor& slopes = results.back();
  const auto value_at = [&](double step) -> absl::StatusOr<Tensor> {
    std::vector<Tensor> moved = points;
    moved[active] = MovedAlong(points[active], tangent, step);
    CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> values,
                            Interpret(function, moved));
    return std::move(values.back());
  };
  constexpr double kStep = 0x1p-13;
  CLEAVE_ASSIGN_OR_RETURN(const Tensor center, value_at(0));
  std::vector<Tensor> values;
  for (const double steps : kSlopePoints) {
    CLEAVE_ASSIGN_OR_RETURN(Tensor value, value_at(steps * kStep));
    values.push_back(std::move(value));
  }
  for (int64_t i = 0; i < slopes.size(); ++i) {
    const auto [want, fine] = SlopeAt(values, i, kStep);
    const double value = std::abs(center.GetComplex(i));
    const std::complex<double> slope = slopes.GetComplex(i);
    const double size = std::max({1.0, std::abs(want), value});
    if (i >= first_chosen &&
        !(value < HUGE_VAL &&
          std::abs(fine - want) <= kComplexTolerance * size)) {
      continue;
    }
    // A NaN is none of the two.
    if (!(std::abs(slope - want) <= kComplexTolerance * size)) {
      return ComplexFailure{i, want, slope};
    }
  }
  return std::nullopt;
}

// The tangent of a primitive as a function of its operands and of the tangent
// of one, and the derivative of that along the same operand.
struct SecondGraphs {
  Graph tangent;
  Graph derivative;
};
absl::StatusOr<SecondGraphs> DifferentiateTwice(const RuleSet& rules,
                                                const PrimitiveGraphs& graphs,
                                                int active) {
  SecondGraphs second;
  second.tangent = WithoutOutputsBefore(graphs.jvp.graph, 1);
  std::vector<bool> operands(second.tangent.inputs().size());
  operands[active] = true;
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp,
                          Jvp(second.tangent, operands, rules));
  CLEAVE_ASSIGN_OR_RETURN(second.derivative, Expand(jvp.graph, rules));
  return second;
}

// Whether the rule has a condition on complex dtypes.
bool AsksForComplex(const Expr& e) {
  if (e.kind == ExprKind::kBinary && e.text == "is" &&
      e.children[1]->text == "complex") {
    return true;
  }
  return std::any_of(
      e.children.begin(), e.children.end(),
      [](const ExprPtr& child) { return AsksForComplex(*child); });
}

bool AsksForComplex(const Item& item) {
  return std::any_of(item.body->statements.begin(), item.body->statements.end(),
                     [](const Statement& line) {
                       return AsksForComplex(*line.equation.value);
                     });
}

// A rule that cannot be applied to operands that the primitive takes.
Verdict Inapplicable(const OpContext& context, const SampledCall& call,
                     const std::string& by, const absl::Status& status) {
  Counterexample example;
  example.call = call.ToString();
  example.what = absl::StrCat("derivative of ", context.item->name, " ", by);
  example.expected = "a tangent";
  example.got = std::string(status.message());
  example.place = context.Place();
  example.replay = context.Replay();
  return Verdict::Disagrees(std::move(example));
}

// The slopes at complex numbers, where the primitive takes them. A derivative
// that does not type there is that of real numbers alone, unless it asks
// whether they are complex. False once the rule is refuted.
bool CheckComplexSlopes(const OpContext& context, Primitive primitive,
                        Verdict& verdict) {
  SampledCall call = CallOf(*context.item, primitive, DType::kC128);
  std::vector<TensorType> types = call.OperandTypes();
  if (!InferType(primitive, {}, types).ok()) return true;
  std::mt19937_64 random(context.seed + 11);
  std::vector<Tensor> points;
  constexpr int64_t kChosen = std::size(kChosenPoints);
  const int64_t count = kComplexPoints + kChosen * kChosen;
  int64_t stride = 1;  // of the chosen points: the first two operands cross
  for (const TensorType& type : types) {
    Tensor point(type.dtype, {count});
    for (int64_t i = 0; i < point.size(); ++i) {
      if (IsComplex(type.dtype) && i >= kComplexPoints) {
        point.SetComplex(
            i, kChosenPoints[(i - kComplexPoints) / stride % kChosen]);
      } else if (IsComplex(type.dtype)) {
        point.SetComplex(i, ComplexPoint(random));
      } else {
        point.SetInt(i, static_cast<int64_t>(random() % 2));
      }
    }
    points.push_back(std::move(point));
    if (IsComplex(type.dtype)) stride = kChosen;
  }
  const Tensor tangent = ComplexTensor({count}, random);
  for (size_t k = 0; k < types.size(); ++k) {
    if (!IsComplex(types[k].dtype)) continue;
    const int active = static_cast<int>(k);
    const auto graphs = MakeGraphs(context.rules(), call, primitive, active);
    const std::string by =
        absl::StrCat("by ", context.item->parameters[k], " in c128");
    const auto failure =
        graphs.ok()
            ? CompareComplexSlopes(graphs->primal, graphs->jvp.graph, points,
                                   tangent, active, kComplexPoints)
            : graphs.status();
    if (IsImpossible(failure.status())) continue;
    if (!failure.ok()) {
      const std::string why =
          absl::StrCat(by, ": ", std::string(failure.status().message()));
      if (!AsksForComplex(*context.item)) {
        verdict.notes.push_back(why);
      } else if (!graphs.ok()) {
        Merge(verdict, Inapplicable(context, call, by, graphs.status()));
        return false;
      } else {
        Merge(verdict, Verdict::Inconclusive(why));
      }
      continue;
    }
    const auto refute = [&](const ComplexFailure& wrong, const char* what) {
      Counterexample example;
      example.call = call.ToString();
      example.inputs = DescribeInputs(call.OperandNames(),
                                      SelectElements(points, {wrong.element}));
      example.what =
          absl::StrCat(what, " of ", context.item->name, " ", by, " along ",
                       ComplexText(tangent.GetComplex(wrong.element)));
      example.expected = ComplexText(wrong.expected);
      example.got = ComplexText(wrong.got);
      example.place = context.Place();
      example.replay = context.Replay();
      Merge(verdict, Verdict::Disagrees(std::move(example)));
      return false;
    };
    if (*failure) return refute(**failure, "derivative");
    const auto second = DifferentiateTwice(context.rules(), *graphs, active);
    if (second.ok()) {
      std::vector<Tensor> arguments = points;
      arguments.push_back(tangent);
      const auto failure_of_second =
          CompareComplexSlopes(second->tangent, second->derivative, arguments,
                               tangent, active, kComplexPoints);
      if (failure_of_second.ok() && *failure_of_second) {
        return refute(**failure_of_second, "second derivative");
      }
    }
    Merge(verdict, Verdict::Agrees(count));
  }
  return true;
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

}  // namespace

Verdict CheckPrimitiveJvp(const OpContext& context) {
  const Item& item = *context.item;
  const auto primitive = FindPrimitive(item.name);
  if (!primitive) return Verdict::NotChecked("no primitive of that name");
  Verdict verdict;
  ValueSampler sampler(context.seed + 10);
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    if (!context.Wants(dtype)) continue;
    const SampledCall call = CallOf(item, *primitive, dtype);
    std::vector<Tensor> points = sampler.Points(
        call,
        SignificandBits(dtype) < 24 ? kNarrowPrimitivePoints : kPrimitivePoints,
        false);
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
          continue;
        }
        Merge(verdict, Inapplicable(context, call,
                                    absl::StrCat("by ", item.parameters[k]),
                                    graphs.status()));
        return verdict;
      }
      const TangentComparer comparer(graphs->primal, graphs->primal,
                                     graphs->jvp, static_cast<int>(k));
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
      Verdict agrees = Verdict::Agrees(comparison->samples);
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
  if (context.Wants(DType::kC128) &&
      !CheckComplexSlopes(context, *primitive, verdict)) {
    return verdict;
  }
  const Verdict laws = CheckLaws(context, *primitive);
  // Where one operand has no derivative, nor has the whole.
  if (laws.kind != VerdictKind::kNotChecked) Merge(verdict, laws);
  return verdict;
}

}  // namespace cleave
