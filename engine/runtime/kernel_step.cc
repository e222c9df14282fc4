// One kernel of a run, with the checks before it; runs whose extents are known
// only on the way.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/all_finite.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/region_kernels.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::AllFinite;
using internal_kernel::BufferInstance;
using internal_kernel::IndexRange;
using internal_kernel::Now;
using internal_kernel::Operand;
using internal_kernel::ScanLoop;
using internal_kernel::Step;
using internal_kernel::StepInstance;

namespace {

// The memory that empty inputs point to: a kernel may read the first row of a
// tensor without rows.
alignas(kKernelAlignment) constexpr std::byte kNothing[4096] = {};

// Indices and divisors that are looked at by one task.
constexpr int64_t kTaskIndices = 16384;

// Whether a divisor from `begin` to `end` is 0.
template <typename T>
bool AnyZeroOf(const void* elements, int64_t begin, int64_t end) {
  const T* const divisors = static_cast<const T*>(elements);
  bool zero = false;
  for (int64_t i = begin; i < end; ++i) zero |= divisors[i] == 0;
  return zero;
}

bool AnyZero(const void* elements, const IndexRange& range, int64_t begin,
             int64_t end) {
  switch (range.divisor_bytes) {
    case 1:
      return AnyZeroOf<uint8_t>(elements, begin, end);
    case 2:
      return AnyZeroOf<uint16_t>(elements, begin, end);
    case 4:
      return AnyZeroOf<uint32_t>(elements, begin, end);
    default:
      return AnyZeroOf<uint64_t>(elements, begin, end);
  }
}

// Whether an index from number `begin` to `end` is below 0 or from the extent
// on. No early exit: the loop becomes vector code.
bool AnyOutside(const void* elements, const IndexRange& range, int64_t begin,
                int64_t end) {
  const int64_t* const indices =
      static_cast<const int64_t*>(elements) + range.component;
  const auto limit = static_cast<uint64_t>(range.extent);
  const int64_t replaced = range.replaced;
  const int64_t replacement = range.replacement;
  int64_t outside = 0;
  const auto look = [&](int64_t stride) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = indices[i * stride];
      const int64_t meant = index == replaced ? replacement : index;
      outside |= static_cast<uint64_t>(meant) >= limit;
    }
  };
  if (range.components == 1) {
    look(1);
  } else {
    look(range.components);
  }
  return outside != 0;
}

// A tensor over memory that is the run's: `borrowed` then tells whether
// somebody still has it. A copy where it is not aligned as tensors are.
absl::StatusOr<Tensor> Borrow(
    DType dtype, const std::vector<int64_t>& shape, int64_t bytes,
    std::byte* address, std::vector<std::shared_ptr<std::byte>>* borrowed) {
  if (bytes > 0 && reinterpret_cast<uintptr_t>(address) % 64 == 0) {
    borrowed->emplace_back(address, [](std::byte*) {});
    return Tensor::FromMemory(dtype, shape, borrowed->back());
  }
  CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::CreateUninitialized(dtype, shape));
  if (bytes > 0) std::memcpy(tensor.mutable_data(), address, bytes);
  return tensor;
}

bool IsOneOf(const std::vector<std::shared_ptr<std::byte>>& memory,
             const Tensor& tensor) {
  return std::any_of(memory.begin(), memory.end(), [&](const auto& one) {
    return one.get() == tensor.data();
  });
}

absl::StatusOr<Tensor> Copied(const Tensor& tensor) {
  CLEAVE_ASSIGN_OR_RETURN(
      Tensor copy, Tensor::CreateUninitialized(tensor.dtype(), tensor.shape()));
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
  return copy;
}

