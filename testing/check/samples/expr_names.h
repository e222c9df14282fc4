// CollectNames: the names that occur in an expression of a rule.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_EXPR_NAMES_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_EXPR_NAMES_H_

#include <set>
#include <string>

#include "engine/lang/ast.h"

namespace cleave {

// Adds those of `expr`, which may be null; callees are not among them.
void CollectNames(const ExprPtr& expr, std::set<std::string>& names);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_EXPR_NAMES_H_
