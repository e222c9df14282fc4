// ProveEquivalent: whether a mutant means what the rule means, proved. For all
// calls of the rule the mutant's graphs are the rule's, once both are expanded
// and simplified: those of the call, of its derivatives of first and second
// order, and of a batch. Nothing weaker is a proof. Choices among ties count in
// the derivatives alone, which is where they make a difference.
//
// The calls are there only where they can be counted: every attribute is an
// enum, a bool, an axis or a size, no input is variadic, every input's dtype is
// a variable or fixed, and there are few enough combinations. Sizes are
// variables; packs stand for all ranks by ranks 0, 1 and 2.
//
// Other attributes, numbers say, have no such list. They take the values at
// which the checker tries them, which meet the rule's branches, and that is a
// proof where what was changed depends on none of them: the rule is one
// function of that part then, whatever its numbers are.

#ifndef CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_
#define CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_

#include <set>
#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `item` is the op, or the `jvp` item of a primitive, as it was, of `original`;
// `changed` what the mutation replaced, and by what. The two rule sets have one
// context (CHECK).
bool ProveEquivalent(const RuleSet& original, const RuleSet& mutant,
                     const Item& item, const std::vector<ExprPtr>& changed);

// Whether a mutant of a `rewrite` item, whose dtypes are others, is the same
// rewrite: both sides type at the same choices of dtypes and are the same
// graphs there. `where x: number` is `where x: int` if the left side has no
// type but for integers.
bool AreEqualRewrites(const RuleSet& original, const RuleSet& mutant,
                      const Item& item);

// Whether every result of the op's calls is elementwise in all operands.
bool AreElementwise(const RuleSet& rules, const Item& item);

// Whether a mutant, which chooses otherwise among the ties of a max or min,
// does so where no derivative passes: the operands are integers, or depend on
// no float input, or no float result on them. The dtypes of an expression
// follow from those of the operands, all of which are tried, and numbers that
// are attributes take the values at which the checker tries them. False where
// no call of the op comes there.
bool DifferInTiesWithoutSlopes(const RuleSet& original, const RuleSet& mutant,
                               const Item& item);

// Whether a mutant in which an attribute is compared with a number by `<=`
// instead of `<`, or the like, means what the op means: it does where the calls
// at that number, of all dtypes, are equal, or refused by both. False where the
// op has another attribute whose values cannot be counted.
bool AreEqualAtNumber(const RuleSet& original, const RuleSet& mutant,
                      const Item& item, const Expr& comparison);

// Whether a mutant of a comparison, `compared`, that is strict or not, or of a
// choice among the ties of a maximum or minimum, means what the rule means: an
// operand, or its magnitude, is compared with a number, the rule is
// elementwise, and its calls are equal where the operand is that number.
// Everywhere else both compare alike. False where the op has an attribute whose
// values cannot be counted.
bool AreEqualWhereSidesAre(const RuleSet& original, const RuleSet& mutant,
                           const Item& item, const Expr& compared);

// The numbers of the one operand of an elementwise op at which a mutant may
// differ from it, that takes `compared`, a comparison or a maximum or minimum
// of `changed`, the op or a def that it calls, to be strict or not, or chooses
// the other side of a tie: the operand, or its magnitude, is compared with a
// number. Empty where they are not known.
std::vector<double> BordersOf(const RuleSet& original, const RuleSet& mutant,
                              const Item& item, const Item& changed,
                              const Expr& compared);

// The two sides of a comparison, or of a maximum or minimum, with a choice
// among ties or not; none of other expressions.
std::vector<ExprPtr> SidesOf(const Expr& e);

// The calls of defs, `callees`, in the body of an item: what a mutant of these
// defs changes there.
std::vector<ExprPtr> CallsIn(const Item& item,
                             const std::set<std::string>& callees);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_EQUIVALENCE_H_
