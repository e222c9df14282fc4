// ScanLoop: a scan that is a step of its own, on the memory of its operands and
// results: each round reads its slices and writes what it stacks where they
// lie. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_SCAN_LOOP_H_
#define CLEAVE_ENGINE_RUNTIME_SCAN_LOOP_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/runtime/control_step.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_call.h"
#include "ops/tensor.h"

namespace cleave::internal_kernel {

class ScanLoop {
 public:
  // The scan of a step's graph. Nullopt where the step is another loop, or a
  // choice.
  static std::optional<ScanLoop> Make(const Graph& step);

  // The body, a region of the graph it was made of.
  const Graph& BodyOf(const Graph& step) const;

  // Runs all rounds of that graph by the body's kernel. `inputs` are its own;
  // `outputs` are dense arrays for its outputs, apart from the inputs. Errors
  // of the body, and of the budget for rounds.
  absl::Status Run(const Graph& step, const Kernel& body,
                   absl::Span<const Tensor> inputs,
                   absl::Span<const ArrayView> outputs, const DimValues& dims,
                   const KernelCallOptions& call) const;

 private:
  ScanLoop() = default;

  ControlStep control_;
};

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_SCAN_LOOP_H_
