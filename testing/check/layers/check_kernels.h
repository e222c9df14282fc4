// L6: the compiled kernels of an op, against the interpreter and each other.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_KERNELS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_KERNELS_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Each call is compiled twice, by the schedules of its pattern and by plain
// loops, for all extents. The results of each kernel are those of the
// interpreter, bit by bit, or within the accuracy that the op declares; on many
// threads and on one they are the same bits; and both kernels give the same
// bits where the body neither reduces nor contracts. Pointwise ops are run at
// several lengths, which must not matter to an element.
//
// kNotChecked, naming the primitives, where all groups of all calls run by
// their reference kernels; a note where some do.
Verdict CheckKernels(const OpContext& context, const PreparedCalls& prepared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_KERNELS_H_
