// From the syntax tree to Docs: what the printers of expressions and of items
// share.

#ifndef CLEAVE_ENGINE_LANG_PRINT_INTERNAL_H_
#define CLEAVE_ENGINE_LANG_PRINT_INTERNAL_H_

#include <vector>

#include "engine/lang/ast.h"
#include "engine/lang/layout.h"

namespace cleave::internal {

// In parentheses if `expr` binds less tightly than `min_precedence`.
DocPtr ExprDoc(const Expr& expr, int min_precedence);
// `name[i, s..] = e`, or `e`.
DocPtr EquationOrExprDoc(const Equation& equation);
DocPtr StatementToDoc(const Statement& statement);
std::vector<StatementDoc> BodyDocs(const Body& body);
// A record that is filled like a list: after the `=` of a body.
DocPtr FilledRecordDoc(const Expr& record);
// Whether a body is written `= e`.
bool IsPlainBody(const Body& body);

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_PRINT_INTERNAL_H_
