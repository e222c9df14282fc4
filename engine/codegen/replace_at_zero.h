// Functions at zero alone: where a value is chosen only where x is 0, a
// function that keeps zeros is x. Rules choose so to have the right derivatives
// there; a kernel need not compute the function everywhere for it.
//
//   select(x == 0, expm1(x), y)  becomes  select(x == 0, x, y)
//
// Bit by bit the same: these functions give +0 for +0 and -0 for -0.

#ifndef CLEAVE_ENGINE_CODEGEN_REPLACE_AT_ZERO_H_
#define CLEAVE_ENGINE_CODEGEN_REPLACE_AT_ZERO_H_

#include "engine/ir/graph.h"

namespace cleave {

// `graph`, of primitives, with the selects rewritten. O(nodes).
Graph ReplaceAtZero(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_REPLACE_AT_ZERO_H_
