// Instances: the buffers, memory and checks that a Kernel needs for the extents
// of one call.

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/cuda_blas.h"
#include "engine/runtime/kernel_impl.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::BufferInstance;
using internal_kernel::HalideTypeOf;
using internal_kernel::IndexRange;
using internal_kernel::Instance;
using internal_kernel::Operand;
using internal_kernel::ProductInstance;
using internal_kernel::Step;
using internal_kernel::StepCheck;
using internal_kernel::StepInstance;

namespace {

// Instances that a kernel keeps: beyond them each call makes its own.
constexpr size_t kMaxInstances = 256;

// The number of elements; ResourceExhausted where their bytes are beyond 2^63.
absl::StatusOr<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;
    if (extent != 0 && count > kMost / extent) {
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
  buffer.type = HalideTypeOf(operand.dtype);
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

// Loops are split into blocks of fewer elements.
constexpr int32_t kLargestBlock = 1 << 16;

// Whether a loop of the kernel may go over nothing: that over an axis, or over
// the blocks of one.
bool MayHaveEmptyLoops(const Step& step, const std::vector<int32_t>& dims) {
  const int32_t enough = step.reads_by_index ? kLargestBlock : 1;
  return std::any_of(dims.begin(), dims.end(),
                     [&](int32_t value) { return value < enough; });
}

// Lets the kernel take an input for larger than it is, on all sides. A kernel
// checks, before its loops, where their bodies read; a body is simplified to
// what holds within its loop. For a loop over nothing the check is wrong then:
// the last of no places is at -1, and the fifth place is there for a loop over
// blocks of 64 elements. Nothing is read there.
void Widen(BufferInstance& buffer) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto fits = [&](int64_t margin) {
    int64_t elements = 1;
    for (const halide_dimension_t& dim : buffer.dims) {
      const int64_t extent = dim.extent + 2 * margin;
      if (extent * std::max(1, dim.stride) > kMost) return false;
      elements *= extent;
      if (elements > kMost) return false;
    }
    return true;
  };
  int64_t margin = int64_t{1} << 20;
  while (margin > 0 && !fits(margin)) margin /= 2;
  for (halide_dimension_t& dim : buffer.dims) {
    dim.min = static_cast<int32_t>(-margin);
    dim.extent += static_cast<int32_t>(2 * margin);
    buffer.bytes_before += margin * dim.stride * buffer.type.bytes();
  }
}

}  // namespace

absl::Status Kernel::Impl::MakeChecks(const Step& step, const DimValues& dims,
                                      StepInstance* instance) {
  for (const StepCheck& one : step.checks) {
    const IndexCheck& check = one.check;
    // The reads: none, and nothing is wrong.
    int64_t reads = 1;
    for (const Shape* shape : {&one.result, &check.repeats}) {
      CLEAVE_ASSIGN_OR_RETURN(const auto extents, EvaluateShape(*shape, dims));
      for (const int64_t extent : extents) reads = extent == 0 ? 0 : reads;
    }
    if (reads == 0) continue;
    IndexRange range;
    range.component = check.component;
    range.components = check.components;
    range.replaced = check.replaced;
    range.replacement = check.replacement;
    range.divisor_bytes = check.divisor_bytes;
    range.error = &one.error;
    CLEAVE_ASSIGN_OR_RETURN(range.extent, check.extent.Evaluate(dims));
    if (!check.base.valid()) {
      CLEAVE_ASSIGN_OR_RETURN(const int64_t first, check.first.Evaluate(dims));
      CLEAVE_ASSIGN_OR_RETURN(const int64_t count, check.count.Evaluate(dims));
      const bool holds = check.divisor_bytes > 0
                             ? first > 0 || first + count <= 0
                             : first >= 0 && first + count <= range.extent;
      if (count > 0 && !holds) return one.error;
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const auto shape,
        EvaluateShape(plan_->graph.type(check.base).shape, dims));
    CLEAVE_ASSIGN_OR_RETURN(range.count, CountElements(shape));
    range.count /= range.components;
    range.slot = slots_.at(check.base);
    instance->checks.push_back(range);
  }
  return absl::OkStatus();
}

