// ProveEquivalent: whether a mutant of an op means the op, proved. For all
// calls of the op the mutant's graphs are the op's, once both are expanded and
// simplified: those of the call, of its derivatives of first and second order,
// and of a batch. Nothing weaker is a proof.
//
// All calls are there only where they can be counted: every attribute is an
// enum, a bool, an axis or a size, no input is variadic, every input's dtype is
// a variable or fixed, and there are few enough combinations. Sizes are
// variables; packs stand for all ranks by ranks 0, 1 and 2.

#ifndef CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_
#define CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_

#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `item` is the op as it was, of `original`. The two rule sets have one context
// (CHECK).
bool ProveEquivalent(const RuleSet& original, const RuleSet& mutant,
                     const Item& item);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_
