// InlineGraph: a graph on tensors, node by node: under a trace they become
// nodes of it, in eager code of the session's graph.

#ifndef CLEAVE_TRANSFORMS_FUNCTIONAL_INLINE_GRAPH_H_
#define CLEAVE_TRANSFORMS_FUNCTIONAL_INLINE_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "transforms/functional/tensor.h"

namespace cleave::functional {

// One new tensor per output. InvalidArgument where the tensors' types are not
// those of the inputs, or the graph is of another context than the rules in
// use; the first mistake among the tensors.
absl::StatusOr<std::vector<Tensor>> InlineGraph(
    const Graph& graph, absl::Span<const Tensor> inputs);

}  // namespace cleave::functional

#endif  // CLEAVE_TRANSFORMS_FUNCTIONAL_INLINE_GRAPH_H_