namespace {

// Operations that one thread does while another would be woken.
constexpr int64_t kSmallOperations = 200000;

// Whether a pointwise kernel or a reduction does little.
absl::StatusOr<bool> IsSmall(const Step& step, const DimValues& dims) {
  int64_t most = 0;
  for (const Shape& shape : step.shapes) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> extents,
                            EvaluateShape(shape, dims));
    int64_t elements = 1;
    for (const int64_t extent : extents) {
      if (__builtin_mul_overflow(elements, extent, &elements)) return false;
    }
    most = std::max(most, elements);
  }
  return !step.shapes.empty() &&
         most <= kSmallOperations / std::max(step.cost, 1);
}

// Products that one call of the library is worth while for: with more the one
// kernel of all of them is better.
constexpr int64_t kMostProducts = 64;

// One side of a product for known extents; `outer` and `inner` are axes of the
// batch, -1 for none.
absl::Status SetSide(const MatrixProduct::Side& from, const DimValues& dims,
                     int64_t element_bytes, int outer, int inner,
                     DeviceProduct::Side* side, ProductInstance::Place* place) {
  const auto set = [&](const Dim& dim, int64_t scale,
                       int64_t* to) -> absl::Status {
    CLEAVE_ASSIGN_OR_RETURN(*to, dim.Evaluate(dims));
    *to *= scale;
    return absl::OkStatus();
  };
  CLEAVE_RETURN_IF_ERROR(set(from.of_own, 1, &side->of_own));
  CLEAVE_RETURN_IF_ERROR(set(from.of_terms, 1, &side->of_terms));
  CLEAVE_RETURN_IF_ERROR(set(from.offset, element_bytes, &place->bytes));
  if (inner >= 0) {
    CLEAVE_RETURN_IF_ERROR(set(from.of_batch[inner], 1, &side->of_batch));
  }
  if (outer < 0) return absl::OkStatus();
  return set(from.of_batch[outer], element_bytes, &place->step_bytes);
}

// The products of a step that a library computes; nullopt where it takes none
// of these extents.
absl::StatusOr<std::optional<ProductInstance>> MakeProduct(
    const Step& step, const DimValues& dims) {
  constexpr std::nullopt_t kNone = std::nullopt;
  if (!step.product.has_value()) return kNone;
  const MatrixProduct& from = *step.product;
  // The library has one axis of a batch: the shorter one of two is a loop.
  if (from.batch.size() > 2) return kNone;
  ProductInstance result;
  DeviceProduct& product = result.product;
  product.dtype = from.dtype;
  CLEAVE_ASSIGN_OR_RETURN(product.rows, from.rows.Evaluate(dims));
  CLEAVE_ASSIGN_OR_RETURN(product.columns, from.columns.Evaluate(dims));
  CLEAVE_ASSIGN_OR_RETURN(product.terms, from.terms.Evaluate(dims));
  if (std::min({product.rows, product.columns, product.terms}) <
      kLeastProductExtent) {
    return kNone;
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> batch,
                          EvaluateShape(from.batch, dims));
  const int axes = static_cast<int>(batch.size());
  const int outer = axes < 2 ? -1 : batch[0] <= batch[1] ? 0 : 1;
  const int inner = axes < 2 ? axes - 1 : 1 - outer;
  if (outer >= 0) result.count = batch[outer];
  if (inner >= 0) product.batch = batch[inner];
  if (result.count > kMostProducts) return kNone;
  const int64_t element_bytes = ByteSize(from.dtype);
  const int64_t matrix = product.rows * product.columns;
  product.result_of_batch = outer == 1 ? matrix * batch[1] : matrix;
  result.result.step_bytes =
      element_bytes * (outer == 0 ? matrix * batch[1] : matrix);
  CLEAVE_RETURN_IF_ERROR(SetSide(from.left, dims, element_bytes, outer, inner,
                                 &product.left, &result.left));
  CLEAVE_RETURN_IF_ERROR(SetSide(from.right, dims, element_bytes, outer, inner,
                                 &product.right, &result.right));
  if (!CudaBlas::Takes(product)) return kNone;
  return result;
}

}  // namespace

