// The parameters of a kernel, in their order.
//
// The entry point takes: an int32 per dim of KernelDims, a buffer per input, a
// buffer per output in OutputOrder. Axis 0 of a tensor is the last dimension of
// its buffer. All extents must fit in an int32.

#ifndef CLEAVE_ENGINE_CODEGEN_KERNEL_PARAMETERS_H_
#define CLEAVE_ENGINE_CODEGEN_KERNEL_PARAMETERS_H_

#include <vector>

#include "engine/ir/graph.h"
#include "ops/dim.h"

namespace cleave {

// The dims of a collapsed graph that are no numbers, in the order that they
// occur in: the parameters of its kernel.
std::vector<Dim> KernelDims(const Graph& graph);

// The order of the kernel's output buffers, as places among the graph's
// outputs: those of one shape are next to each other.
std::vector<int> OutputOrder(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_KERNEL_PARAMETERS_H_
