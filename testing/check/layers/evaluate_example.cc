#include "testing/check/layers/evaluate_example.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

// The call alone: its inputs are the operands.
absl::StatusOr<Graph> CallOf(const RuleSet& rules, const Item& op,
                             const SampledCall& call) {
  if (op.kind != ItemKind::kJvp) return MakeCallGraph(rules, call);
  const auto primitive = FindPrimitive(op.name);
  if (!primitive) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no primitive `", op.name, "`"));
  }
  GraphBuilder builder(rules.context());
  std::vector<Value> operands;
  const std::vector<std::string> names = call.OperandNames();
  const std::vector<TensorType> types = call.OperandTypes();
  for (size_t i = 0; i < names.size(); ++i) {
    operands.push_back(builder.Input(names[i], types[i]));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value y, builder.Add(*primitive, {}, operands));
  return std::move(builder).Build({{"y", y}});
}

bool IsInexact(const TensorType& type) {
  return InClass(type.dtype, DTypeClass::kInexact);
}

absl::Status CheckNames(const Expr& left, const std::vector<std::string>& names,
                        absl::string_view kind) {
  if (left.seconds.size() > names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", names.size(), " ", kind, "s to give"));
  }
  for (const NamedExpr& named : left.named_seconds) {
    if (std::find(names.begin(), names.end(), named.name) == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", named.name, "` has no ", kind));
    }
  }
  return absl::OkStatus();
}

// The outputs behind those of the primal graph, by the names without `suffix`.
absl::StatusOr<ExampleResults> Derivatives(const Graph& transformed,
                                           const RuleSet& rules,
                                           absl::Span<const Tensor> inputs,
                                           size_t primals,
                                           absl::string_view suffix) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, Expand(transformed, rules));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> values, Interpret(graph, inputs));
  ExampleResults results;
  for (size_t r = primals; r < values.size(); ++r) {
    const std::string& name = graph.outputs()[r].name;
    results.names.push_back(name.substr(0, name.size() - suffix.size()));
    results.values.push_back(std::move(values[r]));
  }
  return results;
}

absl::StatusOr<ExampleResults> EvaluateJvp(const RuleSet& rules,
                                           const Graph& call,
                                           std::vector<Tensor> inputs,
                                           const Expr& left) {
  std::vector<std::string> names;
  for (const NamedValue& input : call.inputs()) names.push_back(input.name);
  CLEAVE_RETURN_IF_ERROR(CheckNames(left, names, "tangent"));
  std::vector<bool> active;
  for (size_t i = 0; i < names.size(); ++i) {
    const Expr* tangent = SecondArgument(left, names, i);
    active.push_back(tangent != nullptr);
    if (tangent == nullptr) continue;
    const TensorType type = call.type(call.inputs()[i].value);
    if (!IsInexact(type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", names[i], "` is of ", DTypeName(type.dtype),
                       ", which has no tangents"));
    }
    CLEAVE_ASSIGN_OR_RETURN(Tensor value, ReadTensorOf(*tangent, type));
    inputs.push_back(std::move(value));
  }
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(call, active, rules));
  return Derivatives(jvp.graph, rules, inputs, call.outputs().size(),
                     ".tangent");
}

absl::StatusOr<ExampleResults> EvaluateVjp(const RuleSet& rules,
                                           const Graph& call,
                                           std::vector<Tensor> inputs,
                                           const Expr& left,
                                           const Expr& right) {
  std::vector<bool> active;
  for (const NamedValue& input : call.inputs()) {
    active.push_back(IsInexact(call.type(input.value)));
  }
  // By one input there may be a derivative, and none by the others.
  if (right.kind == ExprKind::kRecord) {
    std::vector<bool> asked_for(active.size());
    size_t found = 0;
    for (const Equation& field : right.fields) {
      for (size_t i = 0; i < active.size(); ++i) {
        if (!active[i] || call.inputs()[i].name != field.name) continue;
        asked_for[i] = true;
        ++found;
      }
    }
    // Another name is a mistake, which is told beside the names that there are.
    if (found == right.fields.size()) active = std::move(asked_for);
  }
  std::vector<std::string> names;
  std::vector<TensorType> types;
  for (const NamedValue& output : call.outputs()) {
    const TensorType type = call.type(output.value);
    if (!IsInexact(type)) continue;
    names.push_back(output.name);
    types.push_back(type);
  }
  CLEAVE_RETURN_IF_ERROR(CheckNames(left, names, "cotangent"));
  for (size_t r = 0; r < names.size(); ++r) {
    const Expr* cotangent = SecondArgument(left, names, r);
    Expr zero;
    zero.kind = ExprKind::kNumber;
    zero.text = "0";
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor value,
        ReadTensorOf(cotangent == nullptr ? zero : *cotangent, types[r]));
    inputs.push_back(std::move(value));
  }
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, active, rules));
  return Derivatives(vjp.graph, rules, inputs, call.outputs().size(),
                     ".cotangent");
}

}  // namespace

absl::StatusOr<ExampleResults> EvaluateExample(const RuleSet& rules,
                                               const Item& op,
                                               const ExampleCall& example,
                                               const Item& item) {
  const Expr& left = *item.left;
  if (left.kind == ExprKind::kTransformCall) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph call, CallOf(rules, op, example.call));
    return left.text == "jvp"
               ? EvaluateJvp(rules, call, example.operands, left)
               : EvaluateVjp(rules, call, example.operands, left, *item.right);
  }
  ExampleResults results;
  if (op.kind == ItemKind::kJvp) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph call, CallOf(rules, op, example.call));
    CLEAVE_ASSIGN_OR_RETURN(results.values, Interpret(call, example.operands));
    results.names = {"y"};
    return results;
  }
  CLEAVE_ASSIGN_OR_RETURN(results.graphs, MakeCallGraphs(rules, example.call));
  CLEAVE_ASSIGN_OR_RETURN(results.values,
                          Interpret(results.graphs->body, example.operands));
  for (const NamedValue& output : results.graphs->body.outputs()) {
    results.names.push_back(output.name);
  }
  return results;
}

}  // namespace cleave
