// The lines of an op that are in force: those of its own body, or, in their
// place, those of `override` items.
//
//   op silu(x: T[S..]) -> T[S..] ..
//   {
//     x * sigmoid(x)
//     jvp x = ..               LinesOf(silu, StatementKind::kJvp)
//   }                            {jvp x of the override}
//   override silu              LinesOf(silu, StatementKind::kResult)
//   {                            {x * sigmoid(x) of the op}
//     jvp x = ..
//   }

#ifndef CLEAVE_ENGINE_BIND_OP_LINES_H_
#define CLEAVE_ENGINE_BIND_OP_LINES_H_

#include <string>
#include <vector>

#include "engine/bind/library.h"
#include "engine/lang/ast.h"

namespace cleave {

// A statement, and the body that it is of.
struct OpLine {
  const Statement* statement = nullptr;
  BodyPart part;
};

// In the order of the op's body, then of the override items. There is one
// kResult line, or none: then the op has no decomposition. An override stands
// in place of the jvp line of the same input, of the vjp line, of the vmap line
// with the same inputs batched, and of the result.
std::vector<OpLine> LinesOf(const Callable& callable, StatementKind kind);

// The words by which a message names a line: "the body", "the jvp of `x`",
// "the vjp", "the vmap of `x`, `w`". Lines with equal words replace one
// another.
std::string LineName(const Statement& statement);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_BIND_OP_LINES_H_
