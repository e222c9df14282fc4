#include "engine/runtime/kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/pack.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::BufferInstance;
using internal_kernel::Instance;
using internal_kernel::Now;
using internal_kernel::Operand;
using internal_kernel::Plan;
using internal_kernel::Step;
using internal_kernel::StepInstance;

TensorView ViewOf(const Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(),
          DenseStrides(tensor.shape())};
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

Kernel::Impl::Impl(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {
  for (const NamedValue& input : plan_->graph.inputs()) SlotOf(input.value);
  for (const Step& step : plan_->steps) {
    for (const Operand& operand : step.inputs) SlotOf(operand.value);
    for (const Operand& operand : step.outputs) SlotOf(operand.value);
  }
  for (const NamedValue& output : plan_->graph.outputs()) {
    const int slot = SlotOf(output.value);
    const bool again =
        std::count(output_slots_.begin(), output_slots_.end(), slot) > 0;
    const bool is_input = slot < static_cast<int>(plan_->graph.inputs().size());
    output_slots_.push_back(slot);
    output_made_.push_back(!again && !is_input);
  }
}

namespace internal_kernel {

namespace {
constexpr char kNotFinite[] = "cleave/not_finite";
}  // namespace

absl::Status NotFinite() {
  absl::Status status = absl::AbortedError(
      "a weight is infinite or NaN: beside zeros that stand for padding it "
      "would make NaN of what is absent");
  status.SetPayload(kNotFinite, absl::Cord());
  return status;
}

bool IsNotFinite(const absl::Status& status) {
  return !status.ok() && status.GetPayload(kNotFinite).has_value();
}

}  // namespace internal_kernel

int Kernel::Impl::SlotOf(Value v) {
  return slots_.try_emplace(v, static_cast<int>(slots_.size())).first->second;
}

absl::Status Kernel::Impl::CheckInputs(Arrays inputs) const {
  const Graph& graph = plan_->graph;
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors are given for ",
                     graph.inputs().size(), " inputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArrayView& view = inputs[i];
    const NamedValue& input = graph.inputs()[i];
    const TensorType& type = graph.type(input.value);
    const auto fail = [&](const auto&... parts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input `", input.name, "` ", parts...,
                       ", but is declared ", type.ToString()));
    };
    if (view.dtype != type.dtype) {
      return fail("is of dtype ", DTypeName(view.dtype));
    }
    if (view.shape.size() != type.shape.size()) {
      return fail("has ", view.shape.size(), " axes");
    }
    if (!view.dense && view.strides.size() != view.shape.size()) {
      return fail("has ", view.strides.size(), " strides");
    }
    bool empty = false;
    for (const int64_t extent : view.shape) {
      if (extent < 0) return fail("has the extent ", extent);
      empty |= extent == 0;
    }
    if (view.data == nullptr && !empty) return fail("has no data");
    if (view.device != Device::kCpu) {
      CLEAVE_RETURN_IF_ERROR(
          CheckPlace(view, absl::StrCat("the input `", input.name, "`")));
    }
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::CheckOutputs(const Instance& instance,
                                        Arrays outputs) const {
  const Graph& graph = plan_->graph;
  if (outputs.size() != graph.outputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(outputs.size(), " tensors are given for ",
                     graph.outputs().size(), " outputs"));
  }
  absl::InlinedVector<ByteRange, 8> ranges;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ArrayView& view = outputs[i];
    const NamedValue& output = graph.outputs()[i];
    const DType dtype = graph.type(output.value).dtype;
    if (view.dtype != dtype ||
        view.shape != absl::MakeConstSpan(instance.output_shapes[i]) ||
        (!view.dense && view.strides.size() != view.shape.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output `", output.name, "` is ", DTypeName(dtype),
                       "[", absl::StrJoin(instance.output_shapes[i], ", "),
                       "], but ", DTypeName(view.dtype), "[",
                       absl::StrJoin(view.shape, ", "), "] is given"));
    }
    if (!view.dense) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the output `", output.name, "` is not dense in row-major order"));
    }
    if (view.device != Device::kCpu) {
      CLEAVE_RETURN_IF_ERROR(
          CheckPlace(view, absl::StrCat("the output `", output.name, "`")));
    }
    ranges.push_back(RangeOf(view));
    if (view.data == nullptr && DenseBytes(view) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output `", output.name, "` has no data"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (!Overlaps(ranges[i], ranges[j])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the outputs `", graph.outputs()[j].name, "` and `",
                       output.name, "` overlap in memory"));
    }
  }
  return absl::OkStatus();
}

