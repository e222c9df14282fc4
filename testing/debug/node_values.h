// NodeValues: each node of a graph of primitives as the interpreter computes
// it, beside what it is over the reals.
//
//   absl::StatusOr<NodeValues> values = ComputeNodes(graph, inputs, {});
//   const NodeValue& node = values->nodes[v.id];
//   node.computed[0];      // f32[2] [1, 0]
//   node.exact[0].reals;   // 0.99999999500000000417, ..
//
// A node is evaluated over the reals on the exact values of its operands: its
// exact value has no rounding error of any node. A node that has no meaning
// over the reals (a bit pattern, a complex number) has a stand-in: the node
// evaluated in its dtype, on the exact operands rounded to theirs.

#ifndef CLEAVE_TESTING_DEBUG_NODE_VALUES_H_
#define CLEAVE_TESTING_DEBUG_NODE_VALUES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"

namespace cleave {

// Told what is being done, a line at a time.
using DebugProgress = std::function<void(absl::string_view)>;

struct NodeValue {
  // One per result of the node.
  std::vector<Tensor> computed;
  std::vector<RealTensor> exact;
  // Why `exact` is a stand-in; empty: it is none.
  std::string no_exact_value;
  // Per result the elements that no precision settled. Example: sqrt(2)^2 - 2,
  // which is 2^-bits or so with any number of bits.
  std::vector<std::vector<int64_t>> unsettled;
};

struct NodeValues {
  std::vector<NodeValue> nodes;  // by id
  // The values of the dimension variables, also of those that a nonzero
  // decides: the exact values may have other zeros.
  DimValues computed_dims;
  DimValues exact_dims;
  int bits = 0;  // of the exact values
};

// Where the inputs are exact themselves. The precision grows until two of them
// agree, as far as the work stays affordable. Errors of Interpret.
absl::StatusOr<NodeValues> ComputeNodes(const Graph& graph,
                                        absl::Span<const Tensor> inputs,
                                        const DebugProgress& progress);

// Where errors come in with the inputs, as with the carries of a loop; with
// `bits` of precision. `dims` are those of the graph around this one.
absl::StatusOr<NodeValues> ComputeNodes(const Graph& graph,
                                        absl::Span<const Tensor> computed,
                                        absl::Span<const RealTensor> exact,
                                        const DimValues& dims, int bits,
                                        const DebugProgress& progress);

// One node, which is neither an input nor a `result`, on such operands: one
// value per result. Errors of EvalReference, EvalReal and Interpret.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(
    const Graph& graph, Value node, const DimValues& dims,
    absl::Span<const Tensor> operands);
absl::StatusOr<std::vector<RealTensor>> EvaluateNode(
    const Graph& graph, Value node, const DimValues& dims,
    absl::Span<const RealTensor> operands, int bits);

// The attributes of a node, with numbers for the dimension variables, those in
// regions among them.
absl::StatusOr<Attributes> AttributesWithDims(const Graph& graph, Value node,
                                              const DimValues& dims);

// The values of a node's operands.
std::vector<Tensor> ComputedOperands(const Graph& graph, Value node,
                                     const NodeValues& values);
std::vector<RealTensor> ExactOperands(const Graph& graph, Value node,
                                      const NodeValues& values);

// The operands as they were computed, as reals.
std::vector<RealTensor> AsReals(absl::Span<const Tensor> tensors, int bits);
// Rounded to its dtype; what is no float is as it is.
Tensor Rounded(const RealTensor& tensor);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_NODE_VALUES_H_
