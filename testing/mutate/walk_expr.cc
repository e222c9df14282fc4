#include "testing/mutate/walk_expr.h"

namespace cleave {

void ForEachExpr(const ExprPtr& expr,
                 const std::function<void(const ExprPtr&)>& visit) {
  if (expr == nullptr) return;
  visit(expr);
  for (const ExprPtr& child : expr->children) ForEachExpr(child, visit);
  for (const NamedExpr& named : expr->named) ForEachExpr(named.value, visit);
  for (const ExprPtr& second : expr->seconds) ForEachExpr(second, visit);
  for (const NamedExpr& named : expr->named_seconds) {
    ForEachExpr(named.value, visit);
  }
  for (const Equation& field : expr->fields) ForEachExpr(field, visit);
  for (const Binder& binder : expr->binders) ForEachExpr(binder.bound, visit);
  ForEachExpr(expr->body, visit);
  ForEachExpr(expr->else_body, visit);
}

void ForEachExpr(const Equation& equation,
                 const std::function<void(const ExprPtr&)>& visit) {
  for (const Binder& index : equation.indices) ForEachExpr(index.bound, visit);
  ForEachExpr(equation.value, visit);
}

void ForEachExpr(const BodyPtr& body,
                 const std::function<void(const ExprPtr&)>& visit) {
  if (body == nullptr) return;
  for (const Statement& statement : body->statements) {
    ForEachExpr(statement.equation, visit);
  }
}

}  // namespace cleave