// Outputs go to the caller as they are made, and what no later step reads gives
// its memory back.
absl::Status Kernel::Impl::EndDeviceStep(const Instance& instance, int step,
                                         bool timed, DeviceMemory& memory) {
  const StepInstance& done = instance.steps[step];
  for (const BufferInstance& buffer : done.outputs) {
    if (absl::c_linear_search(output_slots_, buffer.slot)) {
      CLEAVE_RETURN_IF_ERROR(memory.Deliver(buffer.slot));
    }
  }
  for (const auto* operands : {&done.inputs, &done.outputs}) {
    for (const BufferInstance& buffer : *operands) {
      if (instance.last_steps[buffer.slot] == step) memory.Free(buffer.slot);
    }
  }
  return timed ? memory.Sync() : absl::OkStatus();
}

absl::Status Kernel::Impl::Execute(const Instance& instance, Arrays inputs,
                                   Arrays outputs, const RunOptions& options) {
  KernelCall call(options.call);
  // The memory that this run took from its allocator.
  struct Owned {
    ~Owned() {
      for (void* address : addresses) KernelCall::Free(address);
    }
    absl::InlinedVector<void*, 4> addresses;
  } owned;
  const auto allocate = [&](int64_t bytes) -> absl::StatusOr<void*> {
    void* address = call.Allocate(bytes);
    if (address == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the allocator refused ", bytes, " bytes"));
    }
    owned.addresses.push_back(address);
    return address;
  };
  absl::InlinedVector<void*, 16> addresses(slots_.size(), nullptr);
  if (instance.temporary_bytes > 0) {
    CLEAVE_ASSIGN_OR_RETURN(void* temporary,
                            allocate(instance.temporary_bytes));
    for (size_t slot = 0; slot < addresses.size(); ++slot) {
      if (instance.offsets[slot] < 0) continue;
      addresses[slot] =
          static_cast<std::byte*>(temporary) + instance.offsets[slot];
    }
  }
  absl::InlinedVector<ByteRange, 8> written;
  for (const ArrayView& output : outputs) written.push_back(RangeOf(output));
  int64_t packed = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].device != Device::kCpu) continue;
    bool copy = !inputs[i].dense;
    const ByteRange read = RangeOf(inputs[i]);
    for (const ByteRange& range : written) copy |= Overlaps(read, range);
    // Inputs come first among the slots, in their order.
    addresses[i] = inputs[i].data;
    if (copy) {
      const int64_t bytes = DenseBytes(inputs[i]);
      CLEAVE_ASSIGN_OR_RETURN(addresses[i],
                              allocate(std::max<int64_t>(bytes, 1)));
      Pack(inputs[i], addresses[i]);
      packed += bytes;
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].device != Device::kCpu) continue;
    if (output_made_[o]) addresses[output_slots_[o]] = outputs[o].data;
  }
  std::optional<DeviceMemory> memory;
  if (plan_->device != nullptr) {
    memory.emplace(*plan_->device, call, slots_.size());
    CLEAVE_RETURN_IF_ERROR(AdoptArrays(instance, inputs, outputs, allocate,
                                       absl::MakeSpan(addresses), *memory));
  }
  DeviceMemory* const on_device = memory.has_value() ? &*memory : nullptr;
  std::vector<std::pair<int, Tensor>> kept;  // of host kernels, by slot
  RunReport* const report = options.report;
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const int64_t start = report != nullptr ? Now() : 0;
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    const absl::Status ran =
        RunStep(plan_->steps[s], instance.steps[s], instance.dims,
                absl::MakeSpan(addresses), &kept, call, on_device);
    if (internal_kernel::IsNotFinite(ran)) {
      return Restart(inputs, addresses, ran, outputs, options, on_device);
    }
    CLEAVE_RETURN_IF_ERROR(ran);
    if (memory.has_value()) {
      CLEAVE_RETURN_IF_ERROR(EndDeviceStep(instance, static_cast<int>(s),
                                           report != nullptr, *memory));
    }
    if (report != nullptr) {
      Report(plan_->steps[s], instance.steps[s], Now() - start, report);
    }
    for (size_t k = kept.size(); k-- > 0;) {
      const int slot = kept[k].first;
      if (instance.last_steps[slot] > static_cast<int>(s) ||
          absl::c_linear_search(output_slots_, slot)) {
        continue;
      }
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (output_made_[o]) continue;
    CLEAVE_RETURN_IF_ERROR(
        CopyOutput(static_cast<int>(o), outputs[o], addresses, on_device));
  }
  if (report != nullptr) {
    if (memory.has_value()) ReportMemory(*memory, report);
    report->packed_bytes = packed;
    report->temporary_bytes = instance.temporary_bytes;
    report->peak_bytes = call.report().peak_bytes;
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::Restart(Arrays inputs, Addresses addresses,
                                   const absl::Status& why, Arrays outputs,
                                   const RunOptions& options,
                                   DeviceMemory* memory) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArrayView& input = inputs[i];
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::CreateUninitialized(input.dtype,
                                    {input.shape.begin(), input.shape.end()}));
    if (tensor.byte_size() > 0 && addresses[i] == nullptr) {
      CLEAVE_RETURN_IF_ERROR(
          memory->BringToHost(static_cast<int>(i), tensor.mutable_data()));
    } else if (tensor.byte_size() > 0) {
      if (memory != nullptr) {
        CLEAVE_RETURN_IF_ERROR(memory->BringToHost(static_cast<int>(i)));
      }
      std::memcpy(tensor.mutable_data(), addresses[i], tensor.byte_size());
    }
    tensors.push_back(std::move(tensor));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          InterpretGiven(tensors, why, options));
  for (size_t o = 0; o < results.size(); ++o) {
    CLEAVE_RETURN_IF_ERROR(CopyToArray(results[o], outputs[o], options));
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunViews(absl::Span<const ArrayView> inputs,
                                    absl::Span<const ArrayView> outputs,
                                    const RunOptions& options) {
  const int64_t start = options.report != nullptr ? Now() : 0;
  if (options.report != nullptr) *options.report = {};
  if (!plan_->static_shapes) {
    return absl::UnimplementedError(
        "the extents of the outputs are known only when they are computed: "
        "the run has to make room for them");
  }
  CLEAVE_RETURN_IF_ERROR(CheckInputs(inputs));
  std::unique_ptr<Instance> scratch;
  CLEAVE_ASSIGN_OR_RETURN(const Instance* instance,
                          FindInstance(inputs, &scratch));
  CLEAVE_RETURN_IF_ERROR(CheckOutputs(*instance, outputs));
  CLEAVE_RETURN_IF_ERROR(Execute(*instance, inputs, outputs, options));
  if (options.report != nullptr) options.report->nanoseconds = Now() - start;
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunViews(absl::Span<const ArrayView> inputs,
                                    MakeOutput make_output,
                                    const RunOptions& options) {
  CLEAVE_RETURN_IF_ERROR(CheckInputs(inputs));
  if (!plan_->static_shapes) return RunCopied(inputs, make_output, options);
  const int64_t start = options.report != nullptr ? Now() : 0;
  if (options.report != nullptr) *options.report = {};
  std::unique_ptr<Instance> scratch;
  CLEAVE_ASSIGN_OR_RETURN(const Instance* instance,
                          FindInstance(inputs, &scratch));
  const Graph& graph = plan_->graph;
  absl::InlinedVector<ArrayView, 4> outputs;
  for (size_t o = 0; o < instance->output_shapes.size(); ++o) {
    ArrayView& output = outputs.emplace_back();
    output.dtype = graph.type(graph.outputs()[o].value).dtype;
    output.shape = instance->output_shapes[o];
    CLEAVE_ASSIGN_OR_RETURN(
        output.data,
        make_output(static_cast<int>(o), output.dtype, output.shape));
  }
  CLEAVE_RETURN_IF_ERROR(CheckOutputs(*instance, outputs));
  CLEAVE_RETURN_IF_ERROR(Execute(*instance, inputs, outputs, options));
  if (options.report != nullptr) options.report->nanoseconds = Now() - start;
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunCopied(Arrays inputs, MakeOutput make_output,
                                     const RunOptions& options) {
  std::vector<Tensor> tensors;
  for (const ArrayView& input : inputs) {
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::CreateUninitialized(input.dtype,
                                    {input.shape.begin(), input.shape.end()}));
    if (tensor.byte_size() > 0) Pack(input, tensor.mutable_data());
    tensors.push_back(std::move(tensor));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunDynamic(tensors, options));
  for (size_t o = 0; o < outputs.size(); ++o) {
    CLEAVE_ASSIGN_OR_RETURN(void* const data,
                            make_output(static_cast<int>(o), outputs[o].dtype(),
                                        outputs[o].shape()));
    if (outputs[o].byte_size() == 0) continue;
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room was made for output ", o));
    }
    std::memcpy(data, outputs[o].data(), outputs[o].byte_size());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Kernel::Impl::Run(
    absl::Span<const Tensor> inputs, const RunOptions& options) {
  if (!plan_->static_shapes) return RunDynamic(inputs, options);
  absl::InlinedVector<ArrayView, 4> from;
  for (const Tensor& tensor : inputs) from.push_back(ArrayOf(tensor));
  std::vector<Tensor> outputs;
  outputs.reserve(output_slots_.size());
  CLEAVE_RETURN_IF_ERROR(RunViews(
      from,
      [&](int output, DType dtype,
          absl::Span<const int64_t> shape) -> absl::StatusOr<void*> {
        // Each element is written by a step, or copied.
        CLEAVE_ASSIGN_OR_RETURN(
            Tensor tensor,
            Tensor::CreateUninitialized(dtype, {shape.begin(), shape.end()}));
        outputs.push_back(std::move(tensor));
        return outputs.back().mutable_data();
      },
      options));
  return outputs;
}

std::string RunReport::ToString() const {
  std::string text;
  for (const StepReport& step : steps) {
    absl::StrAppend(
        &text,
        absl::StrFormat("%10.1f us  %-11s %10d bytes read %10d written  %s\n",
                        step.nanoseconds / 1e3, step.kind, step.bytes_read,
                        step.bytes_written, absl::StrJoin(step.ops, " ")));
    if (!step.library.empty()) {
      absl::StrAppend(&text, "              by ", step.library, "\n");
    }
    if (!step.why.empty()) {
      const bool kernel = step.kind != GroupKindName(GroupKind::kReference) &&
                          step.kind != GroupKindName(GroupKind::kHost);
      absl::StrAppend(&text, "              ",
                      kernel ? "on the CPU: " : "no kernel: ", step.why, "\n");
    }
  }
  absl::StrAppend(
      &text, absl::StrFormat("%10.1f us  in all, %d kernels; %d bytes between "
                             "them, %d at most, %d packed\n",
                             nanoseconds / 1e3, steps.size(), temporary_bytes,
                             peak_bytes, packed_bytes));
  if (device_peak_bytes > 0) {
    absl::StrAppend(
        &text,
        absl::StrFormat("%10s     %d bytes to the device, %d back, %d "
                        "there at most\n",
                        "", bytes_to_device, bytes_to_host, device_peak_bytes));
  }
  return text;
}

Kernel::Kernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Kernel::Kernel(Kernel&&) = default;
Kernel& Kernel::operator=(Kernel&&) = default;
Kernel::~Kernel() = default;

const Graph& Kernel::graph() const { return impl_->plan().graph; }

int Kernel::compiled_groups() const {
  int count = 0;
  for (const Step& step : impl_->plan().steps) {
    count += HasCode(step.kind) || step.kind == GroupKind::kRuntime ||
             step.kind == GroupKind::kLoop;
  }
  return count;
}

int Kernel::reference_groups() const {
  int count = 0;
  for (const Step& step : impl_->plan().steps) {
    count += step.kind == GroupKind::kReference;
  }
  return count;
}

int Kernel::host_groups() const {
  int count = 0;
  for (const Step& step : impl_->plan().steps) {
    count += step.kind == GroupKind::kHost;
  }
  return count;
}

absl::StatusOr<std::vector<Tensor>> Kernel::Run(
    absl::Span<const Tensor> inputs, const RunOptions& options) const {
  for (const Tensor& input : inputs) CLEAVE_RETURN_IF_ERROR(input.status());
  return impl_->Run(inputs, options);
}

absl::Status Kernel::RunInto(absl::Span<const TensorView> inputs,
                             absl::Span<const MutableTensorView> outputs,
                             const RunOptions& options) const {
  absl::InlinedVector<ArrayView, 4> from;
  for (const TensorView& view : inputs) from.push_back(ArrayOf(view));
  absl::InlinedVector<ArrayView, 4> to;
  for (const MutableTensorView& view : outputs) to.push_back(ArrayOf(view));
  return impl_->RunViews(from, to, options);
}

absl::Status Kernel::RunViews(absl::Span<const ArrayView> inputs,
                              absl::Span<const ArrayView> outputs,
                              const RunOptions& options) const {
  return impl_->RunViews(inputs, outputs, options);
}

absl::Status Kernel::RunViews(absl::Span<const ArrayView> inputs,
                              MakeOutput make_output,
                              const RunOptions& options) const {
  return impl_->RunViews(inputs, make_output, options);
}

}  // namespace cleave
