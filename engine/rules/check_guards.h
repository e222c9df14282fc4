// Conditions on sizes that a body needs and its declaration does not ask for.
//
//   op times(x: T[n, m], w: T[m, p]) -> T[n, p]
//     { y[i, j] = sum[k](x[i, k] * w[j, k]) }   // needs m == p
//
// A call with m = 2 and p = 3 fits this declaration, and has no meaning.

#ifndef CLEAVE_ENGINE_RULES_CHECK_GUARDS_H_
#define CLEAVE_ENGINE_RULES_CHECK_GUARDS_H_

#include <optional>
#include <string>

#include "engine/ir/graph.h"
#include "engine/rules/compile_op.h"

namespace cleave {

struct UnimpliedGuard {
  ShapeGuard guard;
  std::string sizes;  // at which it does not hold: "m = 2, p = 3"
};

// The first guard of `graph`, which `compiler` made of a body, a spec or an
// override of `callable`, that says that two named sizes are equal, and does
// not follow from the declaration: from the sizes that share names, from the
// `error` clauses, and from the sizes by which the rule chose a branch. Where a
// guard is not proved, small sizes are tried; one that holds at all of them
// passes.
//
// Guards of other kinds are left to the calls that they refuse: that a size is
// large enough, or that the axes of a pack broadcast.
std::optional<UnimpliedGuard> FindUnimpliedGuard(const Graph& graph,
                                                 const Callable& callable,
                                                 OpCompiler& compiler,
                                                 const Callees& callees);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECK_GUARDS_H_
