#include "engine/codegen/products_of_windows.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/codegen/convolution_parts.h"
#include "engine/codegen/found_windows.h"
#include "engine/codegen/phases_of_convolutions.h"
#include "engine/codegen/stored.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

using internal_windows::CheapestWindows;
using internal_windows::Convolution;
using internal_windows::Dot;
using internal_windows::FindsTerms;
using internal_windows::ForEach;
using internal_windows::Numbers;
using internal_windows::Order;
using internal_windows::Padded;
using internal_windows::ProductOfPlaces;
using internal_windows::ProductOfRowsOfImages;
using internal_windows::SizeOf;
using internal_windows::SumOfProducts;
using internal_windows::WindowsIn;
using internal_windows::WindowsOf;

namespace {

// Places that are too few to be the columns of a product.
constexpr int64_t kFewColumns = 16;
// Terms of an output, and outputs of a group, that are too few for a product.
constexpr int64_t kFewTerms = 32;
constexpr int64_t kFewOutputs = 4;
// Places of one image that are columns enough: little of a panel is left over.
constexpr int64_t kColumnsOfImage = 512;

// The groups of a convolution, and how they meet: [n, o, h, w] is made of x of
// [n, c, ..] and w of [o, c, a, b] in each.
struct Groups {
  Groups(const Graph& graph, Value v)
      : features(graph.attributes(v).GetInt("groups")),
        batches(graph.attributes(v).GetInt("batch_groups")) {}
  int64_t count() const { return features * batches; }
  // Axes that number the groups.
  int axes() const { return count() > 1 ? 1 : 0; }

  const int64_t features;
  const int64_t batches;
};

// The elements of all windows, where they are known.
std::optional<int64_t> WindowSize(const Graph& graph, Value v) {
  const Shape& x = graph.type(graph.operands(v)[0]).shape;
  const Shape& w = graph.type(graph.operands(v)[1]).shape;
  Shape shape = graph.type(v).shape;
  shape[0] = x[0];
  shape[1] = x[1];
  shape.insert(shape.end(), w.begin() + 2, w.end());
  return SizeOf(shape);
}

// Whether each output of a convolution of known extents reads few elements of
// x, and is read for few outputs: as of a depthwise one.
bool IsThin(const Graph& graph, Value v) {
  const Groups groups(graph, v);
  const TensorType& w = graph.type(graph.operands(v)[1]);
  Shape read = w.shape;
  read[0] = Dim(1);
  return groups.count() > 1 &&
         (*SizeOf(read) < kFewTerms ||
          *w.shape[0].Value() / groups.count() < kFewOutputs);
}

// Whether its windows are larger than what each of them makes a number of: the
// gradient of weights.
bool HasLargeWindows(const Graph& graph, Value v) {
  const TensorType& type = graph.type(v);
  const TensorType& w = graph.type(graph.operands(v)[1]);
  return type.rank() > 2 &&
         *SizeOf({type.shape.begin() + 2, type.shape.end()}) <
             *SizeOf({w.shape.begin() + 2, w.shape.end()});
}

// Whether it is one output of each group, of large windows: sums of them.
bool IsSum(const Graph& graph, Value v) {
  const int64_t groups = Groups(graph, v).count();
  return groups > 1 && HasLargeWindows(graph, v) &&
         *graph.type(graph.operands(v)[1]).shape[0].Value() == groups;
}

// Whether the windows of a convolution find place in memory.
bool AreStored(const Graph& graph, Value v) {
  const std::optional<int64_t> size = WindowSize(graph, v);
  const auto bytes = static_cast<int64_t>(ByteSize(graph.type(v).dtype));
  return size && *size <= kMaxWindowBytes / bytes;
}

bool IsProduct(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kConv) ||
      !IsFloat(graph.type(v).dtype)) {
    return false;
  }
  const bool grouped = Groups(graph, v).count() > 1;
  const std::optional<int64_t> weights =
      SizeOf(graph.type(graph.operands(v)[1]).shape);
  if (!WindowSize(graph, v) || !weights) {
    // Channels that a guard compares are not known to be as many here.
    const auto operands = graph.operands(v);
    return !grouped && graph.type(v).rank() > 2 &&
           graph.type(operands[0]).shape[1] == graph.type(operands[1]).shape[1];
  }
  if (*weights == 0) return false;
  if (IsSum(graph, v)) return true;
  return !IsThin(graph, v) && (AreStored(graph, v) || !grouped);
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

