#include "engine/codegen/products_of_windows.h"

#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// Places that are too few to be the columns of a product.
constexpr int64_t kFewColumns = 16;
// Places of one image that are columns enough: little of a panel is left over.
constexpr int64_t kColumnsOfImage = 512;

bool IsNegative(const Dim& dim) { return dim.Value().value_or(0) < 0; }

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

// Zeros around the spatial axes and between their elements, in memory. Elements
// that a negative padding leaves out stay.
Value Padded(GraphBuilder& builder, Value x, const Attributes& attributes) {
  const auto dilations = attributes.GetInts("lhs_dilation");
  std::vector<int64_t> interior(2, 0);
  for (const int64_t dilation : dilations) interior.push_back(dilation - 1);
  const std::vector<int64_t> none(interior.size(), 0);
  Attributes pad;
  pad.Set("interior", StaticValue::Ints(interior));
  bool any = interior != none;
  for (const char* side : {"low", "high"}) {
    std::vector<Dim> zeros(2, Dim(0));
    for (const Dim& padding : attributes.GetDims(side)) {
      zeros.push_back(IsNegative(padding) ? Dim(0) : padding);
    }
    any = any || zeros != std::vector<Dim>(zeros.size(), Dim(0));
    pad.Set(side, StaticValue::Dims(zeros));
  }
  if (!any) return x;
  const Value zero = builder.Constant(Exact(0), builder.type(x).dtype);
  return Stored(builder, builder.Apply(Primitive::kPad, {x, zero}, pad));
}

// Whether the node is of Stored: no graph has another such conversion.
bool IsStored(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kConvert) &&
         graph.type(v).dtype == graph.type(graph.operands(v)[0]).dtype;
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

// The windows of a convolution's first operand: [n, c, counts.., sizes..].
Value WindowsOf(const Graph& graph, Value v, Value x, GraphBuilder& builder) {
  const Attributes& attributes = graph.attributes(v);
  const TensorType& type = graph.type(v);
  const TensorType& w = graph.type(graph.operands(v)[1]);
  std::vector<Dim> low;
  for (const Dim& padding : attributes.GetDims("low")) {
    low.push_back(IsNegative(padding) ? padding : Dim(0));
  }
  Attributes windows;
  windows.Set("counts",
              StaticValue::Dims({type.shape.begin() + 2, type.shape.end()}));
  windows.Set("sizes", StaticValue::Dims({w.shape.begin() + 2, w.shape.end()}));
  windows.Set("low", StaticValue::Dims(low));
  windows.Set("strides", attributes.Get("stride"));
  windows.Set("dilations", attributes.Get("rhs_dilation"));
  const Value zero = builder.Constant(Exact(0), type.dtype);
  return builder.Apply(Primitive::kWindows,
                       {Padded(builder, x, attributes), zero}, windows);
}

Value Dot(GraphBuilder& builder, Value a, Value b, bool batched,
          std::vector<int64_t> contract_a, std::vector<int64_t> contract_b) {
  const std::vector<int64_t> batch(batched ? 1 : 0, 0);
  Attributes attributes;
  attributes.Set("batch_a", StaticValue::Ints(batch));
  attributes.Set("batch_b", StaticValue::Ints(batch));
  attributes.Set("contract_a", StaticValue::Ints(std::move(contract_a)));
  attributes.Set("contract_b", StaticValue::Ints(std::move(contract_b)));
  return builder.Apply(Primitive::kDotGeneral, {a, b}, attributes);
}

