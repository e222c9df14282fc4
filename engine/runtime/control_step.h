// ControlStep: the operands and results of a step that is one loop or choice,
// where they lie. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_CONTROL_STEP_H_
#define CLEAVE_ENGINE_RUNTIME_CONTROL_STEP_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/runtime/kernel.h"
#include "ops/primitive.h"
#include "ops/tensor.h"

namespace cleave::internal_kernel {

class ControlStep {
 public:
  // The loop or choice of a step's graph. Nullopt where the step has none of
  // this primitive, or two, or returns other values than its results, each at
  // most once.
  static std::optional<ControlStep> Make(const Graph& step,
                                         Primitive primitive);

  Value node() const { return node_; }
  // For each result its number among the outputs of the step; -1 where none is.
  const std::vector<int>& results() const { return results_; }

  // The node's operands, `inputs` being the step's. Operands that are movement
  // of inputs lie in `moved`, which the result borrows.
  absl::StatusOr<std::vector<ArrayView>> Operands(
      absl::Span<const Tensor> inputs, const DimValues& dims,
      std::vector<Tensor>* moved) const;

 private:
  Value node_;
  // The graph of the operands that are no inputs of the step: movement.
  std::optional<Graph> moved_;
  // For each operand its number among the inputs, or behind them among the
  // outputs of `moved_`.
  std::vector<size_t> operands_;
  std::vector<int> results_;
};

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_CONTROL_STEP_H_
