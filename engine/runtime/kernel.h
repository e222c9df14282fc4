// Compile: a graph of primitives becomes a Kernel, which runs on tensors.
//
//   Kernel kernel = *Compile(graph, rules);
//   std::vector<Tensor> outputs = *kernel.Run({x, y});
//
// One kernel serves all extents that its graph's dimension variables can have.
// A kernel is immutable: any number of threads may run it at once. Groups of
// nodes with no vector code run by their reference kernels, and the report of a
// run names them: nothing is slow in silence. Calls of ops that the host
// computes (host_kernel.h) run by its functions.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/codegen/device.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_cache.h"
#include "engine/runtime/kernel_call.h"
#include "ops/tensor.h"

namespace cleave {

struct CompileOptions {
  // The vector instructions that kernels may use; the host's unless given.
  std::optional<TargetLevel> level;
  // Null: DefaultKernelCache().
  KernelCache* cache = nullptr;
  // Extents that the graph fixes are left open: graphs that differ in them
  // alone share their code.
  bool generalize_extents = false;
  // Plain loops instead of the schedules by pattern: slow, to check those.
  bool plain_schedule = false;
  // Where groups run that have code for it; the others run on the CPU, and the
  // report says why.
  Device device = Device::kCpu;
  // The functions that compute composite nodes (Expand preserves them): each
  // call is a step of its own, which takes no part in the cache. A run calls
  // their functions from its own thread, and several runs may call one at once.
  HostKernels host_kernels;
};

// An array in the caller's memory. Strides count elements and may be negative
// or, of inputs, 0. `device` says where `data` lies: of a CUDA device, in its
// primary context, as the memory of CUDA's runtime, PyTorch and JAX does.
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Device device = Device::kCpu;
};
struct MutableTensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Device device = Device::kCpu;
};
// The same, where the caller keeps extents and strides beside it: nothing is
// allocated for a call.
struct ArrayView {
  void* data = nullptr;  // not written through where it is an input's
  DType dtype = DType::kF32;
  bool dense = true;  // in row-major order without gaps
  absl::Span<const int64_t> shape;
  absl::Span<const int64_t> strides;  // may be empty where it is dense
  Device device = Device::kCpu;
};

// The memory for output number `output`, for dense elements in row-major order;
// null where there are none. An error ends the run.
using MakeOutput = absl::FunctionRef<absl::StatusOr<void*>(
    int output, DType dtype, absl::Span<const int64_t> shape)>;

// Views of dense tensors.
TensorView ViewOf(const Tensor& tensor);
// Row-major strides of a shape.
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape);

// One step of a run: a kernel, a reference kernel or a host kernel.
struct StepReport {
  std::string kind;              // GroupKindName
  std::string device;            // DeviceName
  std::vector<std::string> ops;  // primitives, in order; or the host's op
  // Why a reference kernel has no vector code, or why a kernel on the CPU is
  // not on the device.
  std::string why;
  // The library of the device that computed it in a kernel's place: "cublas".
  std::string library;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t nanoseconds = 0;
};
struct RunReport {
  std::vector<StepReport> steps;
  int64_t packed_bytes = 0;     // of inputs that were made dense first
  int64_t temporary_bytes = 0;  // between kernels, at most at a time
  int64_t peak_bytes = 0;       // with what kernels allocated
  // Copies between the host and the device, and what is held there at most.
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
  int64_t device_peak_bytes = 0;
  int64_t nanoseconds = 0;
  std::string ToString() const;
};

struct RunOptions {
  KernelCallOptions call;
  RunReport* report = nullptr;  // filled if given; costs some clock reads
};

class Kernel {
 public:
  Kernel(Kernel&&);
  Kernel& operator=(Kernel&&);
  ~Kernel();

  const Graph& graph() const;
  // Kernels (sorts and loops of kernels among them), reference kernels and host
  // kernels that one run calls.
  int compiled_groups() const;
  int reference_groups() const;
  int host_groups() const;

  // One tensor per output. InvalidArgument where a dtype, rank or extent does
  // not fit; FailedPrecondition for a guard that does not hold;
  // ResourceExhausted for an extent of 2^31 or more along one axis of a kernel,
  // or memory that is refused; errors of reference and host
  // kernels; FailedPrecondition for a host kernel that keeps an input.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs,
                                          const RunOptions& options = {}) const;

  // The same into the caller's memory. Outputs must have the shapes that the
  // inputs give, are dense in row-major order, and may overlap inputs (which
  // are then copied first), but not each other (InvalidArgument). Inputs may
  // have any strides.
  //
  // A kernel for CUDA takes arrays on its device, too, dense ones
  // (Unimplemented for others): `options.call` names the device and the stream.
  // A run that copies nothing between it and the host only puts its kernels on
  // the stream, and returns: what the caller puts there next comes after.
  absl::Status RunInto(absl::Span<const TensorView> inputs,
                       absl::Span<const MutableTensorView> outputs,
                       const RunOptions& options = {}) const;

  // The same for views that keep no shapes: a caller of small kernels, who has
  // the shapes anyway, pays for no vectors.
  absl::Status RunViews(absl::Span<const ArrayView> inputs,
                        absl::Span<const ArrayView> outputs,
                        const RunOptions& options = {}) const;
  // The same, where the caller makes room as the shapes are known: called once
  // per output, in order, by this thread; before anything is written, but for
  // extents that depend on data, which are known when all is computed.
  absl::Status RunViews(absl::Span<const ArrayView> inputs,
                        MakeOutput make_output,
                        const RunOptions& options = {}) const;

  class Impl;
  explicit Kernel(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// Where the system lets no process make code (CodeStatus), all groups have
// reference kernels, which is said on stderr, once.
//
// InvalidArgument for a composite node without a host kernel (expand first),
// and for a graph of another context than that of the rules; FailedPrecondition
// where this machine has no such device; Internal where code cannot be made;
// errors of the cache.
absl::StatusOr<Kernel> Compile(const Graph& graph, const RuleSet& rules,
                               const CompileOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_H_
