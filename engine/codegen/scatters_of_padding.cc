#include "engine/codegen/scatters_of_padding.h"

#include <cstdint>
#include <vector>

#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool IsZero(const Graph& graph, Value v) {
  return FilledWith(graph, v) == Exact(0);
}

bool AddsPadding(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kScatter)) return false;
  const auto operands = graph.operands(v);
  const Value pad = operands[2];
  if (graph.attributes(v).Get("mode").AsString() != "add" ||
      !IsZero(graph, operands[0]) ||
      graph.node(pad).op != ToOpId(Primitive::kPad) ||
      !IsZero(graph, graph.operands(pad)[1])) {
    return false;
  }
  const Attributes& padding = graph.attributes(pad);
  const int64_t batch = graph.attributes(v).GetInt("batch");
  const int64_t leading = graph.type(operands[1]).rank() - 1;
  for (int64_t d = 0; d < graph.type(pad).rank(); ++d) {
    const auto low = padding.GetDims("low")[d].Value();
    const auto high = padding.GetDims("high")[d].Value();
    if (!low || !high || *low < 0 || *high < 0 ||
        padding.GetDims("interior")[d] != Dim(0)) {
      return false;
    }
    const bool of_index = d >= batch && d < leading;
    if (!of_index && *low + *high > 0) return false;
  }
  return true;
}

// `x` from `start` on, as much as `size` says of its first axes.
Value Sliced(GraphBuilder& builder, Value x, std::vector<Dim> start,
             const Shape& size) {
  Shape shape = builder.type(x).shape;
  std::copy(size.begin(), size.end(), shape.begin());
  start.resize(shape.size(), Dim(0));
  Attributes slice;
  slice.Set("start", StaticValue::Dims(start));
  slice.Set("size", StaticValue::Dims(shape));
  slice.Set("stride", StaticValue::Ints(std::vector<int>(shape.size(), 1)));
  return builder.Apply(Primitive::kSlice, {x}, slice);
}

// The indices of what is no padding. A reshape of numbers becomes one of their
// slice, by which a sort sees how many of its results are read.
Value Indices(GraphCopy& copy, Value index, const std::vector<Dim>& low,
              const Shape& size) {
  const Graph& graph = copy.graph();
  GraphBuilder& builder = copy.builder();
  if (graph.node(index).op == ToOpId(Primitive::kReshape)) {
    const Value base = graph.operands(index)[0];
    Shape shape = graph.type(base).shape;
    shape.push_back(Dim(1));
    if (shape == graph.type(index).shape) {
      shape.assign(size.begin(), size.end());
      shape.push_back(Dim(1));
      return builder.Reshape(Sliced(builder, copy.of(base), low, size), shape);
    }
  }
  return Sliced(builder, copy.of(index), low, size);
}

}  // namespace

Graph ScattersOfPadding(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return AddsPadding(graph, v); },
      [&](GraphCopy& copy, Value v) {
        const auto operands = graph.operands(v);
        const Value pad = operands[2];
        const Value updates = graph.operands(pad)[0];
        const int leading = graph.type(operands[1]).rank() - 1;
        std::vector<Dim> low = graph.attributes(pad).GetDims("low");
        low.resize(leading);
        Shape size = graph.type(updates).shape;
        size.resize(leading);
        return copy.builder().Apply(
            Primitive::kScatter,
            {copy.of(operands[0]), Indices(copy, operands[1], low, size),
             copy.of(updates)},
            graph.attributes(v));
      });
}

}  // namespace cleave
