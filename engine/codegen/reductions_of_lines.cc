#include "engine/codegen/reductions_of_lines.h"

#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The longest line that is taken apart.
constexpr int64_t kShortLine = 8;

bool IsNumber(DType dtype) { return IsFloat(dtype) || IsInt(dtype); }

// Whether v reduces the last axis, and none else.
bool ReducesLast(const Graph& graph, Value v) {
  const TensorType& x = graph.type(graph.operands(v)[0]);
  const std::vector<int64_t> axes = graph.attributes(v).GetInts("axes");
  return axes.size() == 1 && axes[0] + 1 == x.rank() && IsNumber(x.dtype);
}

bool IsArg(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  return (op == ToOpId(Primitive::kArgmax) ||
          op == ToOpId(Primitive::kArgmin)) &&
         ReducesLast(graph, v);
}

// The primitive that combines two elements of a reduction of a short line of an
// input. Of narrow floats the sums are kept wider: nullopt.
std::optional<Primitive> CombinerOf(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  const bool sum = op == ToOpId(Primitive::kReduceSum);
  const bool max = op == ToOpId(Primitive::kReduceMax);
  if (!sum && !max && op != ToOpId(Primitive::kReduceMin)) return std::nullopt;
  const Value x = graph.operands(v)[0];
  if (graph.node(x).op != ToOpId(Primitive::kInput) || !ReducesLast(graph, v)) {
    return std::nullopt;
  }
  const TensorType& type = graph.type(x);
  const auto length = type.shape.back().Value();
  // A line alone is no work for vectors over lines.
  if (type.rank() < 2 || !length.has_value() || *length < 1 ||
      *length > kShortLine || ByteSize(type.dtype) < 4) {
    return std::nullopt;
  }
  return sum ? Primitive::kAdd : max ? Primitive::kMax : Primitive::kMin;
}

Attributes Axes(const std::vector<int>& axes) {
  Attributes attributes;
  attributes.Set("axes", StaticValue::Ints(axes));
  return attributes;
}

Value Convert(GraphBuilder& builder, Value x, DType dtype) {
  Attributes attributes;
  attributes.Set("dtype", dtype);
  return builder.Apply(Primitive::kConvert, {x}, attributes);
}

// The least number of an element that is the largest or smallest of its line:
// the first one, and the first NaN where there is one.
Value FirstOfExtremes(GraphBuilder& builder, Value x, bool max) {
  const TensorType type = builder.type(x);
  const int last = type.rank() - 1;
  Attributes reduced = Axes({last});
  reduced.Set("tie", "even");
  const Value extreme = builder.Apply(
      max ? Primitive::kReduceMax : Primitive::kReduceMin, {x}, reduced);
  std::vector<int> kept(last);
  std::iota(kept.begin(), kept.end(), 0);
  Value found = builder.Apply(
      Primitive::kEq, {x, builder.BroadcastInDim(extreme, type.shape, kept)});
  if (IsFloat(type.dtype)) {
    found = builder.Apply(Primitive::kOr,
                          {found, builder.Apply(Primitive::kNe, {x, x})});
  }
  // Extents of kernels are below 2^31.
  Attributes line;
  line.Set("size", type.shape[last]);
  const Value numbers =
      Convert(builder, builder.Apply(Primitive::kIota, {}, line), DType::kI32);
  const Value beyond =
      builder.Constant(Exact(std::numeric_limits<int32_t>::max()),
                       TensorType{DType::kI32, type.shape});
  const Value numbered = builder.Apply(
      Primitive::kSelect,
      {found, builder.BroadcastInDim(numbers, type.shape, {last}), beyond});
  return Convert(builder,
                 builder.Apply(Primitive::kReduceMin, {numbered}, reduced),
                 DType::kI64);
}

// The elements of a short line, one after the other.
Value Combined(GraphBuilder& builder, Value x, Primitive combiner) {
  const TensorType type = builder.type(x);
  const int last = type.rank() - 1;
  const int64_t length = *type.shape[last].Value();
  Shape kept = type.shape;
  kept.pop_back();
  Attributes attributes;
  if (combiner != Primitive::kAdd) attributes.Set("tie", "even");
  Value result;
  for (int64_t i = 0; i < length; ++i) {
    std::vector<Dim> start(type.rank(), Dim(0));
    start[last] = Dim(i);
    Shape size = type.shape;
    size[last] = Dim(1);
    Attributes slice;
    slice.Set("start", StaticValue::Dims(start));
    slice.Set("size", StaticValue::Dims(size));
    slice.Set("stride", StaticValue::Ints(std::vector<int>(type.rank(), 1)));
    const Value element =
        builder.Reshape(builder.Apply(Primitive::kSlice, {x}, slice), kept);
    result = i == 0 ? element
                    : builder.Apply(combiner, {result, element}, attributes);
  }
  return result;
}

}  // namespace

Graph ReductionsOfLines(const Graph& graph) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    any |= IsArg(graph, Value{id}) || CombinerOf(graph, Value{id}).has_value();
  }
  if (!any) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    GraphBuilder& builder = copy.builder();
    builder.SetProvenance(graph.node(v).provenance);
    if (IsArg(graph, v)) {
      return FirstOfExtremes(builder, copy.Operands(v)[0],
                             graph.node(v).op == ToOpId(Primitive::kArgmax));
    }
    if (const auto combiner = CombinerOf(graph, v)) {
      return Combined(builder, copy.Operands(v)[0], *combiner);
    }
    return copy.Keep(v);
  });
}

}  // namespace cleave
