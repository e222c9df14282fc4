// The checks of names: what is not defined, defined twice or never used, and
// calls that nothing answers to. No types, no elaboration.

#ifndef CLEAVE_ENGINE_RULES_CHECK_NAMES_H_
#define CLEAVE_ENGINE_RULES_CHECK_NAMES_H_

#include <vector>

#include "engine/bind/library.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"

namespace cleave {

void CheckNames(const Library& library, const Item& item,
                std::vector<Diagnostic>* diagnostics);

// The names of defs and ops that an item calls in bodies and clauses, each with
// the place of one call.
std::vector<NamedExpr> CallsOf(const Item& item);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECK_NAMES_H_
