// The steps that the runtime computes itself: sorts, cumulative sums, scatters
// of rows, and concatenations of what is stored.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/bind.h"
#include "engine/ir/filled_with.h"
#include "engine/runtime/concatenate_parts.h"
#include "engine/runtime/cumulative_sums.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/scatter_rows.h"
#include "engine/runtime/sort_lines.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::AddRows;
using internal_kernel::BufferInstance;
using internal_kernel::ConcatenatedPart;
using internal_kernel::CumulativeSums;
using internal_kernel::RowCombination;
using internal_kernel::ScatteredRows;
using internal_kernel::SortedArray;
using internal_kernel::Step;
using internal_kernel::StepInstance;

namespace {

// Elements of a buffer.
int64_t CountOf(const BufferInstance& buffer) {
  return std::accumulate(buffer.shape.begin(), buffer.shape.end(), int64_t{1},
                         std::multiplies<>());
}

// The scatters in one that has a batch: they lie one behind the other.
absl::StatusOr<int64_t> LinesOf(const Graph& graph, Value scatter,
                                const DimValues& dims) {
  const Shape& shape = graph.type(scatter).shape;
  const int64_t batch = graph.attributes(scatter).GetInt("batch");
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> extents,
      EvaluateShape({shape.begin(), shape.begin() + batch}, dims));
  return std::accumulate(extents.begin(), extents.end(), int64_t{1},
                         std::multiplies<>());
}

}  // namespace

absl::Status Kernel::Impl::RunOwnCode(const Step& step,
                                      const StepInstance& instance,
                                      const DimValues& dims,
                                      Addresses addresses, KernelCall& call) {
  const Graph& graph = step.graph;
  // The buffer of an operand of the node; null for one that is no input.
  const auto buffer_of = [&](Value operand) -> const BufferInstance* {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (graph.inputs()[i].value == operand) return &instance.inputs[i];
    }
    return nullptr;
  };
  const Value result = graph.outputs()[0].value;
  void* const y = addresses[instance.outputs[0].slot];
  if (graph.node(result).op == ToOpId(Primitive::kLinearScan)) {
    const Attributes& scan = graph.attributes(result);
    const BufferInstance& x = *buffer_of(graph.operands(result)[1]);
    return CumulativeSums({step.outputs[0].dtype, x.shape, scan.GetInt("axis"),
                           scan.GetBool("reverse"), addresses[x.slot], y},
                          call);
  }
  // A scatter may be added to what is stored.
  Value scatter = result;
  const BufferInstance* base = nullptr;
  if (graph.node(result).op == ToOpId(Primitive::kAdd)) {
    const auto operands = graph.operands(result);
    base = buffer_of(BelowReshapes(graph, operands[0]));
    scatter = BelowReshapes(graph, operands[base == nullptr ? 0 : 1]);
    if (base == nullptr) base = buffer_of(BelowReshapes(graph, operands[1]));
  }
  if (graph.node(scatter).op == ToOpId(Primitive::kScatter)) {
    const auto operands = graph.operands(scatter);
    // Memory has no shape: reshaped operands are their buffers.
    const auto stored = [&](int i) {
      return buffer_of(StoredBelow(graph, scatter, operands[i]));
    };
    const BufferInstance* const x = stored(0);
    const BufferInstance& updates = *stored(2);
    ScatteredRows array;
    array.dtype = step.outputs[0].dtype;
    CLEAVE_ASSIGN_OR_RETURN(array.lines, LinesOf(graph, scatter, dims));
    if (array.lines == 0) return absl::OkStatus();
    const int64_t count = CountOf(*stored(1));
    array.updates = count / array.lines;
    // Without updates any row will do.
    array.width = count > 0 ? CountOf(updates) / count : 1;
    if (array.width > 0) {
      array.rows = CountOf(instance.outputs[0]) / array.width / array.lines;
    }
    const std::string& mode = graph.attributes(scatter).Get("mode").AsString();
    array.combination = mode == "max"   ? RowCombination::kLargest
                        : mode == "set" ? RowCombination::kLast
                                        : RowCombination::kSum;
    if (x != nullptr) {
      array.x = addresses[x->slot];
    } else if (IsInt(array.dtype)) {
      array.fill = *FilledWith(graph, operands[0])->ToInt64();
    }
    if (base != nullptr) array.base = addresses[base->slot];
    array.indices = static_cast<const int64_t*>(addresses[stored(1)->slot]);
    array.u = addresses[updates.slot];
    array.y = y;
    return AddRows(array, call);
  }
  if (graph.node(result).op == ToOpId(Primitive::kConcatenate)) {
    const int64_t axis = graph.attributes(result).GetInt("axis");
    const std::vector<int64_t>& shape = instance.outputs[0].shape;
    const int64_t rows = std::accumulate(shape.begin(), shape.begin() + axis,
                                         int64_t{1}, std::multiplies<>());
    absl::InlinedVector<ConcatenatedPart, 8> parts;
    for (const Value operand : graph.operands(result)) {
      const PartOfJoined part = JoinedPart(graph, result, operand);
      const BufferInstance& x = *buffer_of(part.base);
      const int64_t bytes = std::accumulate(
          x.shape.begin() + axis + 1, x.shape.end(),
          int64_t{ByteSize(step.outputs[0].dtype)}, std::multiplies<>());
      const int64_t length = part.length.value_or(x.shape[axis]);
      parts.push_back({static_cast<const std::byte*>(addresses[x.slot]) +
                           part.start * bytes,
                       length * bytes, x.shape[axis] * bytes});
    }
    ConcatenateParts(parts, rows, y, call);
    return absl::OkStatus();
  }
  const Value node = graph.operands(result)[0];
  const Attributes& sort = graph.attributes(node);
  const BufferInstance& x = *buffer_of(graph.operands(node)[0]);
  SortedArray array = {step.inputs[0].dtype, x.shape, sort.GetInt("axis"),
                       sort.GetBool("descending"), addresses[x.slot]};
  array.limit = step.sorted;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    void* const address = addresses[instance.outputs[i].slot];
    if (graph.attributes(graph.outputs()[i].value).GetInt("index") == 0) {
      array.values = address;
    } else {
      array.indices = static_cast<int64_t*>(address);
    }
  }
  return SortLines(array, call);
}

}  // namespace cleave
