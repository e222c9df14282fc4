#include "engine/codegen/products_of_windows.h"

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The elements of a shape, where they are known.
std::optional<int64_t> SizeOf(const Shape& shape) {
  int64_t size = 1;
  for (const Dim& dim : shape) {
    const std::optional<int64_t> extent = dim.Value();
    if (!extent || __builtin_mul_overflow(size, *extent, &size)) {
      return std::nullopt;
    }
  }
  return size;
}

// [n, o, h, w] and [o, c, a, b] to [n, c, h, w, a, b].
Shape WindowShape(const TensorType& result, const TensorType& w) {
  Shape shape = result.shape;
  shape[1] = w.shape[1];
  shape.insert(shape.end(), w.shape.begin() + 2, w.shape.end());
  return shape;
}

bool IsProduct(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kConv)) return false;
  const Attributes& attributes = graph.attributes(v);
  if (attributes.GetInt("groups") != 1 ||
      attributes.GetInt("batch_groups") != 1) {
    return false;
  }
  const TensorType& type = graph.type(v);
  if (!IsFloat(type.dtype)) return false;
  const std::optional<int64_t> size =
      SizeOf(WindowShape(type, graph.type(graph.operands(v)[1])));
  return size &&
         *size <= kMaxWindowBytes / static_cast<int64_t>(ByteSize(type.dtype));
}

// Whether a convolution of several groups is padded, by known extents: its
// kernel would ask of each element whether it is there.
bool IsPaddedInGroups(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kConv)) return false;
  const Attributes& attributes = graph.attributes(v);
  if (attributes.GetInt("groups") == 1 ||
      attributes.GetInt("batch_groups") != 1 || !IsFloat(graph.type(v).dtype) ||
      !SizeOf(graph.type(graph.operands(v)[0]).shape)) {
    return false;
  }
  bool any = false;
  for (const char* side : {"low", "high"}) {
    for (const Dim& padding : attributes.GetDims(side)) {
      const std::optional<int64_t> value = padding.Value();
      if (!value || *value < 0) return false;
      any |= *value > 0;
    }
  }
  for (const int64_t dilation : attributes.GetInts("lhs_dilation")) {
    if (dilation != 1) return false;
  }
  return any;
}

// Zeros between the elements of the spatial axes.
Value Dilated(GraphBuilder& builder, Value x,
              absl::Span<const int64_t> dilations) {
  std::vector<int64_t> interior(2, 0);
  bool any = false;
  for (const int64_t dilation : dilations) {
    interior.push_back(dilation - 1);
    any |= dilation != 1;
  }
  if (!any) return x;
  const StaticValue none =
      StaticValue::Ints(std::vector<int64_t>(interior.size(), 0));
  Attributes attributes;
  attributes.Set("low", none);
  attributes.Set("high", none);
  attributes.Set("interior", StaticValue::Ints(interior));
  const Value zero = builder.Constant(Exact(0), builder.type(x).dtype);
  return builder.Apply(Primitive::kPad, {x, zero}, attributes);
}

// The same in memory. A contraction reads its operands many times, each time
// through the movement behind them; a node that is none has its own place.
Value Stored(GraphBuilder& builder, Value x) {
  const TensorType type = builder.type(x);
  Attributes same;
  same.Set("dtype", type.dtype);
  // Apply would leave it out.
  return builder.AddTyped(
      ToOpId(Primitive::kConvert), builder.context()->Intern(same),
      builder.context()->Intern(type), {x}, builder.provenance());
}

// The convolution of what is padded in memory.
Value OfPadded(const Graph& graph, Value v, absl::Span<const Value> operands,
               GraphBuilder& builder) {
  Attributes attributes = graph.attributes(v);
  Attributes pad;
  const std::vector<Dim> none(attributes.GetDims("low").size(), Dim(0));
  for (const char* side : {"low", "high"}) {
    std::vector<Dim> all(2, Dim(0));
    for (const Dim& padding : attributes.GetDims(side)) all.push_back(padding);
    pad.Set(side, StaticValue::Dims(all));
    attributes.Set(side, StaticValue::Dims(none));
  }
  pad.Set("interior",
          StaticValue::Ints(std::vector<int64_t>(none.size() + 2, 0)));
  const Value zero = builder.Constant(Exact(0), graph.type(v).dtype);
  const Value padded = builder.Apply(Primitive::kPad, {operands[0], zero}, pad);
  return builder.Apply(Primitive::kConv, {Stored(builder, padded), operands[1]},
                       attributes);
}

