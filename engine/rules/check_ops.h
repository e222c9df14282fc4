// The checks that elaborate: each op at symbolic signatures.

#ifndef CLEAVE_ENGINE_RULES_CHECK_OPS_H_
#define CLEAVE_ENGINE_RULES_CHECK_OPS_H_

#include <vector>

#include "engine/bind/library.h"
#include "engine/lang/diagnostic.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Types and shapes of the op's own body, spec and overrides; branches that no
// combination takes; errors that cannot occur; derivatives that are not linear.
void CheckOp(const RuleSet& rules, const Callable& callable,
             std::vector<Diagnostic>* diagnostics);
// The same of what the `override` item `item` gives the op.
void CheckOverride(const RuleSet& rules, const Callable& callable,
                   const Item& item, std::vector<Diagnostic>* diagnostics);
// A fn, at its declared types.
void CheckFunction(const RuleSet& rules, const Callable& callable,
                   std::vector<Diagnostic>* diagnostics);
// A `jvp` item: it elaborates for vectors of a float dtype, and is linear.
void CheckDerivativeItem(const RuleSet& rules, const Item& item,
                         std::vector<Diagnostic>* diagnostics);
// A `numeric` item: it elaborates to pointwise arithmetic of the result's type.
void CheckNumericItem(const RuleSet& rules, const Item& item,
                      std::vector<Diagnostic>* diagnostics);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECK_OPS_H_
