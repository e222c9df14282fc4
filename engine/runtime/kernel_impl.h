// Kernel::Impl: the plan of a Kernel, and the instances of it that are kept for
// the extents of earlier calls. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "HalideRuntime.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/cuda_blas.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_plan.h"
#include "engine/runtime/pack.h"

namespace cleave {
namespace internal_kernel {

// A buffer of a step, for known extents.
struct BufferInstance {
  int slot = 0;
  halide_type_t type;
  std::vector<halide_dimension_t> dims;
  int64_t bytes = 0;
  // From where `dims` begin to the first element.
  int64_t bytes_before = 0;
  std::vector<int64_t> shape;  // as the step sees it
};

// Indices in [0, extent): element `component` of each of `count` groups of
// `components` elements in a slot.
struct IndexRange {
  int slot = 0;
  int64_t component = 0;
  int64_t components = 1;
  int64_t count = 0;
  int64_t extent = 0;
  // An index that is the first stands for the second.
  int64_t replaced = 0;
  int64_t replacement = 0;
  int divisor_bytes = 0;                // 0: of indices
  const absl::Status* error = nullptr;  // owned by the plan
};

// `count` products of a library, one behind the other. The first one's sides
// and result begin `bytes` into their arrays, each other one's `step_bytes`
// behind the last one's.
struct ProductInstance {
  struct Place {
    int64_t bytes = 0;
    int64_t step_bytes = 0;
  };
  DeviceProduct product;  // without addresses
  int64_t count = 1;
  Place left, right, result;
};

struct StepInstance {
  bool skipped = false;  // it has no element to compute
  bool small = false;    // not worth the threads
  std::vector<IndexRange> checks;
  std::vector<int32_t> dims;
  std::vector<BufferInstance> inputs;
  std::vector<BufferInstance> outputs;
  // The products that a library computes in the kernel's place.
  std::optional<ProductInstance> product;
  // The buffers of a kernel's inputs and outputs, without addresses and dims.
  std::vector<halide_buffer_t> buffers;
};

// All that a run needs for the extents of its inputs.
struct Instance {
  std::vector<std::vector<int64_t>> input_shapes;
  std::vector<std::vector<int64_t>> output_shapes;
  std::vector<StepInstance> steps;
  DimValues dims;
  // Where each slot lies in the run's temporary memory; -1 for inputs and
  // outputs.
  std::vector<int64_t> offsets;
  // The last step that reads or writes each slot; -1 where none does.
  std::vector<int> last_steps;
  int64_t temporary_bytes = 0;
};

// The status of a step that an input of is to be finite, and is not: the run
// begins again, by the interpreter.
absl::Status NotFinite();
bool IsNotFinite(const absl::Status& status);

// Steady time in nanoseconds.
int64_t Now();

}  // namespace internal_kernel

class Kernel::Impl {
 public:
  explicit Impl(std::unique_ptr<internal_kernel::Plan> plan);

  const internal_kernel::Plan& plan() const { return *plan_; }

  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs,
                                          const RunOptions& options);
  absl::Status RunViews(absl::Span<const ArrayView> inputs,
                        absl::Span<const ArrayView> outputs,
                        const RunOptions& options);
  absl::Status RunViews(absl::Span<const ArrayView> inputs,
                        MakeOutput make_output, const RunOptions& options);

 private:
  using Instance = internal_kernel::Instance;
  using StepInstance = internal_kernel::StepInstance;
  using BufferInstance = internal_kernel::BufferInstance;

  using Arrays = absl::Span<const ArrayView>;

  // An address per slot.
  using Addresses = absl::Span<void* const>;

  // kernel_instance.cc: what extents decide.
  // The instance for these shapes; `scratch` owns one that is not kept.
  absl::StatusOr<const Instance*> FindInstance(
      Arrays inputs, std::unique_ptr<Instance>* scratch);
  absl::StatusOr<std::unique_ptr<Instance>> MakeInstance(Arrays inputs);
  absl::StatusOr<StepInstance> MakeStep(const internal_kernel::Step& step,
                                        const DimValues& dims);
  absl::Status MakeChecks(const internal_kernel::Step& step,
                          const DimValues& dims, StepInstance* instance);
  void PlanMemory(Instance* instance) const;