Value Product(const Graph& graph, Value v, absl::Span<const Value> operands,
              GraphBuilder& builder) {
  const Attributes& attributes = graph.attributes(v);
  const TensorType& type = graph.type(v);
  const TensorType& w = graph.type(graph.operands(v)[1]);
  const int k = type.rank() - 2;
  const Shape counts(type.shape.begin() + 2, type.shape.end());
  const Shape sizes(w.shape.begin() + 2, w.shape.end());
  Attributes of_windows;
  of_windows.Set("counts", StaticValue::Dims(counts));
  of_windows.Set("sizes", StaticValue::Dims(sizes));
  of_windows.Set("low", attributes.Get("low"));
  of_windows.Set("strides", attributes.Get("stride"));
  of_windows.Set("dilations", attributes.Get("rhs_dilation"));
  const Value x =
      Dilated(builder, operands[0], attributes.GetInts("lhs_dilation"));
  const Value zero = builder.Constant(Exact(0), type.dtype);
  Value windows = builder.Apply(Primitive::kWindows, {x, zero}, of_windows);
  // The channels behind the places.
  std::vector<int> order = {0};
  for (int d = 0; d < k; ++d) order.push_back(2 + d);
  order.push_back(1);
  for (int d = 0; d < k; ++d) order.push_back(2 + k + d);
  windows = builder.Transpose(windows, order);
  windows = Stored(builder, windows);
  std::vector<int64_t> contract_a, contract_b;
  for (int d = 0; d <= k; ++d) {
    contract_a.push_back(1 + k + d);
    contract_b.push_back(1 + d);
  }
  Attributes of_product;
  of_product.Set("batch_a", StaticValue::Ints(std::vector<int64_t>()));
  of_product.Set("batch_b", StaticValue::Ints(std::vector<int64_t>()));
  of_product.Set("contract_a", StaticValue::Ints(contract_a));
  of_product.Set("contract_b", StaticValue::Ints(contract_b));
  const Value product =
      builder.Apply(Primitive::kDotGeneral, {windows, operands[1]}, of_product);
  order = {0, 1 + k};
  for (int d = 0; d < k; ++d) order.push_back(1 + d);
  return builder.Transpose(product, order);
}

// Whether the windows reach beyond what they are taken of, or hold the zeros
// that dilation puts between elements.
bool HoldAbsent(const Graph& graph, Value windows) {
  const Value x = graph.operands(windows)[0];
  if (graph.node(x).op == ToOpId(Primitive::kPad)) return true;
  const Attributes& attributes = graph.attributes(windows);
  const auto counts = attributes.GetDims("counts");
  const auto sizes = attributes.GetDims("sizes");
  const auto low = attributes.GetDims("low");
  const auto strides = attributes.GetDims("strides");
  const auto dilations = attributes.GetDims("dilations");
  const Shape& shape = graph.type(x).shape;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (low[s] != Dim(0) ||
        !StayInside(shape[shape.size() - counts.size() + s], counts[s],
                    sizes[s], strides[s], dilations[s])) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool StayInside(const Dim& extent, const Dim& count, const Dim& size,
                const Dim& stride, const Dim& dilation) {
  const Dim last = (count - Dim(1)) * stride + (size - Dim(1)) * dilation;
  return last.Value() && extent.Value() && *last.Value() < *extent.Value();
}

bool MultipliesAbsent(const Graph& graph, Value node) {
  const auto is = [&](Value v, Primitive primitive) {
    return graph.node(v).op == ToOpId(primitive);
  };
  if (!is(node, Primitive::kDotGeneral) && !is(node, Primitive::kConv)) {
    return false;
  }
  // A conversion to the same dtype is of Stored: no graph has another.
  Value v = graph.operands(node)[0];
  if (!is(v, Primitive::kConvert) ||
      graph.type(v).dtype != graph.type(graph.operands(v)[0]).dtype) {
    return false;
  }
  v = graph.operands(v)[0];
  if (is(node, Primitive::kConv)) return is(v, Primitive::kPad);
  if (is(v, Primitive::kTranspose)) v = graph.operands(v)[0];
  return is(v, Primitive::kWindows) && HoldAbsent(graph, v);
}

Graph ProductsOfWindows(const Graph& graph) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    any |= IsProduct(graph, Value{id}) || IsPaddedInGroups(graph, Value{id});
  }
  if (!any) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    const bool padded = IsPaddedInGroups(graph, v);
    if (!padded && !IsProduct(graph, v)) return copy.Keep(v);
    copy.builder().SetProvenance(graph.node(v).provenance);
    if (padded) return OfPadded(graph, v, copy.Operands(v), copy.builder());
    return Product(graph, v, copy.Operands(v), copy.builder());
  });
}

}  // namespace cleave
