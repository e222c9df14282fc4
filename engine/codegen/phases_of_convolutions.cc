#include "engine/codegen/phases_of_convolutions.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/codegen/stored.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// One spatial axis: x of `length` elements, spread by `spread`, meets a kernel
// of `size` places, the first one `low` before it.
//
// Output p = spread u + r - skipped meets place a = spread j + spread - 1 - r
// of the kernel at element u + j - before of x.
struct Axis {
  int64_t length = 0;
  int64_t spread = 1;
  int64_t size = 0;
  int64_t low = 0;
  int64_t outputs = 0;

  // Outputs of the first u that lie before the first output.
  int64_t skipped() const {
    return ((spread - 1 - low) % spread + spread) % spread;
  }
  int64_t before() const { return (low + skipped() - spread + 1) / spread; }
  // Places of the kernel that one output meets.
  int64_t places() const { return (size + spread - 1) / spread; }
  int64_t after() const {
    const int64_t count = (outputs + skipped() + spread - 1) / spread;
    return std::max<int64_t>(0, count - length - before() + places() - 1);
  }
  int64_t steps() const { return length + before() + after() - places() + 1; }
};

// The axes of a convolution that is spread, where all is known of them.
std::optional<std::vector<Axis>> AxesOf(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kConv) ||
      !IsFloat(graph.type(v).dtype)) {
    return std::nullopt;
  }
  const Attributes& attributes = graph.attributes(v);
  const auto spread = attributes.GetInts("lhs_dilation");
  const auto ones = [&](const char* name) {
    const auto values = attributes.GetInts(name);
    return std::count(values.begin(), values.end(), 1) ==
           static_cast<int64_t>(values.size());
  };
  if (ones("lhs_dilation") || !ones("stride") || !ones("rhs_dilation") ||
      attributes.GetInt("groups") != 1 ||
      attributes.GetInt("batch_groups") != 1) {
    return std::nullopt;
  }
  const Shape& x = graph.type(graph.operands(v)[0]).shape;
  const Shape& w = graph.type(graph.operands(v)[1]).shape;
  const std::vector<Dim> lows = attributes.GetDims("low");
  std::vector<Axis> axes;
  for (size_t s = 0; s < spread.size(); ++s) {
    const auto length = x[2 + s].Value();
    const auto size = w[2 + s].Value();
    const auto low = lows[s].Value();
    const auto outputs = graph.type(v).shape[2 + s].Value();
    if (!length || !size || !low || !outputs || *length < 1 || *size < 1 ||
        *low < 0 || *outputs < 1) {
      return std::nullopt;
    }
    axes.push_back({*length, spread[s], *size, *low, *outputs});
  }
  return axes;
}

// [o, c, a, b] as [phases o, c, j, k].
Value KernelOfPhases(GraphBuilder& builder, Value w,
                     const std::vector<Axis>& axes) {
  const Shape shape = builder.type(w).shape;
  const int count = static_cast<int>(axes.size());
  std::vector<Dim> low(shape.size(), Dim(0));
  std::vector<Dim> high = low;
  Shape split = {shape[0], shape[1]};
  Shape merged = {shape[0], shape[1]};
  std::vector<int> phases;
  std::vector<int> places;
  for (int s = 0; s < count; ++s) {
    const Axis& axis = axes[s];
    high[2 + s] = Dim(axis.places() * axis.spread - axis.size);
    places.push_back(static_cast<int>(split.size()));
    split.push_back(Dim(axis.places()));
    phases.push_back(static_cast<int>(split.size()));
    split.push_back(Dim(axis.spread));
    merged[0] = merged[0] * Dim(axis.spread);
    merged.push_back(Dim(axis.places()));
  }
  Attributes pad;
  pad.Set("low", StaticValue::Dims(low));
  pad.Set("high", StaticValue::Dims(high));
  pad.Set("interior", StaticValue::Ints(std::vector<int>(shape.size(), 0)));
  const Value zero = builder.Constant(Exact(0), builder.type(w).dtype);
  Value kernel =
      builder.Apply(Primitive::kPad, {Stored(builder, w), zero}, pad);
  kernel = builder.Reshape(kernel, split);
  Attributes reverse;
  reverse.Set("axes", StaticValue::Ints(phases));
  kernel = builder.Apply(Primitive::kReverse, {kernel}, reverse);
  std::vector<int> order = phases;
  order.push_back(0);
  order.push_back(1);
  order.insert(order.end(), places.begin(), places.end());
  return builder.Reshape(builder.Transpose(kernel, order), merged);
}

Value InPhases(const Graph& graph, Value v, absl::Span<const Value> operands,
               GraphBuilder& builder) {
  const std::vector<Axis> axes = *AxesOf(graph, v);
  const int count = static_cast<int>(axes.size());
  const Shape& shape = graph.type(v).shape;
  Attributes attributes = graph.attributes(v);
  std::vector<Dim> low;
  std::vector<Dim> high;
  for (const Axis& axis : axes) {
    low.push_back(Dim(axis.before()));
    high.push_back(Dim(axis.after()));
  }
  attributes.Set("low", StaticValue::Dims(low));
  attributes.Set("high", StaticValue::Dims(high));
  attributes.Set("lhs_dilation", StaticValue::Ints(std::vector<int>(count, 1)));
  const Value kernel = KernelOfPhases(builder, operands[1], axes);
  Value y = builder.Apply(Primitive::kConv, {operands[0], kernel}, attributes);
  // [n, phases o, u, v] as [n, phase, phase, o, u, v], and in order.
  Shape split = {shape[0]};
  for (const Axis& axis : axes) split.push_back(Dim(axis.spread));
  split.push_back(shape[1]);
  std::vector<int> order = {0, 1 + count};
  Shape merged = {shape[0], shape[1]};
  std::vector<Dim> start(shape.size(), Dim(0));
  for (int s = 0; s < count; ++s) {
    split.push_back(Dim(axes[s].steps()));
    order.push_back(2 + count + s);
    order.push_back(1 + s);
    merged.push_back(Dim(axes[s].steps() * axes[s].spread));
    start[2 + s] = Dim(axes[s].skipped());
  }
  y = builder.Reshape(builder.Transpose(builder.Reshape(y, split), order),
                      merged);
  Attributes slice;
  slice.Set("start", StaticValue::Dims(start));
  slice.Set("size", StaticValue::Dims(shape));
  slice.Set("stride", StaticValue::Ints(std::vector<int>(shape.size(), 1)));
  return builder.Apply(Primitive::kSlice, {y}, slice);
}

}  // namespace

Graph PhasesOfConvolutions(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return AxesOf(graph, v).has_value(); },
      [&](GraphCopy& copy, Value v) {
        return InPhases(graph, v, copy.Operands(v), copy.builder());
      });
}

bool HasAbsentPlaces(const Graph& graph, Value kernel) {
  bool reversed = false;
  for (Value v = kernel; IsPrimitive(graph.node(v).op);
       v = graph.operands(v)[0]) {
    const Primitive primitive = ToPrimitive(graph.node(v).op);
    if (primitive == Primitive::kPad) {
      return reversed && IsStored(graph, graph.operands(v)[0]);
    }
    reversed |= primitive == Primitive::kReverse;
    if (primitive != Primitive::kReverse && primitive != Primitive::kReshape &&
        primitive != Primitive::kTranspose && !IsStored(graph, v)) {
      return false;
    }
  }
  return false;
}

}  // namespace cleave
