// f16 and bf16 as expressions: conversions by their bit patterns, the same on
// every target, rounding to nearest even and keeping NaN. Internal to this
// folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_

#include "Halide.h"
#include "ops/dtype.h"

namespace cleave {

// Between u16 bit patterns and f32.
Halide::Expr F16ToF32(const Halide::Expr& bits);
Halide::Expr BF16ToF32(const Halide::Expr& bits);
Halide::Expr F32ToF16(const Halide::Expr& value);
Halide::Expr F32ToBF16(const Halide::Expr& value);

// An f64 rounded to odd in f32, so that rounding that to f16 or bf16 is one
// rounding (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
// 2008); an f32 as it is.
Halide::Expr ToF32ForNarrowing(const Halide::Expr& value);

// nextafter of f16 or bf16 elements (f32 expressions).
Halide::Expr NextafterOfNarrow(DType dtype, const Halide::Expr& x,
                               const Halide::Expr& y);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_
