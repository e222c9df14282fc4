#include "engine/runtime/choice.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {

std::optional<Choice> Choice::Make(const Graph& step) {
  std::optional<ControlStep> control =
      ControlStep::Make(step, Primitive::kCond);
  if (!control.has_value()) return std::nullopt;
  Choice choice;
  choice.control_ = *std::move(control);
  return choice;
}

absl::Status Choice::Run(
    const Graph& step, absl::FunctionRef<const Kernel&(const Graph&)> kernel_of,
    absl::Span<const Tensor> inputs, absl::Span<const ArrayView> outputs,
    const DimValues& dims, const KernelCallOptions& call) const {
  std::vector<Tensor> moved;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<ArrayView> operands,
                          control_.Operands(inputs, dims, &moved));
  const bool taken = *static_cast<const bool*>(operands[0].data);
  const Graph& region = *step.attributes(control_.node())
                             .Get(taken ? "then" : "else")
                             .AsRegion()
                             .graph;
  std::vector<Tensor> unread;  // results that are no outputs of the step
  RunOptions options;
  options.call = call;
  return kernel_of(region).RunViews(
      absl::MakeConstSpan(operands).subspan(1),
      [&](int output, DType dtype,
          absl::Span<const int64_t> shape) -> absl::StatusOr<void*> {
        const int place = control_.results()[output];
        if (place >= 0) return outputs[place].data;
        CLEAVE_ASSIGN_OR_RETURN(
            Tensor tensor,
            Tensor::CreateUninitialized(dtype, {shape.begin(), shape.end()}));
        unread.push_back(std::move(tensor));
        return unread.back().mutable_data();
      },
      options);
}

}  // namespace cleave::internal_kernel
