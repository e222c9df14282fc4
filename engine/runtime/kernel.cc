#include "engine/runtime/kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/pack.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::BufferInstance;
using internal_kernel::Instance;
using internal_kernel::Operand;
using internal_kernel::Plan;
using internal_kernel::Step;
using internal_kernel::StepInstance;

namespace {

// Instances that a kernel keeps: beyond them each call makes its own.
constexpr size_t kMaxInstances = 256;

// What empty inputs point to: kernels may read the first row of what has none.
alignas(kKernelAlignment) constexpr std::byte kNothing[4096] = {};

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

halide_type_t TypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * ByteSize(dtype));
  if (dtype == DType::kF32 || dtype == DType::kF64) {
    return halide_type_t(halide_type_float, bits);
  }
  if (IsInt(dtype) && IsSigned(dtype)) {
    return halide_type_t(halide_type_int, bits);
  }
  return halide_type_t(halide_type_uint, bits);  // f16 and bf16 by their bits
}

// The number of elements; ResourceExhausted beyond what buffers hold.
absl::StatusOr<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent != 0 && count > std::numeric_limits<int64_t>::max() / extent) {
      return absl::ResourceExhaustedError("a tensor has too many elements");
    }
    count *= extent;
  }
  return count;
}

absl::StatusOr<BufferInstance> MakeBuffer(int slot, const Operand& operand,
                                          const DimValues& dims, bool input) {
  BufferInstance buffer;
  buffer.slot = slot;
  buffer.type = TypeOf(operand.dtype);
  CLEAVE_ASSIGN_OR_RETURN(buffer.shape, EvaluateShape(operand.shape, dims));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t count, CountElements(buffer.shape));
  buffer.bytes = count * ByteSize(operand.dtype);
  int64_t stride = 1;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    // An empty input has one row, which all of its reads fall into.
    const bool row = input && count == 0;
    const int64_t extent =
        row ? std::max<int64_t>(buffer.shape[d], 1) : buffer.shape[d];
    if (extent > std::numeric_limits<int32_t>::max() ||
        stride > std::numeric_limits<int32_t>::max() ||
        buffer.bytes > std::numeric_limits<int32_t>::max()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a tensor of shape [", absl::StrJoin(buffer.shape, ", "),
          "]: kernels address at most 2^31 - 1 bytes of one tensor"));
    }
    buffer.dims.push_back(halide_dimension_t(0, static_cast<int32_t>(extent),
                                             static_cast<int32_t>(stride)));
    stride = row ? 0 : stride * extent;
  }
  return buffer;
}


}  // namespace

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
    output_slots_.push_back(SlotOf(output.value));
  }
}

int Kernel::Impl::SlotOf(Value v) {
  return slots_.try_emplace(v, static_cast<int>(slots_.size())).first->second;
}

absl::Status Kernel::Impl::CheckInputs(
    absl::Span<const TensorView> inputs) const {
  const Graph& graph = plan_->graph;
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors are given for ",
                     graph.inputs().size(), " inputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView& view = inputs[i];
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
    if (view.strides.size() != view.shape.size()) {
      return fail("has ", view.strides.size(), " strides");
    }
    bool empty = false;
    for (const int64_t extent : view.shape) {
      if (extent < 0) return fail("has the extent ", extent);
      empty |= extent == 0;
    }
    if (view.data == nullptr && !empty) return fail("has no data");
  }
  return absl::OkStatus();
}

absl::StatusOr<StepInstance> Kernel::Impl::MakeStep(const Step& step,
                                                    const DimValues& dims) {
  StepInstance result;
  for (const Operand& operand : step.inputs) {
    CLEAVE_ASSIGN_OR_RETURN(
        result.inputs.emplace_back(),
        MakeBuffer(slots_.at(operand.value), operand, dims, true));
  }
  result.skipped = step.kind != GroupKind::kReference;
  for (const Operand& operand : step.outputs) {
    CLEAVE_ASSIGN_OR_RETURN(
        result.outputs.emplace_back(),
        MakeBuffer(slots_.at(operand.value), operand, dims, false));
    result.skipped &= result.outputs.back().bytes == 0;
  }
  if (step.kind == GroupKind::kReference) {
    DimSubstitution numbers;
    for (const auto& [name, value] : dims) numbers.emplace(name, Dim(value));
    result.graph = SubstituteDims(step.graph, numbers);
    return result;
  }
  for (const Dim& dim : step.dims) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t value, dim.Evaluate(dims));
    if (value > std::numeric_limits<int32_t>::max() ||
        value < std::numeric_limits<int32_t>::min()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("`", dim.ToString(), "` is ", value,
                       ": kernels count to 2^31 - 1"));
    }
    result.dims.push_back(static_cast<int32_t>(value));
  }
  return result;
}

