// FindFloatRamps: whether a pipeline computes floats as a ramp. Internal to
// this folder.
//
// Halide 21 simplifies a vector of two elements [a, b] to ramp(a, b - a, 2),
// which is a + k (b - a) in lane k. Integers stay the same. A float b is
// rounded twice, and is NaN where a is infinite. Such vectors are made where
// two lanes read by `i % 2` or `i / 2`.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_FLOAT_RAMPS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_FLOAT_RAMPS_H_

#include "Halide.h"

namespace cleave {

// Sets `*found` when the pipeline is lowered and has such a ramp. `found`
// outlives the pipeline.
void FindFloatRamps(Halide::Pipeline& pipeline, bool* found);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_FLOAT_RAMPS_H_
