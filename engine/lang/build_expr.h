// Expressions made by programs, without places.

#ifndef CLEAVE_ENGINE_LANG_BUILD_EXPR_H_
#define CLEAVE_ENGINE_LANG_BUILD_EXPR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/lang/ast.h"

namespace cleave::build_expr {

inline ExprPtr Of(ExprKind kind, std::string text,
                  std::vector<ExprPtr> children = {}) {
  auto expr = std::make_shared<Expr>();
  expr->kind = kind;
  expr->text = std::move(text);
  expr->children = std::move(children);
  return expr;
}
inline ExprPtr Name(std::string text) {
  return Of(ExprKind::kName, std::move(text));
}
inline ExprPtr Number(std::string text) {
  return Of(ExprKind::kNumber, std::move(text));
}
inline ExprPtr Minus(ExprPtr x) {
  return Of(ExprKind::kUnary, "-", {std::move(x)});
}
inline ExprPtr Binary(ExprPtr a, std::string text, ExprPtr b) {
  return Of(ExprKind::kBinary, std::move(text), {std::move(a), std::move(b)});
}
inline ExprPtr Call(std::string callee, std::vector<ExprPtr> arguments,
                    std::vector<NamedExpr> named = {}) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kCall;
  expr->text = std::move(callee);
  expr->children = std::move(arguments);
  expr->named = std::move(named);
  return expr;
}
inline ExprPtr If(ExprPtr condition, ExprPtr then, ExprPtr otherwise) {
  return Of(ExprKind::kIf, "",
            {std::move(condition), std::move(then), std::move(otherwise)});
}

}  // namespace cleave::build_expr

#endif  // CLEAVE_ENGINE_LANG_BUILD_EXPR_H_