  // kernel_step.cc: one kernel.
  static absl::Status CheckIndices(const StepInstance& instance,
                                   Addresses addresses, KernelCall& call);
  // `memory` is null where no step is on a device.
  // Tensors of a run that its slots point to.
  using Kept = std::vector<std::pair<int, Tensor>>;
  absl::Status RunStep(const internal_kernel::Step& step,
                       const StepInstance& instance, const DimValues& dims,
                       absl::Span<void*> addresses, Kept* kept,
                       KernelCall& call, DeviceMemory* memory);
  // NotFinite() where an element of an input that is to be finite is not.
  static absl::Status CheckFinite(const internal_kernel::Step& step,
                                  const StepInstance& instance,
                                  Addresses addresses);
  static absl::Status CheckFiniteOnDevice(const internal_kernel::Step& step,
                                          const StepInstance& instance,
                                          Addresses addresses, KernelCall& call,
                                          DeviceMemory& memory);
  // By the device's library.
  static absl::Status RunProduct(const internal_kernel::Step& step,
                                 const StepInstance& instance,
                                 Addresses addresses, KernelCall& call,
                                 DeviceMemory& memory);
  // Brings to the host what a step reads there.
  static absl::Status BringOperands(const internal_kernel::Step& step,
                                    const StepInstance& instance,
                                    DeviceMemory& memory);
  // Runs all again where a step met what is not finite: by the interpreter, on
  // the inputs as they were.
  // `memory` is null as above.
  absl::Status Restart(Arrays inputs, Addresses addresses,
                       const absl::Status& why, Arrays outputs,
                       const RunOptions& options, DeviceMemory* memory) const;
  // A step without code, on the run's memory. A result that has no place yet
  // stays in its tensor.
  absl::Status RunReference(const internal_kernel::Step& step,
                            const StepInstance& instance, const DimValues& dims,
                            absl::Span<void*> addresses, Kept* kept,
                            const KernelCall& call) const;
  // One that is a scan or a choice, whose inputs are `inputs`.
  static absl::Status RunControl(const internal_kernel::Step& step,
                                 const StepInstance& instance,
                                 const DimValues& dims,
                                 absl::Span<const Tensor> inputs,
                                 absl::Span<void*> addresses, Kept* kept,
                                 const KernelCall& call);
  // A sort, a cumulative sum, or a scatter of rows.
  static absl::Status RunOwnCode(const internal_kernel::Step& step,
                                 const StepInstance& instance,
                                 const DimValues& dims, Addresses addresses,
                                 KernelCall& call);
  // The whole graph, as it was given.
  absl::StatusOr<std::vector<Tensor>> InterpretGiven(
      absl::Span<const Tensor> inputs, const absl::Status& why,
      const RunOptions& options) const;
  absl::StatusOr<std::vector<Tensor>> InterpretStep(
      const internal_kernel::Step& step, absl::Span<const Tensor> inputs,
      const DimValues& dims, const KernelCall& call) const;
  absl::StatusOr<std::vector<Tensor>> RunDynamic(
      absl::Span<const Tensor> inputs, const RunOptions& options);
  void Report(const internal_kernel::Step& step, const StepInstance& instance,
              int64_t nanoseconds, RunReport* report) const;
  static void ReportMemory(const DeviceMemory& memory, RunReport* report);

  // device_arrays.cc: the caller's arrays on a device.
  // Whether a kernel of this plan takes the array, which is on a device; `what`
  // names it.
  absl::Status CheckPlace(const ArrayView& view, absl::string_view what) const;
  // Gives the slots of such arrays their memory there, and room on the host
  // where a step of the host touches them.
  absl::Status AdoptArrays(
      const Instance& instance, Arrays inputs, Arrays outputs,
      absl::FunctionRef<absl::StatusOr<void*>(int64_t bytes)> allocate,
      absl::Span<void*> addresses, DeviceMemory& memory) const;
  // Per slot whether a step may read or write it on the host.
  std::vector<bool> TouchedByHost(const Instance& instance) const;
  // Copies an output that no step writes into the caller's memory.
  absl::Status CopyOutput(int output, const ArrayView& view,
                          Addresses addresses, DeviceMemory* memory) const;
  // Copies a tensor, whose memory is the host's, into the caller's array.
  static absl::Status CopyToArray(const Tensor& value, const ArrayView& view,
                                  const RunOptions& options);

  // kernel.cc: a run.
  absl::Status RunCopied(Arrays inputs, MakeOutput make_output,
                         const RunOptions& options);
  absl::Status CheckInputs(Arrays inputs) const;
  absl::Status CheckOutputs(const Instance& instance, Arrays outputs) const;
  absl::Status EndDeviceStep(const Instance& instance, int step, bool timed,
                             DeviceMemory& memory);
  // `outputs` may overlap `inputs`; both are checked.
  absl::Status Execute(const Instance& instance, Arrays inputs, Arrays outputs,
                       const RunOptions& options);

  int SlotOf(Value v);

  const std::unique_ptr<internal_kernel::Plan> plan_;
  std::map<Value, int> slots_;
  std::vector<int> output_slots_;  // per output of the graph
  // Per output whether a step writes into the caller's memory; else, for an
  // input or a value returned twice, it is copied.
  std::vector<bool> output_made_;

  std::atomic<const Instance*> latest_{nullptr};
  std::mutex mutex_;  // guards the rest
  std::deque<std::unique_ptr<const Instance>> instances_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_IMPL_H_
