#include "testing/debug/meaning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "engine/rewrite/expand.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/reference/derivative.h"
#include "testing/check/samples/over_reals.h"
#include "testing/debug/element_error.h"
#include "testing/debug/node_values.h"

namespace cleave {
namespace {

// Enough for formulas that cancel; what more bits would change differs by less
// than any tolerance, or is not finite.
constexpr int kBits = 1280;
// Differences take numbers of 8192 bits, some evaluations of them.
constexpr double kMostElements = 1e5;

// Elements of all nodes together, by the exact values' count.
double CountElements(const DebugReport& report,
                     absl::Span<const Tensor> inputs) {
  double most = 1;
  for (const Tensor& input : inputs) {
    most = std::max(most, static_cast<double>(input.size()));
  }
  return most * report.rows.size();
}

// "y[2,0]", or "y" of a scalar.
std::string ElementName(const std::string& name,
                        const std::vector<int64_t>& index) {
  return index.empty()
             ? name
             : absl::StrCat(name, "[", absl::StrJoin(index, ","), "]");
}

// The element in which two results differ most, by more than `ulp`, where both
// are numbers.
std::optional<int64_t> MostDifferent(const RealTensor& got,
                                     const RealTensor& want, DType dtype,
                                     double ulp) {
  std::optional<int64_t> worst;
  for (size_t i = 0; i < want.reals.size() && i < got.reals.size(); ++i) {
    const Real& a = got.reals[i];
    const Real& b = want.reals[i];
    // A special value, or a zero that rounding made, is no meaning.
    if (!mpfr_number_p(a.get()) || !mpfr_number_p(b.get())) continue;
    if (a.exactness() == Exactness::kLost) continue;
    if (b.exactness() == Exactness::kLost) continue;
    const double error = UlpsBetween(a, b, dtype);
    if (!(error > ulp)) continue;
    ulp = error;
    worst = static_cast<int64_t>(i);
  }
  return worst;
}

// A graph of one call, at concrete types.
absl::StatusOr<Graph> GraphOfCall(const Graph& graph, Value node) {
  GraphBuilder builder(graph.context());
  std::vector<Value> inputs;
  for (const Value operand : graph.operands(node)) {
    inputs.push_back(builder.Input(absl::StrCat("operand", inputs.size()),
                                   graph.type(operand)));
  }
  const Node& call = graph.node(node);
  const Value copy = builder.AddTyped(call.op, call.attributes, call.type,
                                      inputs, call.provenance);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < graph.types(node).size(); ++i) {
    outputs.push_back(
        {absl::StrCat("result", i), builder.Result(copy, static_cast<int>(i))});
  }
  return std::move(builder).Build(std::move(outputs));
}

class Comparison {
 public:
  Comparison(const Graph& function, const RuleSet& rules,
             const DebugOptions& options, DebugReport& report)
      : function_(function),
        rules_(rules),
        options_(options),
        report_(report) {}

  // The calls of the function against the specs of their ops.
  absl::Status Calls(absl::Span<const Tensor> inputs) {
    const absl::StatusOr<int> calls = CompareCalls(inputs);
    if (EndsCall(calls.status())) return calls.status();
    if (!calls.ok()) {
      Note(absl::StrCat("calls are not compared with specs: ",
                        calls.status().message()));
    } else if (*calls > 0 && !report_.differs) {
      Note(absl::StrCat("calls that give over the reals what their specs say: ",
                        *calls));
    }
    return absl::OkStatus();
  }

  absl::Status Derivative(const Graph& derived,
                          absl::Span<const Tensor> inputs) {
    if (CountElements(report_, inputs) > kMostElements) {
      Note("the derivative is not compared with differences: too large");
      return absl::OkStatus();
    }
    const absl::StatusOr<int> compared = CompareDerivative(derived, inputs);
    if (EndsCall(compared.status())) return compared.status();
    if (!compared.ok()) {
      Note(absl::StrCat("the derivative is not compared with differences: ",
                        compared.status().message()));
    } else if (*compared == 0) {
      Note(
          "the derivative is not compared with differences: there is none "
          "here");
    } else if (!report_.differs) {
      Note(
          "over the reals the derivative is that of the function, by "
          "differences");
    }
    return absl::OkStatus();
  }

 private:
  void Note(std::string text) { report_.notes.push_back(std::move(text)); }