// The convolution of what is padded in memory.
Value OfPadded(const Graph& graph, Value v, absl::Span<const Value> operands,
               GraphBuilder& builder) {
  Attributes attributes = graph.attributes(v);
  const Value padded = Padded(builder, operands[0], attributes);
  const std::vector<Dim> none(attributes.GetDims("low").size(), Dim(0));
  for (const char* side : {"low", "high"}) {
    attributes.Set(side, StaticValue::Dims(none));
  }
  return builder.Apply(Primitive::kConv, {padded, operands[1]}, attributes);
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

// [n, c, ..] with the groups as axis 1.
Value InGroups(GraphBuilder& builder, Value x, const Groups& groups) {
  const bool batches = groups.batches > 1;
  Shape shape = builder.type(x).shape;
  const int axis = batches ? 0 : 1;
  shape[axis] = Dim(*shape[axis].Value() / groups.count());
  shape.insert(shape.begin() + axis, Dim(groups.count()));
  x = builder.Reshape(x, shape);
  if (!batches) return x;
  return builder.Transpose(
      x, Order({{1, 1}, {0, 1}, {2, static_cast<int>(shape.size()) - 2}}));
}

Convolution ReadConvolution(const Graph& graph, Value v,
                            absl::Span<const Value> operands,
                            GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  const Shape& w = graph.type(graph.operands(v)[1]).shape;
  const Groups groups(graph, v);
  Convolution conv{graph.attributes(v),
                   type,
                   type.rank() - 2,
                   groups.axes(),
                   operands[0],
                   Packed(graph, v, 1, operands[1], builder),
                   Shape(w.begin() + 2, w.end()),
                   builder};
  if (conv.g == 0) return conv;
  conv.x = InGroups(builder, conv.x, groups);
  Shape shape = w;
  shape[0] = Dim(*w[0].Value() / groups.count());
  shape.insert(shape.begin(), Dim(groups.count()));
  conv.weights = builder.Reshape(conv.weights, shape);
  return conv;
}

// Whether an image has places enough for the columns of a product of its own.
bool HasColumns(const TensorType& type) {
  return type.shape[0] == Dim(1) ||
         *SizeOf({type.shape.begin() + 2, type.shape.end()}) >= kColumnsOfImage;
}

// Whether each window is one element, at its own place.
bool ReadsPoints(const Convolution& conv) {
  const auto all = [](absl::Span<const Dim> dims, int64_t value) {
    return std::all_of(dims.begin(), dims.end(),
                       [&](const Dim& dim) { return dim == Dim(value); });
  };
  const auto dilations = conv.attributes.GetInts("lhs_dilation");
  return all(conv.sizes, 1) && all(conv.attributes.GetDims("low"), 0) &&
         all(conv.attributes.GetDims("high"), 0) &&
         all(conv.attributes.GetDims("stride"), 1) &&
         std::all_of(dilations.begin(), dilations.end(),
                     [](int64_t dilation) { return dilation == 1; });
}

// A product for each image, of the image as it is.
Value ProductOfPoints(const Convolution& conv) {
  Shape shape = conv.builder.type(conv.weights).shape;
  shape.resize(shape.size() - conv.sizes.size());
  const Value weights = ForEach(conv, {conv.type.shape[0]},
                                conv.builder.Reshape(conv.weights, shape));
  return Dot(conv.builder, weights, conv.x, 1 + conv.g, {2 + conv.g},
             {1 + conv.g});
}

// The places are the columns of the product: rows of images are copied whole.
// The images are a batch where one has columns enough, else columns, too.
Value ProductOfColumns(const Convolution& conv, Value windows) {
  GraphBuilder& builder = conv.builder;
  const int g = conv.g;
  const int k = conv.k;
  const std::vector<int64_t> contracted = Numbers(1 + g, 1 + k);
  if (HasColumns(conv.type)) {
    // [n, g, c, a, b, h, w]
    windows = builder.Transpose(
        windows, Order({{0, 2 + g}, {2 + g + k, k}, {2 + g, k}}));
    return Dot(builder, ForEach(conv, {conv.type.shape[0]}, conv.weights),
               Stored(builder, windows), 1 + g, Numbers(2 + g, 1 + k),
               contracted);
  }
  // [g, c, a, b, n, h, w]
  windows = builder.Transpose(
      windows, Order({{1, 1 + g}, {2 + g + k, k}, {0, 1}, {2 + g, k}}));
  const Value product = Dot(builder, conv.weights, Stored(builder, windows), g,
                            contracted, Numbers(g, 1 + k));
  return builder.Transpose(product,
                           Order({{1 + g, 1}, {0, 1 + g}, {2 + g, k}}));
}

// The product where nobody knows how much memory the windows would take, or
// where that is much: panels of columns find them where x is. Images are a
// batch unless the windows are large, as those of a weight's gradient.
Value ProductOfFoundWindows(const Convolution& conv, Value windows) {
  GraphBuilder& builder = conv.builder;
  const int k = conv.k;
  const auto product_of = [](const Shape& shape, int first, int count) {
    Dim size(1);
    for (int d = first; d < first + count; ++d) size = size * shape[d];
    return size;
  };
  const Shape shape = builder.type(windows).shape;
  const Dim terms = shape[1] * product_of(shape, 2 + k, k);
  const Dim places = product_of(shape, 2, k);
  Value weights = builder.Reshape(conv.weights,
                                  {builder.type(conv.weights).shape[0], terms});
  if (SizeOf(conv.sizes)) {
    // As columns the places of an image, or of a row of it: to find a place by
    // its number takes divisions, which are slow by what is not known.
    const int rows = places.Value() ? 0 : k - 1;
    Shape batch = {shape[0]};
    batch.insert(batch.end(), shape.begin() + 2, shape.begin() + 2 + rows);
    Shape flat = batch;
    flat.push_back(terms);
    flat.push_back(product_of(shape, 2 + rows, k - rows));
    windows = builder.Transpose(
        windows,
        Order({{0, 1}, {2, rows}, {1, 1}, {2 + k, k}, {2 + rows, k - rows}}));
    const Value product =
        Dot(builder, ForEach(conv, batch, weights),
            builder.Reshape(windows, flat), 1 + rows, {2 + rows}, {1 + rows});
    return builder.Transpose(
        product, Order({{0, 1}, {1 + rows, 1}, {1, rows}, {2 + rows, 1}}));
  }
  windows =
      builder.Transpose(windows, Order({{1, 1}, {2 + k, k}, {0, 1}, {2, k}}));
  windows = builder.Reshape(windows, {terms, shape[0] * places});
  Shape result = {builder.type(weights).shape[0], shape[0]};
  result.insert(result.end(), shape.begin() + 2, shape.begin() + 2 + k);
  const Value product =
      builder.Reshape(Dot(builder, weights, windows, 0, {1}, {0}), result);
  return builder.Transpose(product, Order({{1, 1}, {0, 1}, {2, k}}));
}

// The places are the rows of the product: windows are copied whole.
Value ProductOfRows(const Convolution& conv, Value windows) {
  GraphBuilder& builder = conv.builder;
  const int g = conv.g;
  const int k = conv.k;
  // [g, n, h, w, c, a, b]
  windows = builder.Transpose(
      windows, Order({{1, g}, {0, 1}, {2 + g, k}, {1 + g, 1}, {2 + g + k, k}}));
  const Value product = Dot(builder, Stored(builder, windows), conv.weights, g,
                            Numbers(1 + g + k, 1 + k), Numbers(1 + g, 1 + k));
  // [g, n, h, w, o] to [n, g, o, h, w]
  return builder.Transpose(product,
                           Order({{g, 1}, {0, g}, {1 + g + k, 1}, {1 + g, k}}));
}

// A convolution with one output of each group, whose windows are large: their
// elements times the weights, added up. Absent ones are left out.
Value SumOfWindows(const Convolution& conv) {
  GraphBuilder& builder = conv.builder;
  const int k = conv.k;
  const DType dtype = conv.type.dtype;
  const DType wide = ByteSize(dtype) < 4 ? DType::kF32 : dtype;
  const auto convert = [&](Value x, DType to) {
    Attributes attributes;
    attributes.Set("dtype", to);
    return builder.type(x).dtype == to
               ? x
               : builder.Apply(Primitive::kConvert, {x}, attributes);
  };
  // [n, g, h, w, c, a, b]
  const auto in_order = [&](Value windows) {
    return builder.Transpose(windows,
                             Order({{0, 2}, {3, k}, {2, 1}, {3 + k, k}}));
  };
  const Value windows =
      in_order(WindowsOf(conv, Padded(builder, conv.x, conv.attributes)));
  const Shape& shape = builder.type(windows).shape;
  Attributes broadcast;
  broadcast.Set("shape", StaticValue::Dims(shape));
  std::vector<int64_t> axes = {1};
  const std::vector<int64_t> reduced = Numbers(2 + k, 1 + k);
  axes.insert(axes.end(), reduced.begin(), reduced.end());
  broadcast.Set("axes", StaticValue::Ints(axes));
  Shape of_group = builder.type(conv.weights).shape;
  of_group.erase(of_group.begin() + 1);
  const Value weights =
      builder.Apply(Primitive::kBroadcastInDim,
                    {builder.Reshape(conv.weights, of_group)}, broadcast);
  Value product = builder.Apply(
      Primitive::kMul, {convert(windows, wide), convert(weights, wide)});
  const Value ones = builder.BroadcastTo(
      builder.Constant(Exact(1), DType::kBool), builder.type(conv.x).shape);
  const Value there = in_order(WindowsOf(
      conv, Padded(builder, ones, conv.attributes, /*stored=*/false)));
  const Value zero = builder.BroadcastTo(builder.Constant(Exact(0), wide),
                                         builder.type(product).shape);
  product = builder.Apply(Primitive::kSelect, {there, product, zero});
  Attributes sum;
  sum.Set("axes", StaticValue::Ints(reduced));
  return convert(builder.Apply(Primitive::kReduceSum, {product}, sum), dtype);
}

Value Product(const Graph& graph, Value v, absl::Span<const Value> operands,
              bool rows_of_images, GraphBuilder& builder) {
  Convolution conv = ReadConvolution(graph, v, operands, builder);
  const WindowsIn found =
      rows_of_images && SizeOf(conv.type.shape) && !HasLargeWindows(graph, v)
          ? CheapestWindows(conv)
          : WindowsIn::kMemory;
  Value product;
  if (IsSum(graph, v)) {
    product = SumOfWindows(conv);
  } else if (conv.k > 0 && ReadsPoints(conv) &&
             (!AreStored(graph, v) || HasColumns(conv.type))) {
    if (Groups(graph, v).batches > 1) {
      conv.x = Stored(builder, conv.x);
    } else {
      conv.x = Packed(graph, v, 0, conv.x, builder);
    }
    product = ProductOfPoints(conv);
  } else if (found == WindowsIn::kRows) {
    product = ProductOfPlaces(conv);
  } else if (found == WindowsIn::kColumns) {
    product = ProductOfRowsOfImages(conv);
  } else if (!AreStored(graph, v)) {
    product = ProductOfFoundWindows(
        conv, WindowsOf(conv, Padded(builder, conv.x, conv.attributes)));
  } else {
    const Value windows =
        WindowsOf(conv, Padded(builder, conv.x, conv.attributes));
    Shape places = conv.type.shape;
    places[1] = Dim(1);
    const bool columns =
        conv.k > 0 &&
        *conv.type.shape.back().Value() >= *conv.sizes.back().Value() &&
        *SizeOf(places) >= kFewColumns;
    if (rows_of_images && HasLargeWindows(graph, v) && FindsTerms(conv)) {
      product = SumOfProducts(conv, windows);
    } else {
      product = columns ? ProductOfColumns(conv, windows)
                        : ProductOfRows(conv, windows);
    }
  }
  return builder.Reshape(product, conv.type.shape);
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
  return (extent - last).Value().value_or(0) > 0;
}

std::vector<int> FiniteOperands(const Graph& graph, Value node) {
  const auto is = [&](Value v, Primitive primitive) {
    return graph.node(v).op == ToOpId(primitive);
  };
  const auto operands = graph.operands(node);
  if (is(node, Primitive::kConv)) {
    if (IsStored(graph, operands[0])) return {1};
    return {};
  }
  if (!is(node, Primitive::kDotGeneral)) return {};
  std::vector<int> finite;
  for (const int side : {0, 1}) {
    Value v = operands[side];
    if (HasAbsentPlaces(graph, v)) {
      finite.push_back(1 - side);
      continue;
    }
    auto found = WindowsOfRows(graph, v);
    if (!found) found = WindowsOfPlaces(graph, v);
    if (found) {
      v = *found;
    } else {
      if (!IsStored(graph, v) && !is(v, Primitive::kReshape)) continue;
      v = graph.operands(v)[0];
      if (is(v, Primitive::kTranspose)) v = graph.operands(v)[0];
    }
    if (is(v, Primitive::kWindows) && HoldAbsent(graph, v)) {
      finite.push_back(1 - side);
    }
  }
  return finite;
}

Graph ProductsOfWindows(const Graph& graph, bool rows_of_images) {
  return RewriteNodes(
      graph,
      [&](Value v) {
        return IsProduct(graph, v) || IsPaddedInGroups(graph, v);
      },
      [&](GraphCopy& copy, Value v) {
        return IsProduct(graph, v)
                   ? Product(graph, v, copy.Operands(v), rows_of_images,
                             copy.builder())
                   : OfPadded(graph, v, copy.Operands(v), copy.builder());
      });
}

}  // namespace cleave
