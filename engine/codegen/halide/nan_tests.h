// NanTest: whether a float is NaN, as a call that Halide's simplifier does not
// know. Internal to this folder.
//
// Halide 21 drops strict_eq(x, x) as true in the tails of its loops, and makes
// is_nan of a vector of one constant a scalar: an internal error where a let
// names it.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_NAN_TESTS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_NAN_TESTS_H_

#include "Halide.h"

namespace cleave {

// A bool. `a` is a float of 32 or 64 bits.
Halide::Expr NanTest(const Halide::Expr& a);

// Makes the tests Halide's own when the pipeline is lowered, before other such
// passes that are added.
void LowerNanTests(Halide::Pipeline& pipeline);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_NAN_TESTS_H_
