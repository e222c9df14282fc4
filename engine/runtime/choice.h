// Choice: a `cond` that is a step of its own, on the memory of its operands and
// results: the branch that is taken writes where they lie. Internal to
// engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_CHOICE_H_
#define CLEAVE_ENGINE_RUNTIME_CHOICE_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/runtime/control_step.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_call.h"
#include "ops/tensor.h"

namespace cleave::internal_kernel {

class Choice {
 public:
  // The choice of a step's graph. Nullopt where the step is a loop.
  static std::optional<Choice> Make(const Graph& step);

  // Runs the branch that is taken, by the kernel of its region. `inputs` are
  // the step's; `outputs` are dense arrays for its outputs, apart from the
  // inputs. Errors of the branch.
  absl::Status Run(const Graph& step,
                   absl::FunctionRef<const Kernel&(const Graph&)> kernel_of,
                   absl::Span<const Tensor> inputs,
                   absl::Span<const ArrayView> outputs, const DimValues& dims,
                   const KernelCallOptions& call) const;

 private:
  ControlStep control_;
};

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_CHOICE_H_
