// Comparisons of elements, by calls that Halide's simplifier does not fold
// where an operand may be NaN. Internal to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_COMPARISONS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_COMPARISONS_H_

#include "Halide.h"
#include "ops/primitive.h"

namespace cleave {

// The bits of a number, as an unsigned integer.
Halide::Expr Bits(const Halide::Expr& a);

// Bools of numbers of one type; false where one is NaN.
Halide::Expr Less(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr LessEqual(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr Equal(const Halide::Expr& a, const Halide::Expr& b);

// The comparison `primitive`. Coordinates that were made integers of 64 bits
// are compared as they are.
Halide::Expr Comparison(Primitive primitive, const Halide::Expr& a,
                        const Halide::Expr& b);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_COMPARISONS_H_
