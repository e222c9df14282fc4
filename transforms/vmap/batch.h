// Batching, once per class of primitives: the batch stands in front of each
// value that depends on it. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VMAP_BATCH_H_
#define CLEAVE_TRANSFORMS_VMAP_BATCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// A value of the new graph, and whether the batch stands in front of it.
struct BatchedValue {
  Value value;
  bool batched = false;
};

// Copies `graph` into `builder` with `arguments` for its inputs, and returns
// its outputs. A node that does not depend on a batched argument is copied as
// it is.
absl::StatusOr<std::vector<BatchedValue>> BatchGraph(
    GraphBuilder& builder, const Graph& graph,
    absl::Span<const BatchedValue> arguments, const Dim& batch,
    RuleTable& rules);

// `type` with the batch in front.
TensorType WithBatch(const TensorType& type, const Dim& batch);
// The value with the batch in front: repeated, where it does not depend on it.
Value InFront(GraphBuilder& builder, BatchedValue value, const Dim& batch);

// A primitive node to batch, at least one operand of which is batched.
struct BatchNode {
  GraphBuilder& builder;
  const Dim& batch;
  RuleTable& rules;
  Primitive primitive;
  const Attributes& attributes;
  std::vector<BatchedValue> operands;
  std::vector<TensorType> types;  // of the operands, without the batch

  bool batched(int i) const { return operands[i].batched; }
  Value value(int i) const { return operands[i].value; }
  // Operand i with the batch in front.
  Value front(int i) const { return InFront(builder, operands[i], batch); }
  // The node with these attributes, on operands that all have the batch.
  absl::StatusOr<Value> Same(const Attributes& changed) const;
};

using BatchedResults = absl::StatusOr<std::vector<BatchedValue>>;

// One function per class; the results are in the node's order.
BatchedResults BatchPointwise(const BatchNode& node);
BatchedResults BatchMovement(const BatchNode& node);
BatchedResults BatchWindow(const BatchNode& node);
BatchedResults BatchReduction(const BatchNode& node);
BatchedResults BatchContraction(const BatchNode& node);
BatchedResults BatchScan(const BatchNode& node);
BatchedResults BatchSort(const BatchNode& node);
BatchedResults BatchRandom(const BatchNode& node);
BatchedResults BatchGather(const BatchNode& node);
BatchedResults BatchScatter(const BatchNode& node);
BatchedResults BatchControl(const BatchNode& node);
// Dispatches on the class.
BatchedResults BatchPrimitive(const BatchNode& node);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_BATCH_H_
