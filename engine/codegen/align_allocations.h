// Alignment of small allocations.
//
// Halide 21 aligns an allocation of one element on the stack to that element
// alone. A vector that is loaded from it, with all but one lane masked, is
// taken for aligned to the vector nevertheless, and faults where it is not.
// Such allocations are made two elements long, which Halide aligns.

#ifndef CLEAVE_ENGINE_CODEGEN_ALIGN_ALLOCATIONS_H_
#define CLEAVE_ENGINE_CODEGEN_ALIGN_ALLOCATIONS_H_

#include "Halide.h"

namespace cleave {

// Of all kernels of the pipeline: a pass over what its Funcs become.
void AlignAllocations(Halide::Pipeline& pipeline);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_ALIGN_ALLOCATIONS_H_
