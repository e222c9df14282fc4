// The layer of host kernels: the function by which a host computes an op,
// against the op's body.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_HOST_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_HOST_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Runs the kernel that `context.host_kernels` has for the op. Pointwise ops at
// the points of L3 and L4, at lengths around those of vectors, and from the
// points with the largest errors on to where they grow (`prepared`); all ops at
// tensors of each pattern and signature (`concrete`).
Verdict CheckHostKernel(const OpContext& context, const PreparedCalls& prepared,
                        const PreparedCalls& concrete);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_HOST_H_
