// IndependentConjuncts: the parts of a condition that can be evaluated one by
// one without computing anything twice.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_CONJUNCTS_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_CONJUNCTS_H_

#include <vector>

#include "engine/lang/ast.h"

namespace cleave {

// Conditions that hold together where `condition` does: the sides of its
// `and`s. Sides that make the same call stay together, and so do those that
// make none. `is_moderate(a) and svd(a).s > 1 and svd(a).s < 2 and c > 0` has
// three: `is_moderate(a)`, `svd(a).s > 1 and svd(a).s < 2`, `c > 0`.
std::vector<ExprPtr> IndependentConjuncts(const ExprPtr& condition);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_CONJUNCTS_H_