  // How many calls were compared with a spec.
  absl::StatusOr<int> CompareCalls(absl::Span<const Tensor> inputs) {
    bool any = false;
    for (uint32_t id = 0; id < function_.size(); ++id) {
      any |= !IsPrimitive(function_.node(Value{id}).op);
    }
    if (!any) return 0;
    CLEAVE_ASSIGN_OR_RETURN(const DimValues dims, BindDims(function_, inputs));
    DimSubstitution substitution;
    for (const auto& [name, value] : dims) {
      substitution.emplace(name, Dim(value));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph,
                            SubstituteDims(function_, substitution));
    std::vector<std::vector<RealTensor>> exact(graph.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      exact[graph.inputs()[i].value.id] = {
          RealTensor::FromTensor(inputs[i], kBits)};
    }
    int compared = 0;
    for (uint32_t id = 0; id < graph.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      const Value v{id};
      const OpId op = graph.node(v).op;
      if (op == ToOpId(Primitive::kInput)) continue;
      std::vector<RealTensor> operands;
      for (const Value operand : graph.operands(v)) {
        operands.push_back(exact[operand.id][0]);
      }
      if (op == ToOpId(Primitive::kResult)) {
        exact[id] = {exact[graph.operands(v)[0].id]
                          [graph.attributes(v).GetInt("index")]};
        continue;
      }
      if (IsPrimitive(op)) {
        CLEAVE_ASSIGN_OR_RETURN(exact[id],
                                EvaluateNode(graph, v, dims, operands, kBits));
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(const Graph call, GraphOfCall(graph, v));
      CLEAVE_ASSIGN_OR_RETURN(std::optional<Graph> body,
                              ExpandBodiesOverReals(call, rules_));
      if (!body) {
        CLEAVE_ASSIGN_OR_RETURN(body, Expand(call, rules_));
      }
      CLEAVE_ASSIGN_OR_RETURN(exact[id], InterpretReal(*body, operands, kBits));
      CLEAVE_ASSIGN_OR_RETURN(const bool has_spec,
                              CompareCall(graph, v, operands, exact[id]));
      compared += has_spec;
    }
    return compared;
  }

  // A node that has no value over the reals is evaluated in its dtype.
  static absl::StatusOr<std::vector<RealTensor>> ExactOrRounded(
      const Graph& graph, Value v, const DimValues& dims,
      const std::vector<RealTensor>& operands) {
    auto exact = EvaluateNode(graph, v, dims, operands, kBits);
    if (exact.ok() || EndsCall(exact.status())) return exact;
    std::vector<Tensor> rounded;
    for (const RealTensor& operand : operands) {
      rounded.push_back(Rounded(operand));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                            EvaluateNode(graph, v, dims, rounded));
    return AsReals(results, kBits);
  }

  // Whether the call was compared: its op has a spec that can be evaluated.
  absl::StatusOr<bool> CompareCall(const Graph& graph, Value v,
                                   const std::vector<RealTensor>& operands,
                                   const std::vector<RealTensor>& body) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* const spec,
                            rules_.Spec(RuleSet::SignatureOf(graph, v)));
    if (spec == nullptr) return false;
    CLEAVE_ASSIGN_OR_RETURN(const Graph expanded,
                            ExpandOverReals(*spec, rules_));
    const auto meant = InterpretReal(expanded, operands, kBits);
    if (EndsCall(meant.status())) return meant.status();
    if (!meant.ok() || meant->size() != body.size()) return false;
    const std::string op(graph.context()->op_name(graph.node(v).op));
    for (size_t r = 0; r < body.size(); ++r) {
      const auto element = MostDifferent(body[r], (*meant)[r],
                                         graph.types(v)[r].dtype, options_.ulp);
      if (!element) continue;
      report_.differs = true;
      Note(absl::StrCat("over the reals `", op, "`", PlaceOf(op), " gives ",
                        ElementName(expanded.outputs()[r].name,
                                    IndexOf(body[r].shape, *element)),
                        " = ", ElementText(body[r], *element),
                        ", where its spec says ",
                        ElementText((*meant)[r], *element)));
    }
    return true;
  }

  // " (mine.rules:4)".
  std::string PlaceOf(const std::string& op) const {
    const Item* const item = rules_.Find(op);
    if (item == nullptr) return "";
    const Source& source = rules_.SourceOf(*item);
    return absl::StrCat(" (", source.name(), ":",
                        source.PositionOf(item->range.begin).line, ")");
  }