std::vector<int64_t> Numbers(int first, int count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<int> Order(std::initializer_list<std::pair<int, int>> ranges) {
  std::vector<int> order;
  for (const auto& [first, count] : ranges) {
    for (int i = 0; i < count; ++i) order.push_back(first + i);
  }
  return order;
}

// The weights for each image of a batch.
Value ForEachImage(GraphBuilder& builder, Value weights, const Dim& images) {
  Shape shape = builder.type(weights).shape;
  Attributes broadcast;
  broadcast.Set("axes",
                StaticValue::Ints(Numbers(1, static_cast<int>(shape.size()))));
  shape.insert(shape.begin(), images);
  broadcast.Set("shape", StaticValue::Dims(shape));
  return builder.Apply(Primitive::kBroadcastInDim, {weights}, broadcast);
}

// Whether an image has places enough for the columns of a product of its own.
bool HasColumns(const TensorType& type) {
  return type.shape[0] == Dim(1) ||
         *SizeOf({type.shape.begin() + 2, type.shape.end()}) >= kColumnsOfImage;
}

// Whether each window is one element, at its own place.
bool ReadsPoints(const Attributes& attributes, const TensorType& w) {
  for (size_t d = 2; d < w.shape.size(); ++d) {
    if (w.shape[d] != Dim(1)) return false;
  }
  for (const char* side : {"low", "high"}) {
    for (const Dim& padding : attributes.GetDims(side)) {
      if (padding != Dim(0)) return false;
    }
  }
  for (const Dim& stride : attributes.GetDims("stride")) {
    if (stride != Dim(1)) return false;
  }
  for (const int64_t dilation : attributes.GetInts("lhs_dilation")) {
    if (dilation != 1) return false;
  }
  return true;
}

// A product for each image, of the image as it is.
Value ProductOfPoints(const Graph& graph, Value v, Value x, Value weights,
                      GraphBuilder& builder) {
  const Shape& shape = builder.type(weights).shape;
  Attributes attributes;
  attributes.Set("shape", StaticValue::Dims({shape[0], shape[1]}));
  weights = builder.Apply(Primitive::kReshape, {weights}, attributes);
  weights = ForEachImage(builder, weights, graph.type(v).shape[0]);
  return Dot(builder, weights, x, true, {2}, {1});
}

// The places are the columns of the product: rows of images are copied whole.
// The images are a batch where one has columns enough, else columns, too.
Value ProductOfColumns(const Graph& graph, Value v, Value windows,
                       Value weights, GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  const int k = type.rank() - 2;
  const std::vector<int64_t> contracted = Numbers(1, 1 + k);
  if (HasColumns(type)) {
    windows = builder.Transpose(
        windows, Order({{0, 2}, {2 + k, k}, {2, k}}));  // [n, c, a, b, h, w]
    weights = ForEachImage(builder, weights, type.shape[0]);
    return Dot(builder, weights, Stored(builder, windows), true,
               Numbers(2, 1 + k), contracted);
  }
  windows =
      builder.Transpose(windows, Order({{1, 1}, {2 + k, k}, {0, 1}, {2, k}}));
  const Value product = Dot(builder, weights, Stored(builder, windows), false,
                            contracted, Numbers(0, 1 + k));
  return builder.Transpose(product, Order({{1, 1}, {0, 1}, {2, k}}));
}

// The places are the rows of the product: windows are copied whole.
Value ProductOfRows(Value windows, Value weights, int k,
                    GraphBuilder& builder) {
  windows =
      builder.Transpose(windows, Order({{0, 1}, {2, k}, {1, 1}, {2 + k, k}}));
  const Value product = Dot(builder, Stored(builder, windows), weights, false,
                            Numbers(1 + k, 1 + k), Numbers(1, 1 + k));
  return builder.Transpose(product, Order({{0, 1}, {1 + k, 1}, {1, k}}));
}

// Operand `i` of v, stored where movement lies behind it, as behind the turned
// weights of the other operand's gradient: the product would find each element
// anew for many rows.
Value Packed(const Graph& graph, Value v, int i, Value operand,
             GraphBuilder& builder) {
  Value from = graph.operands(v)[i];
  while (graph.node(from).op == ToOpId(Primitive::kReshape)) {
    from = graph.operands(from)[0];
  }
  const OpId op = graph.node(from).op;
  if (!IsPrimitive(op) ||
      ClassOf(ToPrimitive(op)) != PrimitiveClass::kMovement) {
    return operand;
  }
  return Stored(builder, operand);
}

Value Product(const Graph& graph, Value v, absl::Span<const Value> operands,
              GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  const TensorType& w = graph.type(graph.operands(v)[1]);
  const Value weights = Packed(graph, v, 1, operands[1], builder);
  if (type.rank() > 2 && HasColumns(type) &&
      ReadsPoints(graph.attributes(v), w)) {
    return ProductOfPoints(graph, v, Packed(graph, v, 0, operands[0], builder),
                           weights, builder);
  }
  const Value windows = WindowsOf(graph, v, operands[0], builder);
  Shape places = type.shape;
  places[1] = Dim(1);
  const bool columns = type.rank() > 2 &&
                       *type.shape.back().Value() >= *w.shape.back().Value() &&
                       *SizeOf(places) >= kFewColumns;
  return columns ? ProductOfColumns(graph, v, windows, weights, builder)
                 : ProductOfRows(windows, weights, type.rank() - 2, builder);
}

// Whether the windows reach beyond what they are taken of, or hold the zeros
// that dilation puts between elements.
bool HoldAbsent(const Graph& graph, Value windows) {
  const Value x = graph.operands(windows)[0];
  if (IsStored(graph, x)) return true;  // padded
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

std::optional<int> FiniteOperand(const Graph& graph, Value node) {
  const auto is = [&](Value v, Primitive primitive) {
    return graph.node(v).op == ToOpId(primitive);
  };
  const auto operands = graph.operands(node);
  if (is(node, Primitive::kConv)) {
    if (IsStored(graph, operands[0])) return 1;
    return std::nullopt;
  }
  if (!is(node, Primitive::kDotGeneral)) return std::nullopt;
  for (const int side : {0, 1}) {
    Value v = operands[side];
    if (!IsStored(graph, v)) continue;
    v = graph.operands(v)[0];
    if (is(v, Primitive::kTranspose)) v = graph.operands(v)[0];
    if (is(v, Primitive::kWindows) && HoldAbsent(graph, v)) return 1 - side;
  }
  return std::nullopt;
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