absl::StatusOr<std::unique_ptr<Instance>> Kernel::Impl::MakeInstance(
    absl::Span<const TensorView> inputs) {
  const Graph& graph = plan_->graph;
  auto instance = std::make_unique<Instance>();
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const Shape& shape = graph.type(input.value).shape;
    instance->input_shapes.push_back(inputs[i].shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back(
          {shape[d], inputs[i].shape[d],
           absl::StrCat("axis ", d, " of the input `", input.name, "`")});
    }
  }
  DimValues dims;
  CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(equations), &dims));
  for (const ShapeGuard& guard : graph.guards()) {
    CLEAVE_RETURN_IF_ERROR(CheckGuard(guard, dims));
  }
  for (const NamedValue& output : graph.outputs()) {
    CLEAVE_ASSIGN_OR_RETURN(
        instance->output_shapes.emplace_back(),
        EvaluateShape(graph.type(output.value).shape, dims));
  }
  for (const Step& step : plan_->steps) {
    CLEAVE_ASSIGN_OR_RETURN(instance->steps.emplace_back(),
                            MakeStep(step, dims));
  }
  PlanMemory(instance.get());
  return instance;
}

// Intermediate values share memory where their lives do not overlap: each is
// put into the lowest gap that is large enough among those that live with it,
// the largest first.
void Kernel::Impl::PlanMemory(Instance* instance) const {
  struct Life {
    int slot;
    int64_t bytes;
    int first;
    int last;
    int64_t offset = 0;
  };
  std::map<int, Life> lives;
  const int steps = static_cast<int>(instance->steps.size());
  for (int s = 0; s < steps; ++s) {
    for (const BufferInstance& buffer : instance->steps[s].outputs) {
      lives[buffer.slot] = {buffer.slot, buffer.bytes, s, s};
    }
    for (const BufferInstance& buffer : instance->steps[s].inputs) {
      const auto it = lives.find(buffer.slot);
      if (it != lives.end()) it->second.last = s;
    }
  }
  for (const int slot : output_slots_) lives.erase(slot);
  std::vector<Life> order;
  for (const auto& [slot, life] : lives) order.push_back(life);
  std::stable_sort(order.begin(), order.end(), [](const Life& a, const Life& b) {
    return a.bytes > b.bytes;
  });
  instance->offsets.assign(slots_.size(), -1);
  std::vector<Life> placed;
  for (Life& life : order) {
    // Room behind, too: vector code may read on.
    const int64_t alignment = kKernelAlignment;
    const int64_t size =
        (life.bytes + 2 * alignment - 1) / alignment * alignment;
    int64_t offset = 0;
    for (const Life& other : placed) {  // by offset
      if (other.last < life.first || life.last < other.first) continue;
      if (offset + size <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    life.offset = offset;
    life.bytes = size;
    instance->offsets[life.slot] = offset;
    instance->temporary_bytes =
        std::max(instance->temporary_bytes, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), life,
                                   [](const Life& a, const Life& b) {
                                     return a.offset < b.offset;
                                   }),
                  life);
  }
}

absl::StatusOr<const Instance*> Kernel::Impl::FindInstance(
    absl::Span<const TensorView> inputs, std::unique_ptr<Instance>* scratch) {
  const auto fits = [&](const Instance& instance) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (instance.input_shapes[i] != inputs[i].shape) return false;
    }
    return true;
  };
  const Instance* latest = latest_.load(std::memory_order_acquire);
  if (latest != nullptr && fits(*latest)) return latest;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& instance : instances_) {
    if (!fits(*instance)) continue;
    latest_.store(instance.get(), std::memory_order_release);
    return instance.get();
  }
  CLEAVE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> made,
                          MakeInstance(inputs));
  if (instances_.size() >= kMaxInstances) {
    *scratch = std::move(made);
    return scratch->get();
  }
  instances_.push_back(std::move(made));
  latest_.store(instances_.back().get(), std::memory_order_release);
  return instances_.back().get();
}