  // How many tangents and cotangents were compared.
  absl::StatusOr<int> CompareDerivative(const Graph& derived,
                                        absl::Span<const Tensor> inputs) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph primal,
                            ExpandOverReals(function_, rules_));
    const auto evaluate = [&](const std::vector<RealTensor>& at, int bits) {
      return InterpretReal(primal, at, bits);
    };
    for (uint32_t id = 0; id < primal.size(); ++id) {
      has_nograd_ |= primal.node(Value{id}).op == ToOpId(Primitive::kNograd);
    }
    const size_t count = function_.inputs().size();
    const absl::Span<const Tensor> primals = inputs.subspan(0, count);
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<RealTensor> exact,
        InterpretReal(derived, AsReals(inputs, kBits), kBits));
    std::map<std::string, const Tensor*> seeds;
    for (size_t i = count; i < inputs.size(); ++i) {
      seeds[derived.inputs()[i].name] = &inputs[i];
    }
    int compared = 0;
    std::optional<Slopes> tangents;
    const size_t values = function_.outputs().size();
    for (size_t i = values; i < derived.outputs().size(); ++i) {
      const std::string& name = derived.outputs()[i].name;
      if (const std::optional<int> result =
              IndexOfPrimal(function_.outputs(), name, ".tangent")) {
        if (!tangents) {
          std::vector<std::optional<Tensor>> directions(count);
          for (size_t k = 0; k < count; ++k) {
            const auto it = seeds.find(function_.inputs()[k].name + ".tangent");
            if (it != seeds.end()) directions[k] = *it->second;
          }
          CLEAVE_ASSIGN_OR_RETURN(tangents,
                                  FineSlopesAlong(evaluate, primals, directions,
                                                  /*elementwise=*/false));
        }
        compared += CompareTangent(name, exact[i], tangents->values[*result]);
      } else if (const std::optional<int> input =
                     IndexOfPrimal(function_.inputs(), name, ".cotangent")) {
        CLEAVE_ASSIGN_OR_RETURN(const bool known,
                                CompareCotangent(name, exact[i], *input, i,
                                                 evaluate, primals, seeds));
        compared += known;
      }
    }
    return compared;
  }

  static std::optional<int> IndexOfPrimal(const std::vector<NamedValue>& values,
                                          const std::string& name,
                                          const std::string& suffix) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].name + suffix == name) return static_cast<int>(i);
    }
    return std::nullopt;
  }

  // Whether there is an element with a slope.
  bool CompareTangent(const std::string& name, const RealTensor& exact,
                      const std::vector<std::optional<Real>>& slopes) {
    RealTensor known = exact;
    bool any = false;
    for (size_t i = 0; i < slopes.size() && i < known.reals.size(); ++i) {
      if (!slopes[i]) continue;
      any = true;
      known.reals[i] = *slopes[i];
    }
    Differ(name, exact, known);
    return any;
  }

  void Differ(const std::string& name, const RealTensor& exact,
              const RealTensor& known) {
    const auto element = MostDifferent(exact, known, exact.dtype, options_.ulp);
    if (!element) return;
    report_.differs |= !has_nograd_;
    Note(absl::StrCat(
        "over the reals the derived graph gives ",
        ElementName(name, IndexOf(exact.shape, *element)), " = ",
        ElementText(exact, *element),
        ", where differences of the function say ",
        ElementText(known, *element),
        has_nograd_ ? " (it has `nograd`, which hides a part)" : ""));
  }

  absl::StatusOr<bool> CompareCotangent(
      const std::string& name, const RealTensor& exact, int input,
      size_t output, const RealFunction& evaluate,
      absl::Span<const Tensor> primals,
      const std::map<std::string, const Tensor*>& seeds) {
    const Tensor& x = primals[input];
    if (x.size() == 0) return false;
    // The element that the report shows.
    int64_t element = 0;
    for (const DebugOutput& found : report_.outputs) {
      if (found.name != name || !found.worst) continue;
      element = 0;
      for (size_t d = 0; d < x.shape().size(); ++d) {
        element = element * x.shape()[d] + found.worst->index[d];
      }
    }
    std::vector<std::optional<Tensor>> directions(primals.size());
    Tensor unit(x.dtype(), x.shape());
    unit.SetDouble(element, 1);
    directions[input] = std::move(unit);
    CLEAVE_ASSIGN_OR_RETURN(const Slopes slopes,
                            FineSlopesAlong(evaluate, primals, directions,
                                            /*elementwise=*/false));
    Real sum(0.0, kBits);
    for (size_t r = 0; r < slopes.values.size(); ++r) {
      const auto seed = seeds.find(function_.outputs()[r].name + ".cotangent");
      if (seed == seeds.end()) continue;
      for (size_t i = 0; i < slopes.values[r].size(); ++i) {
        const double weight = seed->second->GetDouble(i);
        if (weight == 0) continue;
        if (!slopes.values[r][i]) return false;
        Real term = *slopes.values[r][i];
        mpfr_mul_d(term.get(), term.get(), weight, MPFR_RNDN);
        mpfr_add(sum.get(), sum.get(), term.get(), MPFR_RNDN);
      }
    }
    RealTensor known = exact;
    known.reals[element] = std::move(sum);
    Differ(name, exact, known);
    return true;
  }

  const Graph& function_;
  const RuleSet& rules_;
  const DebugOptions& options_;
  DebugReport& report_;
  bool has_nograd_ = false;
};

}  // namespace

absl::Status CompareMeaning(const Graph& function, const Graph& primitives,
                            const RuleSet& rules,
                            absl::Span<const Tensor> inputs,
                            const DebugOptions& options, DebugReport& report) {
  const BudgetScope scope;
  Comparison comparison(function, rules, options, report);
  const size_t primals = function.inputs().size();
  CLEAVE_RETURN_IF_ERROR(comparison.Calls(inputs.subspan(0, primals)));
  if (primitives.outputs().size() == function.outputs().size()) {
    return absl::OkStatus();
  }
  return comparison.Derivative(primitives, inputs);
}

}  // namespace cleave