absl::StatusOr<StepInstance> Kernel::Impl::MakeStep(const Step& step,
                                                    const DimValues& dims) {
  StepInstance result;
  for (const Operand& operand : step.inputs) {
    CLEAVE_ASSIGN_OR_RETURN(
        result.inputs.emplace_back(),
        MakeBuffer(slots_.at(operand.value), operand, dims, true));
  }
  CLEAVE_RETURN_IF_ERROR(MakeChecks(step, dims, &result));
  result.skipped = HasCode(step.kind);
  for (const Operand& operand : step.outputs) {
    CLEAVE_ASSIGN_OR_RETURN(
        result.outputs.emplace_back(),
        MakeBuffer(slots_.at(operand.value), operand, dims, false));
    result.skipped &= result.outputs.back().bytes == 0;
  }
  if (!HasCode(step.kind)) return result;
  CLEAVE_ASSIGN_OR_RETURN(result.small, IsSmall(step, dims));
  for (const Dim& dim : step.dims) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t value, dim.Evaluate(dims));
    if (value > std::numeric_limits<int32_t>::max() ||
        value < std::numeric_limits<int32_t>::min()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "`", dim.ToString(), "` is ", value, ": kernels count to 2^31 - 1"));
    }
    result.dims.push_back(static_cast<int32_t>(value));
  }
  CLEAVE_ASSIGN_OR_RETURN(result.product, MakeProduct(step, dims));
  if (step.device == Device::kCpu && MayHaveEmptyLoops(step, result.dims)) {
    for (BufferInstance& input : result.inputs) Widen(input);
  }
  for (auto* operands : {&result.inputs, &result.outputs}) {
    for (const BufferInstance& buffer : *operands) {
      halide_buffer_t& b = result.buffers.emplace_back();
      b = {};
      b.type = buffer.type;
      b.dimensions = static_cast<int32_t>(buffer.dims.size());
    }
  }
  return result;
}

absl::StatusOr<std::unique_ptr<Instance>> Kernel::Impl::MakeInstance(
    Arrays inputs) {
  const Graph& graph = plan_->graph;
  auto instance = std::make_unique<Instance>();
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const Shape& shape = graph.type(input.value).shape;
    instance->input_shapes.emplace_back(inputs[i].shape.begin(),
                                        inputs[i].shape.end());
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back(
          {shape[d], inputs[i].shape[d],
           absl::StrCat("axis ", d, " of the input `", input.name, "`")});
    }
  }
  DimValues& dims = instance->dims;
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
  const std::vector<bool> touched = TouchedByHost(*instance);
  for (int s = 0; s < steps; ++s) {
    for (const BufferInstance& buffer : instance->steps[s].outputs) {
      // A host's results stay where it made them.
      if (plan_->steps[s].kind == GroupKind::kHost) continue;
      // A value that only kernels of a device touch has no place here.
      if (!touched[buffer.slot]) continue;
      lives[buffer.slot] = {buffer.slot, buffer.bytes, s, s};
    }
    for (const BufferInstance& buffer : instance->steps[s].inputs) {
      const auto it = lives.find(buffer.slot);
      if (it != lives.end()) it->second.last = s;
    }
  }
  instance->last_steps.assign(slots_.size(), -1);
  for (int s = 0; s < steps; ++s) {
    for (const auto* operands :
         {&instance->steps[s].inputs, &instance->steps[s].outputs}) {
      for (const BufferInstance& buffer : *operands) {
        instance->last_steps[buffer.slot] = s;
      }
    }
  }
  for (const int slot : output_slots_) lives.erase(slot);
  std::vector<Life> order;
  for (const auto& [slot, life] : lives) order.push_back(life);
  std::stable_sort(
      order.begin(), order.end(),
      [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
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
    Arrays inputs, std::unique_ptr<Instance>* scratch) {
  const auto fits = [&](const Instance& instance) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (absl::MakeConstSpan(instance.input_shapes[i]) != inputs[i].shape) {
        return false;
      }
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
  CLEAVE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> made, MakeInstance(inputs));
  if (instances_.size() >= kMaxInstances) {
    *scratch = std::move(made);
    return scratch->get();
  }
  instances_.push_back(std::move(made));
  latest_.store(instances_.back().get(), std::memory_order_release);
  return instances_.back().get();
}

}  // namespace cleave