absl::Status Kernel::Impl::RunReference(const Step& step,
                                        const StepInstance& instance,
                                        Memory& memory) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const BufferInstance& buffer = instance.inputs[i];
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::Create(step.inputs[i].dtype, buffer.shape));
    if (buffer.bytes > 0) {
      std::memcpy(tensor.mutable_data(), memory.addresses[buffer.slot],
                  buffer.bytes);
    }
    tensors.push_back(std::move(tensor));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          Interpret(instance.graph, tensors));
  for (size_t i = 0; i < results.size(); ++i) {
    const BufferInstance& buffer = instance.outputs[i];
    CLEAVE_CHECK(static_cast<int64_t>(results[i].byte_size()) == buffer.bytes);
    if (buffer.bytes > 0) {
      std::memcpy(memory.addresses[buffer.slot], results[i].data(),
                  buffer.bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunStep(const Step& step,
                                   const StepInstance& instance, Memory& memory,
                                   KernelCall& call) {
  if (instance.skipped) return absl::OkStatus();
  if (step.kind == GroupKind::kReference) {
    return RunReference(step, instance, memory);
  }
  const size_t count = instance.inputs.size() + instance.outputs.size();
  absl::InlinedVector<halide_buffer_t, 8> buffers(count);
  absl::InlinedVector<void*, 16> arguments(1 + instance.dims.size() + count);
  for (size_t i = 0; i < instance.dims.size(); ++i) {
    arguments[1 + i] = const_cast<int32_t*>(&instance.dims[i]);
  }
  size_t next = 0;
  std::vector<std::vector<std::byte>> rows;  // of empty inputs
  const auto add = [&](const BufferInstance& buffer) {
    halide_buffer_t& b = buffers[next];
    b = {};
    b.host = static_cast<uint8_t*>(memory.addresses[buffer.slot]);
    if (buffer.bytes == 0) {
      const size_t row =
          buffer.dims.empty() ? 0 : buffer.dims.front().extent * sizeof(double);
      if (row <= sizeof kNothing) {
        b.host = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(kNothing));
      } else {
        rows.emplace_back(row);
        b.host = reinterpret_cast<uint8_t*>(rows.back().data());
      }
    }
    b.type = buffer.type;
    b.dimensions = static_cast<int32_t>(buffer.dims.size());
    b.dim = const_cast<halide_dimension_t*>(buffer.dims.data());
    arguments[1 + instance.dims.size() + next] = &b;
    ++next;
  };
  for (const BufferInstance& buffer : instance.inputs) add(buffer);
  for (const BufferInstance& buffer : instance.outputs) add(buffer);
  return call.Run(step.entry, absl::MakeSpan(arguments));
}

void Kernel::Impl::Report(const Step& step, const StepInstance& instance,
                          int64_t nanoseconds, RunReport* report) const {
  StepReport entry;
  entry.kind = std::string(GroupKindName(step.kind));
  entry.ops = step.ops;
  entry.why = step.why;
  for (const BufferInstance& b : instance.inputs) entry.bytes_read += b.bytes;
  for (const BufferInstance& b : instance.outputs) {
    entry.bytes_written += b.bytes;
  }
  entry.nanoseconds = nanoseconds;
  report->steps.push_back(std::move(entry));
}

absl::Status Kernel::Impl::RunSteps(const Instance& instance, Memory& memory,
                                    KernelCall& call,
                                    const RunOptions& options) {
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const int64_t start = options.report != nullptr ? Now() : 0;
    CLEAVE_RETURN_IF_ERROR(
        RunStep(plan_->steps[s], instance.steps[s], memory, call));
    if (options.report != nullptr) {
      Report(plan_->steps[s], instance.steps[s], Now() - start,
             options.report);
    }
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::CheckOutputs(
    const Instance& instance,
    absl::Span<const MutableTensorView> outputs) const {
  const Graph& graph = plan_->graph;
  if (outputs.size() != graph.outputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(outputs.size(), " tensors are given for ",
                     graph.outputs().size(), " outputs"));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const MutableTensorView& view = outputs[i];
    const NamedValue& output = graph.outputs()[i];
    const DType dtype = graph.type(output.value).dtype;
    if (view.dtype != dtype || view.shape != instance.output_shapes[i] ||
        view.strides.size() != view.shape.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the output `", output.name, "` is ", DTypeName(dtype), "[",
          absl::StrJoin(instance.output_shapes[i], ", "), "], but ",
          DTypeName(view.dtype), "[", absl::StrJoin(view.shape, ", "),
          "] is given"));
    }
    const bool empty = std::count(view.shape.begin(), view.shape.end(), 0) > 0;
    if (view.data == nullptr && !empty) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output `", output.name, "` has no data"));
    }
    if (!IsDense(view.shape, view.strides)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the output `", output.name, "` is not dense in row-major order"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (!Overlaps(RangeOf(view), RangeOf(outputs[j]))) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the outputs `", graph.outputs()[j].name, "` and `",
                       output.name, "` overlap in memory"));
    }
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunInto(
    absl::Span<const TensorView> inputs,
    absl::Span<const MutableTensorView> outputs, const RunOptions& options) {
  const int64_t start = options.report != nullptr ? Now() : 0;
  if (options.report != nullptr) *options.report = {};
  if (!plan_->static_shapes) {
    return absl::UnimplementedError(
        "the extents of the outputs are known only when they are computed: "
        "only Run makes room for them");
  }
  CLEAVE_RETURN_IF_ERROR(CheckInputs(inputs));
  std::unique_ptr<Instance> scratch;
  CLEAVE_ASSIGN_OR_RETURN(const Instance* instance,
                          FindInstance(inputs, &scratch));
  CLEAVE_RETURN_IF_ERROR(CheckOutputs(*instance, outputs));
  KernelCall call(options.call);
  Memory memory;
  memory.addresses.resize(slots_.size());
  std::vector<std::unique_ptr<void, void (*)(void*)>> owned;
  const auto allocate = [&](int64_t bytes) -> absl::StatusOr<void*> {
    void* address = call.Allocate(bytes);
    if (address == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the allocator refused ", bytes, " bytes"));
    }
    owned.emplace_back(address, &KernelCall::Free);
    return address;
  };
  if (instance->temporary_bytes > 0) {
    CLEAVE_ASSIGN_OR_RETURN(void* temporary,
                            allocate(instance->temporary_bytes));
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (instance->offsets[slot] < 0) continue;
      memory.addresses[slot] =
          static_cast<std::byte*>(temporary) + instance->offsets[slot];
    }
  }
  int64_t packed = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool copy = !IsDense(inputs[i].shape, inputs[i].strides);
    for (const MutableTensorView& output : outputs) {
      copy |= Overlaps(RangeOf(inputs[i]), RangeOf(output));
    }
    void* address = const_cast<void*>(inputs[i].data);
    if (copy) {
      const int64_t bytes = DenseBytes(inputs[i]);
      CLEAVE_ASSIGN_OR_RETURN(address, allocate(std::max<int64_t>(bytes, 1)));
      Pack(inputs[i], address);
      packed += bytes;
    }
    // Inputs come first among the slots, in their order.
    memory.addresses[i] = address;
  }
  std::vector<std::pair<int, size_t>> copies;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const int slot = output_slots_[o];
    const bool made = slot >= static_cast<int>(inputs.size()) &&
                      memory.addresses[slot] == nullptr;
    if (made) {
      memory.addresses[slot] = outputs[o].data;
    } else {
      copies.emplace_back(slot, o);
    }
  }
  CLEAVE_RETURN_IF_ERROR(RunSteps(*instance, memory, call, options));
  for (const auto& [slot, o] : copies) {
    const int64_t bytes = DenseBytes(outputs[o]);
    if (bytes > 0) {
      std::memcpy(outputs[o].data, memory.addresses[slot], bytes);
    }
  }
  if (options.report != nullptr) {
    owned.clear();
    options.report->packed_bytes = packed;
    options.report->temporary_bytes = instance->temporary_bytes;
    options.report->peak_bytes = call.report().peak_bytes;
    options.report->nanoseconds = Now() - start;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Kernel::Impl::Run(
    absl::Span<const Tensor> inputs, const RunOptions& options) {
  if (!plan_->static_shapes) return RunDynamic(inputs, options);
  std::vector<TensorView> views;
  views.reserve(inputs.size());
  for (const Tensor& tensor : inputs) views.push_back(ViewOf(tensor));
  CLEAVE_RETURN_IF_ERROR(CheckInputs(views));
  std::unique_ptr<Instance> scratch;
  CLEAVE_ASSIGN_OR_RETURN(const Instance* instance,
                          FindInstance(views, &scratch));
  std::vector<Tensor> outputs;
  std::vector<MutableTensorView> targets;
  for (size_t o = 0; o < instance->output_shapes.size(); ++o) {
    const DType dtype =
        plan_->graph.type(plan_->graph.outputs()[o].value).dtype;
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::Create(dtype, instance->output_shapes[o]));
    targets.push_back({tensor.mutable_data(), dtype, tensor.shape(),
                       DenseStrides(tensor.shape())});
    outputs.push_back(std::move(tensor));
  }
  CLEAVE_RETURN_IF_ERROR(RunInto(views, targets, options));
  return outputs;
}

