// Checks of items that are no ops: derivatives of primitives, numerics.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/rules/check_ops.h"
#include "engine/rules/linearity.h"
#include "engine/rules/place_by_line.h"
#include "engine/rules/rule_set_impl.h"

namespace cleave {

void CheckDerivativeItem(const RuleSet& rules, const Item& item,
                         std::vector<Diagnostic>* diagnostics) {
  const std::optional<Primitive> primitive = FindPrimitive(item.name);
  if (!primitive.has_value()) return;
  Context& context = *rules.context();
  Signature signature;
  signature.op = ToOpId(*primitive);
  std::vector<bool> active;
  for (size_t i = 0; i < item.parameters.size(); ++i) {
    // select's condition is a bool.
    const bool is_condition = *primitive == Primitive::kSelect && i == 0;
    signature.operands.push_back(context.Intern(TensorType{
        is_condition ? DType::kBool : DType::kF32, {Dim::Variable("n")}}));
    active.push_back(!is_condition);
  }
  // Operands of unknown coefficients are left inactive one by one.
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    std::vector<bool> one(active.size());
    one[i] = true;
    const absl::StatusOr<const Graph*> graph =
        rules.PrimitiveJvp(signature, one);
    if (!graph.ok()) {
      if (graph.status().code() == absl::StatusCode::kUnimplemented) continue;
      Diagnostic d{DiagnosticKind::kType, std::string(graph.status().message()),
                   item.body->range, "", ""};
      PlaceByLine(rules.SourceOf(item), &d);
      diagnostics->push_back(std::move(d));
      return;
    }
    std::vector<Linearity> inputs(active.size() + 1, Linearity::kConstant);
    inputs.push_back(Linearity::kLinear);
    const auto linearity = LinearityOf(**graph, inputs, rules);
    if (!linearity.ok()) continue;
    if ((*linearity)[0] == Linearity::kNonlinear ||
        (*linearity)[0] == Linearity::kConstant) {
      diagnostics->push_back({DiagnosticKind::kNotLinear,
                              absl::StrCat("the derivative is not linear in `d",
                                           item.parameters[i], "`"),
                              item.body->range, "", ""});
      return;
    }
  }
}

void CheckNumericItem(const RuleSet& rules, const Item& item,
                      std::vector<Diagnostic>* diagnostics) {
  const auto report = [&](SourceRange range, std::string message,
                          DiagnosticKind kind = DiagnosticKind::kType) {
    Diagnostic d{kind, std::move(message), range, "", ""};
    PlaceByLine(rules.SourceOf(item), &d);
    diagnostics->push_back(std::move(d));
  };
  if (item.inputs.empty()) {
    report(item.range, "a numeric has the operands of its primitive");
    return;
  }
  const Expr& written = *item.inputs[0].type.dtype;
  const absl::StatusOr<DType> dtype = ParseDType(written.text);
  if (!dtype.ok()) {
    report(written.range, "the dtype of a numeric is fixed, like `f32`");
    return;
  }
  const absl::StatusOr<const NumericBody*> body =
      rules.Numeric(*FindPrimitive(item.name), *dtype);
  if (!body.ok()) {
    report(item.body->range, std::string(body.status().message()),
           body.status().code() == absl::StatusCode::kResourceExhausted
               ? DiagnosticKind::kLimit
               : DiagnosticKind::kType);
  }
}

}  // namespace cleave
