// EvaluateNodes: a graph node by node, with a look at what each of them takes
// and gives.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EVALUATE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EVALUATE_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/primitive.h"
#include "ops/tensor.h"

namespace cleave::fuzz {

// A node that was evaluated. Its results may be changed.
struct EvaluatedNode {
  const Graph& graph;
  Value value;
  Primitive primitive;
  const std::vector<Tensor>& operands;
  std::vector<Tensor>& results;
};

// The outputs of `graph`, of primitives. `visit` sees each node but inputs and
// projections, in their order; a loop or a branch is one node. Errors of the
// kernels and of `visit`; Unimplemented for an extent that is found on the way.
absl::StatusOr<std::vector<Tensor>> EvaluateNodes(
    const Graph& graph, const std::vector<Tensor>& inputs,
    absl::FunctionRef<absl::Status(const EvaluatedNode&)> visit);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EVALUATE_H_
