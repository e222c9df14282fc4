#include "testing/fuzz/differential/check_derived_rules.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/fuzz/differential/check_derivatives.h"
#include "testing/fuzz/differential/compare.h"
#include "testing/fuzz/differential/parts.h"
#include "testing/fuzz/differential/random.h"
#include "transforms/jvp/jvp.h"
#include "transforms/report/derive_rule.h"
#include "transforms/vjp/vjp.h"

namespace cleave::fuzz {
namespace {

// For what is seen of rounding in a few samples.
constexpr double kMargin = 8;

// A call of `op` with the inputs and results of `function`.
absl::StatusOr<Graph> CallOf(const std::string& op, const Graph& function,
                             const RuleSet& rules) {
  GraphBuilder builder(function.context());
  std::vector<Argument> arguments;
  for (const NamedValue& input : function.inputs()) {
    arguments.push_back(
        {"", builder.Input(input.name, function.type(input.value))});
  }
  CLEAVE_ASSIGN_OR_RETURN(const auto results,
                          rules.Call(builder, op, arguments, Attributes()));
  std::vector<NamedValue> outputs;
  for (size_t r = 0; r < results.size(); ++r) {
    outputs.push_back({function.outputs()[r].name, *results[r]});
  }
  return std::move(builder).Build(std::move(outputs));
}

absl::StatusOr<Graph> Derivative(const Graph& function, Transform transform,
                                 const std::vector<bool>& active,
                                 const RuleSet& rules) {
  if (transform == Transform::kJvp) {
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(function, active, rules));
    return Expand(jvp.graph, rules);
  }
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(function, active, rules));
  return Expand(vjp.graph, rules);
}

// The first part where two results are further apart than rounding takes them;
// empty where there is none.
std::string PartingBeyondRounding(const Graph& graph,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Tensor>& got,
                                  const std::vector<Tensor>& want) {
  const auto spread = RoundingSpread(graph, inputs);
  if (!spread.has_value()) return "";
  for (size_t r = 0; r < want.size(); ++r) {
    if (!IsInexact(want[r].dtype())) {
      if (!SameValue(got[r], want[r])) {
        return absl::StrCat("result ", r, ": got ", got[r].ToString(),
                            ", want ", want[r].ToString());
      }
      continue;
    }
    for (int64_t i = 0; i < Parts(want[r]); ++i) {
      const double a = GetPart(got[r], i), b = GetPart(want[r], i);
      // 0 times what is not finite is there in one of them alone.
      if (!std::isfinite(b) || !std::isfinite(a)) continue;
      const double allowed =
          kMargin * (*spread)[r][i] + 1e-13 * std::abs(b) + 1e-300;
      if (std::abs(a - b) <= allowed || std::isnan(allowed)) continue;
      return absl::StrCat("part ", i, " of result ", r, ": got ", a, ", want ",
                          b, ", allowed ", allowed);
    }
  }
  return "";
}

// Inputs of a derivative: those of the function, and numbers for the others.
std::vector<Tensor> WithDirections(const Graph& derivative,
                                   const std::vector<Tensor>& point,
                                   Random& random) {
  std::vector<Tensor> inputs = point;
  const auto dims = BindTypes(derivative, [&] {
    std::vector<TensorType> types;
    for (const Tensor& tensor : point) types.push_back(tensor.type());
    return types;
  }());
  if (!dims.ok()) return {};
  for (size_t i = point.size(); i < derivative.inputs().size(); ++i) {
    const TensorType& type = derivative.type(derivative.inputs()[i].value);
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) {
      const auto value = extent.Evaluate(*dims);
      if (!value.ok()) return {};
      shape.push_back(*value);
    }
    Tensor tensor(type.dtype, shape);
    for (int64_t e = 0; e < Parts(tensor); ++e) {
      SetPart(tensor, e, static_cast<double>(random.Between(-64, 64)) / 64);
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

}  // namespace

bool CheckDerivedRules(const Graph& function,
                       const std::shared_ptr<const RuleSet>& rules,
                       const std::vector<std::vector<Tensor>>& points,
                       Outcome& outcome) {
  std::vector<bool> active;
  bool any = false;
  for (const NamedValue& input : function.inputs()) {
    active.push_back(IsInexact(function.type(input.value).dtype));
    any |= active.back();
  }
  if (!any) return true;
  for (const auto& [transform, op] :
       {std::pair(Transform::kJvp, "f_with_jvp"),
        std::pair(Transform::kVjp, "f_with_vjp")}) {
    const std::string what = absl::StrCat("derived rule ", op);
    const auto want = Derivative(function, transform, active, *rules);
    if (!want.ok()) continue;  // CheckDerivatives says why
    const auto text = DeriveRule(function, "f", transform, active, *rules);
    if (absl::IsUnimplemented(text.status())) continue;
    if (!text.ok()) return Failed(outcome, what, text.status());
    const LoadResult loaded =
        ExtendRules(rules, {"derived.rules", *text, false, true});
    if (loaded.rules == nullptr) {
      return Differs(
          outcome, absl::StrCat(what, " does not load"),
          absl::StrCat(absl::StrJoin(loaded.diagnostics, "\n"), *text));
    }
    const auto call = CallOf(op, function, *loaded.rules);
    // An input that is not read, or sizes that are attributes.
    if (absl::IsInvalidArgument(call.status())) continue;
    if (!call.ok()) return Failed(outcome, what, call.status());
    const auto got = Derivative(*call, transform, active, *loaded.rules);
    if (!got.ok()) {
      return Failed(outcome, absl::StrCat(what, " has no derivative"),
                    got.status());
    }
    Random random(points.size());
    for (const std::vector<Tensor>& point : points) {
      const std::vector<Tensor> inputs = WithDirections(*want, point, random);
      if (inputs.size() != want->inputs().size()) continue;
      const Results meant = Interpret(*want, inputs);
      if (!meant.ok()) continue;
      const Results made = Interpret(*got, inputs);
      ++outcome.comparisons;
      if (IsOverLimits(made)) continue;
      std::string parting =
          made.ok() ? "" : absl::StrCat("got ", made.status().ToString());
      if (made.ok() && !Parting(made, meant).empty()) {
        parting = PartingBeyondRounding(*want, inputs, *made, *meant);
      }
      if (!parting.empty()) {
        return Differs(outcome, what, absl::StrCat(parting, "\n", *text));
      }
    }
  }
  return true;
}

}  // namespace cleave::fuzz
