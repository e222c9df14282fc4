// Formulas: the meaning of an op as a browser sets it, in MathML Core, which
// needs no script.
//
//   // spec y[s..] = x[s..] / (1 + abs(x[s..]))
//   SpecFormula(softsign)  // y_s = the fraction of x_s and 1 + |x_s|
//
// Packs of indices are one letter. `select` and `if` are cases, folds of sums
// and products have their signs, and a sum of ones is #{i : c}. The rule text
// of an expression that has no form here stands in `<mtext class="mono">`. All
// of it is well-formed XML. A formula is one line, however long: the page lets
// it scroll.

#ifndef CLEAVE_TOOLS_REFERENCE_FORMULA_H_
#define CLEAVE_TOOLS_REFERENCE_FORMULA_H_

#include <string>

#include "engine/lang/ast.h"

namespace cleave {

// The spec of an op: a `<math display="block">` for each equation, in the order
// of the text, and for each law. Comments are left out. Empty for an item that
// has neither.
std::string SpecFormula(const Item& item);

// One expression, an element that stands within `<math>`.
std::string ExpressionMathML(const Expr& expr);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_FORMULA_H_
