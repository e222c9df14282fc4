// ForEachExpr: an expression and all that it consists of, in the order in which
// they stand: operands, arguments, fields, bounds of indices, regions.

#ifndef CLEAVE_ENGINE_LANG_WALK_EXPR_H_
#define CLEAVE_ENGINE_LANG_WALK_EXPR_H_

#include <functional>

#include "engine/lang/ast.h"

namespace cleave {

// Null expressions and bodies have no parts.
void ForEachExpr(const ExprPtr& expr,
                 const std::function<void(const ExprPtr&)>& visit);
void ForEachExpr(const Equation& equation,
                 const std::function<void(const ExprPtr&)>& visit);
void ForEachExpr(const BodyPtr& body,
                 const std::function<void(const ExprPtr&)>& visit);
// The parts of an op that say what it means: all but its body.
void ForEachExprOfMeaning(const Item& item,
                          const std::function<void(const ExprPtr&)>& visit);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_WALK_EXPR_H_