// Step by step, each value a tensor of its own: some extents are known only
// when the values before them are.
absl::StatusOr<std::vector<Tensor>> Kernel::Impl::RunDynamic(
    absl::Span<const Tensor> inputs, const RunOptions& options) {
  const int64_t start = Now();
  if (options.report != nullptr) *options.report = {};
  const Graph& graph = plan_->graph;
  DimValues dims;
  CLEAVE_ASSIGN_OR_RETURN(dims, BindDims(graph, inputs));
  KernelCall call(options.call);
  Memory memory;
  memory.addresses.resize(slots_.size());
  memory.tensors.resize(slots_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.tensors[i] = inputs[i];
    memory.addresses[i] = const_cast<std::byte*>(inputs[i].data());
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
    const int64_t begin = Now();
    StepInstance instance;
    if (step.kind == GroupKind::kReference) {
      std::vector<Tensor> operands;
      for (const Operand& operand : step.inputs) {
        // A reshape of what was read: the same elements.
        CLEAVE_ASSIGN_OR_RETURN(auto shape,
                                EvaluateShape(operand.shape, dims));
        const Tensor& source = memory.tensors[slots_.at(operand.value)];
        CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                                Tensor::Create(operand.dtype, shape));
        std::copy(source.data(), source.data() + source.byte_size(),
                  tensor.mutable_data());
        operands.push_back(std::move(tensor));
      }
      Graph concrete;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        DimSubstitution numbers;
        for (const auto& [name, value] : dims) {
          numbers.emplace(name, Dim(value));
        }
        concrete = SubstituteDims(step.graph, numbers);
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                              Interpret(concrete, operands));
      std::vector<DimEquation> found;
      for (size_t i = 0; i < results.size(); ++i) {
        const Operand& operand = step.outputs[i];
        for (size_t d = 0; d < operand.shape.size(); ++d) {
          found.push_back({operand.shape[d], results[i].shape()[d],
                           absl::StrCat("axis ", d, " of `", step.ops[0],
                                        "`")});
        }
        const int slot = slots_.at(operand.value);
        memory.tensors[slot] = std::move(results[i]);
        memory.addresses[slot] = memory.tensors[slot].mutable_data();
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
            Tensor::Create(graph.type(operand.value).dtype, std::move(shape)));
        const int slot = slots_.at(operand.value);
        memory.tensors[slot] = std::move(tensor);
        memory.addresses[slot] = memory.tensors[slot].mutable_data();
      }
      CLEAVE_RETURN_IF_ERROR(RunStep(step, instance, memory, call));
    }
    if (options.report != nullptr) {
      Report(step, instance, Now() - begin, options.report);
    }
  }
  std::vector<Tensor> outputs;
  for (const int slot : output_slots_) outputs.push_back(memory.tensors[slot]);
  if (options.report != nullptr) {
    options.report->peak_bytes = call.report().peak_bytes;
    options.report->nanoseconds = Now() - start;
  }
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
    if (!step.why.empty()) {
      absl::StrAppend(&text, "              no kernel: ", step.why, "\n");
    }
  }
  absl::StrAppend(
      &text, absl::StrFormat("%10.1f us  in all, %d kernels; %d bytes between "
                             "them, %d at most, %d packed\n",
                             nanoseconds / 1e3, steps.size(), temporary_bytes,
                             peak_bytes, packed_bytes));
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
    count += step.kind != GroupKind::kReference;
  }
  return count;
}

int Kernel::reference_groups() const {
  return static_cast<int>(impl_->plan().steps.size()) - compiled_groups();
}

absl::StatusOr<std::vector<Tensor>> Kernel::Run(
    absl::Span<const Tensor> inputs, const RunOptions& options) const {
  return impl_->Run(inputs, options);
}

absl::Status Kernel::RunInto(absl::Span<const TensorView> inputs,
                             absl::Span<const MutableTensorView> outputs,
                             const RunOptions& options) const {
  return impl_->RunInto(inputs, outputs, options);
}

}  // namespace cleave
