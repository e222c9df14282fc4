#include "engine/lang/walk_expr.h"

namespace cleave {
namespace {

using Visit = std::function<void(const ExprPtr&)>;

void ForEachExpr(const TypeExpr& type, const Visit& visit) {
  cleave::ForEachExpr(type.dtype, visit);
  for (const AxisExpr& axis : type.axes) {
    cleave::ForEachExpr(axis.size, visit);
    cleave::ForEachExpr(axis.bound, visit);
  }
}

void ForEachExpr(const std::vector<InputRange>& ranges, const Visit& visit) {
  for (const InputRange& on : ranges) {
    cleave::ForEachExpr(on.low, visit);
    cleave::ForEachExpr(on.high, visit);
  }
}

}  // namespace

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

void ForEachExprOfMeaning(const Item& item,
                          const std::function<void(const ExprPtr&)>& visit) {
  ForEachExpr(item.spec, visit);
  for (const InputDecl& input : item.inputs) ForEachExpr(input.type, visit);
  for (const AttributeDecl& attribute : item.attributes) {
    ForEachExpr(attribute.default_value, visit);
    ForEachExpr(attribute.list_length, visit);
  }
  for (const ResultDecl& result : item.results) {
    ForEachExpr(result.type, visit);
    ForEachExpr(result.condition, visit);
  }
  for (const NamedExpr& let : item.lets) ForEachExpr(let.value, visit);
  for (const ErrorClause& error : item.errors) {
    ForEachExpr(error.condition, visit);
  }
  for (const DomainClause& domain : item.domains) {
    ForEachExpr(domain.condition, visit);
  }
  for (const Law& law : item.laws) {
    ForEachExpr(law.relation, visit);
    ForEachExpr(law.condition, visit);
  }
  for (const SpecialClause& special : item.specials) {
    ForEachExpr(special.equation.value, visit);
    ForEachExpr(special.condition, visit);
  }
  for (const ApproximationClause& approximation : item.approximations) {
    ForEachExpr(approximation.bound, visit);
    ForEachExpr(approximation.condition, visit);
    ForEachExpr(approximation.on, visit);
  }
  for (const AccuracyClause& accuracy : item.accuracies) {
    for (const ExprPtr& e :
         {accuracy.bound, accuracy.condition, accuracy.eps_of}) {
      ForEachExpr(e, visit);
    }
    ForEachExpr(accuracy.on, visit);
  }
}

}  // namespace cleave
