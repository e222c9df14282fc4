#include "testing/check/samples/expr_names.h"

namespace cleave {

void CollectNames(const ExprPtr& expr, std::set<std::string>& names) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kName) names.insert(expr->text);
  for (const ExprPtr& child : expr->children) CollectNames(child, names);
  for (const NamedExpr& named : expr->named) CollectNames(named.value, names);
  for (const Equation& field : expr->fields) CollectNames(field.value, names);
}

}  // namespace cleave
