// f16 and bf16 as expressions: conversions to the same bits on every target,
// rounding to nearest even and keeping NaN. Conversions of f16 are calls until
// the pipeline is lowered: one instruction for a vector where the processor has
// it (F16C), arithmetic of bit patterns elsewhere. Internal to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_

#include "Halide.h"
#include "ops/dtype.h"

namespace cleave {

// Between u16 bit patterns and f32. A NaN becomes a quiet one.
Halide::Expr F16ToF32(const Halide::Expr& bits);
Halide::Expr BF16ToF32(const Halide::Expr& bits);
Halide::Expr F32ToF16(const Halide::Expr& value);
Halide::Expr F32ToBF16(const Halide::Expr& value);

// Makes the conversions of f16 the target's own when the pipeline is lowered.
void LowerF16Conversions(Halide::Pipeline& pipeline,
                         const Halide::Target& target);

// An f64 rounded to odd in f32, so that rounding that to f16 or bf16 is one
// rounding (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
// 2008); an f32 as it is.
Halide::Expr ToF32ForNarrowing(const Halide::Expr& value);

// a * b + c of f16 or bf16 elements (f32 expressions), rounded once.
Halide::Expr FusedMultiplyAddOfNarrow(DType dtype, const Halide::Expr& a,
                                      const Halide::Expr& b,
                                      const Halide::Expr& c);

// nextafter of f16 or bf16 elements (f32 expressions).
Halide::Expr NextafterOfNarrow(DType dtype, const Halide::Expr& x,
                               const Halide::Expr& y);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_NARROW_FLOAT_H_
