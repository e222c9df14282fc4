// The state of a Kernel. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "HalideRuntime.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_plan.h"

namespace cleave {
namespace internal_kernel {

// A buffer of a step, for known extents.
struct BufferInstance {
  int slot = 0;
  halide_type_t type;
  std::vector<halide_dimension_t> dims;
  int64_t bytes = 0;
  std::vector<int64_t> shape;  // as the step sees it
};

struct StepInstance {
  bool skipped = false;  // it has no element to compute
  std::vector<int32_t> dims;
  std::vector<BufferInstance> inputs;
  std::vector<BufferInstance> outputs;
  Graph graph;  // of a reference kernel, with numbers for its dims
};

// All that a run needs for the extents of its inputs.
struct Instance {
  std::vector<std::vector<int64_t>> input_shapes;
  std::vector<std::vector<int64_t>> output_shapes;
  std::vector<StepInstance> steps;
  // Where each slot lies in the run's temporary memory; -1 for inputs and
  // outputs.
  std::vector<int64_t> offsets;
  int64_t temporary_bytes = 0;
};

}  // namespace internal_kernel

class Kernel::Impl {
 public:
  explicit Impl(std::unique_ptr<internal_kernel::Plan> plan);

  const internal_kernel::Plan& plan() const { return *plan_; }

  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs,
                                          const RunOptions& options);
  absl::Status RunInto(absl::Span<const TensorView> inputs,
                       absl::Span<const MutableTensorView> outputs,
                       const RunOptions& options);

 private:
  using Instance = internal_kernel::Instance;
  using StepInstance = internal_kernel::StepInstance;
  using BufferInstance = internal_kernel::BufferInstance;

  // A run's memory: an address per slot, and what owns it.
  struct Memory {
    std::vector<void*> addresses;
    std::vector<Tensor> tensors;  // of runs with extents known only on the way
  };

  // The instance for these shapes; `scratch` owns one that is not kept.
  absl::StatusOr<const Instance*> FindInstance(
      absl::Span<const TensorView> inputs, std::unique_ptr<Instance>* scratch);
  absl::StatusOr<std::unique_ptr<Instance>> MakeInstance(
      absl::Span<const TensorView> inputs);
  absl::StatusOr<StepInstance> MakeStep(const internal_kernel::Step& step,
                                        const DimValues& dims);
  void PlanMemory(Instance* instance) const;

  absl::Status CheckInputs(absl::Span<const TensorView> inputs) const;
  absl::Status CheckOutputs(const Instance& instance,
                            absl::Span<const MutableTensorView> outputs) const;
  absl::Status RunSteps(const Instance& instance, Memory& memory,
                        KernelCall& call, const RunOptions& options);
  absl::Status RunStep(const internal_kernel::Step& step,
                       const StepInstance& instance, Memory& memory,
                       KernelCall& call);
  absl::Status RunReference(const internal_kernel::Step& step,
                            const StepInstance& instance, Memory& memory);
  absl::StatusOr<std::vector<Tensor>> RunDynamic(
      absl::Span<const Tensor> inputs, const RunOptions& options);
  void Report(const internal_kernel::Step& step, const StepInstance& instance,
              int64_t nanoseconds, RunReport* report) const;

  int SlotOf(Value v);

  const std::unique_ptr<internal_kernel::Plan> plan_;
  std::map<Value, int> slots_;
  std::vector<int> output_slots_;  // per output of the graph

  std::atomic<const Instance*> latest_{nullptr};
  std::mutex mutex_;  // guards the rest, and the contexts of reference steps
  std::deque<std::unique_ptr<const Instance>> instances_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_
