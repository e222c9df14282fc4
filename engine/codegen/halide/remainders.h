// Remainder: the remainder of floats as C's fmod has it, as a call until the
// pipeline is lowered. Internal to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_REMAINDERS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_REMAINDERS_H_

#include "Halide.h"

namespace cleave {

// a - n b, n the quotient towards 0: exact. `a` and `b` are floats of 32 or 64
// bits.
Halide::Expr Remainder(const Halide::Expr& a, const Halide::Expr& b);

// Makes the remainders code when the pipeline is lowered: of a vector all of
// whose quotients are below 2^52 by one division, of others by the C library's
// function, lane by lane. A device calls its own function.
void LowerRemainders(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_REMAINDERS_H_