// The elements of `tensor` in another shape, without a copy.
absl::StatusOr<Tensor> Reshaped(const Tensor& tensor,
                                std::vector<int64_t> shape) {
  if (tensor.byte_size() == 0) {
    return Tensor::Create(tensor.dtype(), std::move(shape));
  }
  const auto owner = std::make_shared<Tensor>(tensor);
  return Tensor::FromMemory(
      tensor.dtype(), std::move(shape),
      std::shared_ptr<std::byte>(owner, owner->mutable_data()));
}

}  // namespace

int64_t internal_kernel::Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status Kernel::Impl::CheckIndices(const StepInstance& instance,
                                        Addresses addresses, KernelCall& call) {
  for (const IndexRange& range : instance.checks) {
    const void* const elements = addresses[range.slot];
    const auto look = range.divisor_bytes > 0 ? AnyZero : AnyOutside;
    std::atomic<bool> bad = false;
    const auto look_at = [&](int64_t first, int64_t last) {
      const int64_t end = std::min(last * kTaskIndices, range.count);
      if (look(elements, range, first * kTaskIndices, end)) bad = true;
    };
    const int64_t tasks = (range.count + kTaskIndices - 1) / kTaskIndices;
    if (tasks <= 1) {
      look_at(0, tasks);
    } else {
      call.ParallelFor(tasks, look_at);
    }
    if (bad) return *range.error;
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::CheckFinite(const Step& step,
                                       const StepInstance& instance,
                                       Addresses addresses) {
  for (const int i : step.finite_inputs) {
    const BufferInstance& buffer = instance.inputs[i];
    if (!AllFinite(step.inputs[i].dtype, addresses[buffer.slot],
                   buffer.bytes)) {
      return internal_kernel::NotFinite();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Kernel::Impl::InterpretGiven(
    absl::Span<const Tensor> inputs, const absl::Status& why,
    const RunOptions& options) const {
  const int64_t start = Now();
  auto results =
      Interpret(*plan_->given, inputs, {{}, plan_->host_kernels, nullptr});
  if (options.report != nullptr) {
    StepReport& entry = options.report->steps.emplace_back();
    entry.kind = std::string(GroupKindName(GroupKind::kReference));
    entry.device = std::string(DeviceName(Device::kCpu));
    entry.ops = {"all of them again"};
    entry.why = std::string(why.message());
    entry.nanoseconds = Now() - start;
  }
  return results;
}

absl::StatusOr<std::vector<Tensor>> Kernel::Impl::InterpretStep(
    const Step& step, absl::Span<const Tensor> inputs, const DimValues& dims,
    const KernelCall& call) const {
  RegionFunctions functions;
  if (step.regions != nullptr) {
    functions = step.regions->Functions(call.options());
  }
  return Interpret(step.graph, inputs, {dims, plan_->host_kernels, &functions});
}

absl::Status Kernel::Impl::RunControl(const Step& step,
                                      const StepInstance& instance,
                                      const DimValues& dims,
                                      absl::Span<const Tensor> inputs,
                                      absl::Span<void*> addresses, Kept* kept,
                                      const KernelCall& call) {
  absl::InlinedVector<ArrayView, 8> outputs;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const BufferInstance& buffer = instance.outputs[i];
    void*& address = addresses[buffer.slot];
    if (address == nullptr && buffer.bytes > 0) {
      CLEAVE_ASSIGN_OR_RETURN(
          Tensor tensor,
          Tensor::CreateUninitialized(step.outputs[i].dtype, buffer.shape));
      address = tensor.mutable_data();
      kept->emplace_back(buffer.slot, std::move(tensor));
    }
    ArrayView& output = outputs.emplace_back();
    output.data = address;
    output.dtype = step.outputs[i].dtype;
    output.shape = buffer.shape;
  }
  const internal_kernel::RegionKernels& regions = *step.regions;
  if (regions.choice().has_value()) {
    const auto kernel_of = [&](const Graph& region) -> const Kernel& {
      return regions.Of(region);
    };
    return regions.choice()->Run(step.graph, kernel_of, inputs, outputs, dims,
                                 call.options());
  }
  const ScanLoop& scan = *regions.scan();
  return scan.Run(step.graph, regions.Of(scan.BodyOf(step.graph)), inputs,
                  outputs, dims, call.options());
}

absl::Status Kernel::Impl::RunReference(const Step& step,
                                        const StepInstance& instance,
                                        const DimValues& dims,
                                        absl::Span<void*> addresses, Kept* kept,
                                        const KernelCall& call) const {
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<std::byte>> borrowed;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const BufferInstance& buffer = instance.inputs[i];
    CLEAVE_ASSIGN_OR_RETURN(
        tensors.emplace_back(),
        Borrow(step.inputs[i].dtype, buffer.shape, buffer.bytes,
               static_cast<std::byte*>(addresses[buffer.slot]), &borrowed));
  }
  if (step.regions != nullptr && (step.regions->scan().has_value() ||
                                  step.regions->choice().has_value())) {
    return RunControl(step, instance, dims, tensors, addresses, kept, call);
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                          InterpretStep(step, tensors, dims, call));
  for (size_t i = 0; i < results.size(); ++i) {
    const BufferInstance& buffer = instance.outputs[i];
    CLEAVE_CHECK(static_cast<int64_t>(results[i].byte_size()) == buffer.bytes);
    if (buffer.bytes == 0) continue;
    void*& address = addresses[buffer.slot];
    if (address == nullptr) {
      // A result that lies in the run's memory would be overwritten: it is
      // copied.
      if (IsOneOf(borrowed, results[i])) {
        CLEAVE_ASSIGN_OR_RETURN(results[i], Copied(results[i]));
      }
      address = results[i].mutable_data();
      kept->emplace_back(buffer.slot, std::move(results[i]));
    } else {
      std::memcpy(address, results[i].data(), buffer.bytes);
    }
  }
  results.clear();
  tensors.clear();
  for (const std::shared_ptr<std::byte>& memory : borrowed) {
    if (memory.use_count() == 1) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the host kernel of `", absl::StrJoin(step.ops, " "),
        "` keeps an input beyond its call: what is kept must be a copy"));
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::BringOperands(const Step& step,
                                         const StepInstance& instance,
                                         DeviceMemory& memory) {
  for (const IndexRange& range : instance.checks) {
    CLEAVE_RETURN_IF_ERROR(memory.BringToHost(range.slot));
  }
  if (step.finite_checks.empty()) {
    for (const int i : step.finite_inputs) {
      CLEAVE_RETURN_IF_ERROR(memory.BringToHost(instance.inputs[i].slot));
    }
  }
  if (step.device != Device::kCpu) return absl::OkStatus();
  for (const BufferInstance& buffer : instance.inputs) {
    CLEAVE_RETURN_IF_ERROR(memory.BringToHost(buffer.slot));
  }
  for (const BufferInstance& buffer : instance.outputs) {
    memory.WrittenByHost(buffer.slot);
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunStep(const Step& step,
                                   const StepInstance& instance,
                                   const DimValues& dims,
                                   absl::Span<void*> addresses, Kept* kept,
                                   KernelCall& call, DeviceMemory* memory) {
  if (memory != nullptr) {
    CLEAVE_RETURN_IF_ERROR(BringOperands(step, instance, *memory));
  }
  CLEAVE_RETURN_IF_ERROR(CheckIndices(instance, addresses, call));
  if (instance.skipped) return absl::OkStatus();
  if (IsInterpreted(step.kind)) {
    return RunReference(step, instance, dims, addresses, kept, call);
  }
  if (step.kind == GroupKind::kTable) {
    std::memcpy(addresses[instance.outputs[0].slot], step.table->data(),
                step.table->byte_size());
    return absl::OkStatus();
  }
  if (step.finite_checks.empty()) {
    CLEAVE_RETURN_IF_ERROR(CheckFinite(step, instance, addresses));
  } else {
    CLEAVE_RETURN_IF_ERROR(
        CheckFiniteOnDevice(step, instance, addresses, call, *memory));
  }
  if (step.kind == GroupKind::kRuntime) {
    return RunOwnCode(step, instance, dims, addresses, call);
  }
  if (instance.product.has_value()) {
    return RunProduct(step, instance, addresses, call, *memory);
  }
  absl::InlinedVector<halide_buffer_t, 8> buffers(instance.buffers.begin(),
                                                  instance.buffers.end());
  absl::InlinedVector<void*, 16> arguments = {nullptr};
  for (const int32_t& dim : instance.dims) {
    arguments.push_back(const_cast<int32_t*>(&dim));
  }
  halide_buffer_t* next = buffers.data();
  absl::InlinedVector<std::vector<std::byte>, 1> rows;  // of empty inputs
  for (const auto* operands : {&instance.inputs, &instance.outputs}) {
    for (const BufferInstance& buffer : *operands) {
      void* address = addresses[buffer.slot];
      if (buffer.bytes == 0) {
        const size_t row =
            buffer.dims.empty()
                ? 0
                : std::max<int64_t>(1, buffer.shape.back()) * sizeof(double);
        address = const_cast<std::byte*>(kNothing);
        if (row > sizeof kNothing) {
          rows.emplace_back(row);
          address = rows.back().data();
        }
      }
      // An integer, since it may lie outside of what the address points to.
      next->host = reinterpret_cast<uint8_t*>(
          reinterpret_cast<uintptr_t>(address) - buffer.bytes_before);
      next->dim = const_cast<halide_dimension_t*>(buffer.dims.data());
      if (step.device != Device::kCpu) {
        CLEAVE_RETURN_IF_ERROR(
            operands == &instance.inputs
                ? memory->Read(buffer.slot, buffer.bytes, *next)
                : memory->Write(buffer.slot, buffer.bytes, *next));
      }
      arguments.push_back(next++);
    }
  }
  return call.Run(step.entry, absl::MakeSpan(arguments), instance.small);
}

void Kernel::Impl::Report(const Step& step, const StepInstance& instance,
                          int64_t nanoseconds, RunReport* report) const {
  StepReport entry;
  entry.kind = std::string(GroupKindName(step.kind));
  entry.device = std::string(DeviceName(step.device));
  entry.ops = step.ops;
  entry.why = step.why;
  if (instance.product.has_value()) entry.library = "cublas";
  for (const BufferInstance& b : instance.inputs) entry.bytes_read += b.bytes;
  for (const BufferInstance& b : instance.outputs) {
    entry.bytes_written += b.bytes;
  }
  entry.nanoseconds = nanoseconds;
  report->steps.push_back(std::move(entry));
}

void Kernel::Impl::ReportMemory(const DeviceMemory& memory, RunReport* report) {
  report->bytes_to_device = memory.bytes_to_device();
  report->bytes_to_host = memory.bytes_to_host();
  report->device_peak_bytes = memory.peak_bytes();
}

// Step by step, each value a tensor of its own: some extents are known only
// when the values before them are.
absl::StatusOr<std::vector<Tensor>> Kernel::Impl::RunDynamic(
    absl::Span<const Tensor> inputs, const RunOptions& options) {
  const int64_t start = options.report != nullptr ? Now() : 0;
  if (options.report != nullptr) *options.report = {};
  const Graph& graph = plan_->graph;
  DimValues dims;
  CLEAVE_ASSIGN_OR_RETURN(dims, BindDims(graph, inputs));
  KernelCall call(options.call);
  std::vector<void*> addresses(slots_.size());
  std::vector<Tensor> tensors(slots_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors[i] = inputs[i];
    addresses[i] = const_cast<std::byte*>(inputs[i].data());
  }
  // After the tensors: it waits for the device before they go.
  std::optional<DeviceMemory> memory;
  if (plan_->device != nullptr) {
    memory.emplace(*plan_->device, call, slots_.size());
  }
  std::vector<const ShapeGuard*> open;
  for (const ShapeGuard& guard : graph.guards()) open.push_back(&guard);
  const auto check = [&]() -> absl::Status {
    std::vector<const ShapeGuard*> still;
    for (const ShapeGuard* guard : open) {
      if (!guard->lhs.Evaluate(dims).ok() || !guard->rhs.Evaluate(dims).ok()) {
        still.push_back(guard);
        continue;
      }
      CLEAVE_RETURN_IF_ERROR(CheckGuard(*guard, dims));
    }
    open = std::move(still);
    return absl::OkStatus();
  };
  CLEAVE_RETURN_IF_ERROR(check());
  for (const Step& step : plan_->steps) {
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    const int64_t begin = options.report != nullptr ? Now() : 0;
    StepInstance instance;
    if (IsInterpreted(step.kind)) {
      std::vector<Tensor> operands;
      if (memory.has_value()) {
        for (const Operand& operand : step.inputs) {
          CLEAVE_RETURN_IF_ERROR(memory->BringToHost(slots_.at(operand.value)));
        }
      }
      for (const Operand& operand : step.inputs) {
        // A reshape of what was read: the same elements.
        CLEAVE_ASSIGN_OR_RETURN(auto shape, EvaluateShape(operand.shape, dims));
        CLEAVE_ASSIGN_OR_RETURN(
            operands.emplace_back(),
            Reshaped(tensors[slots_.at(operand.value)], std::move(shape)));
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                              InterpretStep(step, operands, dims, call));
      std::vector<DimEquation> found;
      for (size_t i = 0; i < results.size(); ++i) {
        const Operand& operand = step.outputs[i];
        for (size_t d = 0; d < operand.shape.size(); ++d) {
          found.push_back(
              {operand.shape[d], results[i].shape()[d],
               absl::StrCat("axis ", d, " of `", step.ops[0], "`")});
        }
        const int slot = slots_.at(operand.value);
        tensors[slot] = std::move(results[i]);
        addresses[slot] = tensors[slot].mutable_data();
      }
      CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(found), &dims));
      CLEAVE_RETURN_IF_ERROR(check());
    } else {
      CLEAVE_ASSIGN_OR_RETURN(instance, MakeStep(step, dims));
      for (const Operand& operand : step.outputs) {
        CLEAVE_ASSIGN_OR_RETURN(
            auto shape, EvaluateShape(graph.type(operand.value).shape, dims));
        CLEAVE_ASSIGN_OR_RETURN(
            Tensor tensor,
            Tensor::CreateUninitialized(graph.type(operand.value).dtype,
                                        std::move(shape)));
        const int slot = slots_.at(operand.value);
        tensors[slot] = std::move(tensor);
        addresses[slot] = tensors[slot].mutable_data();
      }
      const absl::Status ran =
          RunStep(step, instance, dims, absl::MakeSpan(addresses), nullptr,
                  call, memory.has_value() ? &*memory : nullptr);
      if (internal_kernel::IsNotFinite(ran)) {
        return InterpretGiven(inputs, ran, options);
      }
      CLEAVE_RETURN_IF_ERROR(ran);
    }
    if (memory.has_value() && options.report != nullptr) {
      CLEAVE_RETURN_IF_ERROR(memory->Sync());
    }
    if (options.report != nullptr) {
      Report(step, instance, Now() - begin, options.report);
    }
  }
  std::vector<Tensor> outputs;
  for (const int slot : output_slots_) {
    if (memory.has_value()) {
      CLEAVE_RETURN_IF_ERROR(memory->BringToHost(slot));
    }
    outputs.push_back(tensors[slot]);
  }
  if (options.report != nullptr) {
    if (memory.has_value()) ReportMemory(*memory, options.report);
    options.report->peak_bytes = call.report().peak_bytes;
    options.report->nanoseconds = Now() - start;
  }
  return outputs;
}

}  // namespace cleave
