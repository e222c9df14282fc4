// AlignAllocations: makes small allocations of kernels safe for vector loads.
//
// Halide 21 aligns an allocation of one element on the stack to that element
// alone. A vector that is loaded from it, with all but one lane masked, is
// taken for aligned to the vector nevertheless, and faults where it is not. An
// allocation of one element is made two elements long, which Halide aligns.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_ALIGN_ALLOCATIONS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_ALIGN_ALLOCATIONS_H_

#include "Halide.h"

namespace cleave {

// Aligns the allocations of all kernels of the pipeline, by a pass over the
// code that its Funcs become.
void AlignAllocations(Halide::Pipeline& pipeline);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_ALIGN_ALLOCATIONS_H_
