// Evaluation of graphs of primitives on concrete tensors: by the reference
// kernels, or over the reals.
//
//   Graph graph = *ParseGraph(text, context);  // (%x: f32[n]) -> (y: f32[n])
//   Interpret(graph, {Tensor::FromDoubles(DType::kF32, {2}, {0, 1})});
//
// A scan runs its body once for each slice, a cond the region that it takes, a
// while its body as long as its condition holds (OutOfRange where it still
// does after `max` steps), all with the dimension variables of the graph around
// them. The size of a nonzero is known when it was evaluated; guards that need
// it are checked then. Bytes of tensors and steps of loops are limited, and a
// call can be cancelled (ops/budget.h): ResourceExhausted, Cancelled,
// DeadlineExceeded.

#ifndef CLEAVE_ENGINE_IR_INTERPRETER_H_
#define CLEAVE_ENGINE_IR_INTERPRETER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/ir/region_function.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

// Values of the dimension variables in the types of `graph`'s inputs, found by
// matching them against the tensors' shapes. InvalidArgument where a dtype, a
// rank or an extent does not fit, or a variable cannot be solved for.
absl::StatusOr<DimValues> BindDims(const Graph& graph,
                                   absl::Span<const Tensor> inputs);

// The same for the types of tensors: InvalidArgument for extents that are no
// numbers.
absl::StatusOr<DimValues> BindTypes(const Graph& graph,
                                    absl::Span<const TensorType> types);

struct InterpretOptions {
  // Dimension variables whose values are known beforehand, as those of a larger
  // graph that this one is a part of. The shapes of the inputs must agree with
  // them.
  DimValues dims;
  // The functions that compute the composite ops of the graph and of its
  // regions.
  HostKernels host_kernels;
  // The functions that compute regions of the graph in the interpreter's place;
  // null: there are none.
  const RegionFunctions* regions = nullptr;
};

// One tensor per output. Tensors are freed after their last use. Errors of
// BindDims and of the kernels; FailedPrecondition for a guard that does not
// hold; InvalidArgument for a composite node without a host kernel (expand
// first) or a dimension variable that neither the options, an input, a nonzero
// nor a host kernel determines. A guard on such a variable is not checked:
// nothing is left that has that extent.
//
// The graph and its context are only read: any number of threads may interpret
// a graph at once, as long as none adds to its context.
absl::StatusOr<std::vector<Tensor>> Interpret(
    const Graph& graph, absl::Span<const Tensor> inputs,
    const InterpretOptions& options = {});

// The same over the reals.
absl::StatusOr<std::vector<RealTensor>> InterpretReal(
    const Graph& graph, absl::Span<const RealTensor> inputs, int bits);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_INTERPRETER_H_
