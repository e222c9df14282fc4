#include "engine/codegen/found_windows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/codegen/panels.h"
#include "engine/codegen/stored.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace internal_windows {
namespace {

// The f32 of the longest vector.
constexpr int64_t kVector = 16;

// The columns of all tiles of so many, where tiles meet them as they lie in
// memory: one vector, or a number of them that tiles of two, three or four
// divide.
int64_t TileColumns(const Dim& columns) {
  int64_t vectors = (*columns.Value() + kVector - 1) / kVector;
  if (vectors > 1 && vectors % 2 != 0 && vectors % 3 != 0) ++vectors;
  return vectors * kVector;
}

// The outputs of a group.
int64_t OutputsOf(const Convolution& conv) {
  const Shape& weights = conv.builder.type(conv.weights).shape;
  return *weights[conv.g].Value();
}

// Columns of a panel of weights: one vector, or tiles of two or three.
int64_t PanelColumns(int64_t outputs) {
  const int64_t vectors = (outputs + kVector - 1) / kVector;
  if (vectors == 1) return kVector;
  return vectors % 2 != 0 && vectors % 3 == 0 ? 3 * kVector : 2 * kVector;
}

// Rows of all tiles of so many places, about.
int64_t TileRows(int64_t places) {
  constexpr int64_t kFewest = 5;
  constexpr int64_t kMost = 14;
  int64_t least = INT64_MAX;
  for (int64_t rows = kFewest; rows <= kMost; ++rows) {
    least = std::min(least, (places + rows - 1) / rows * rows);
  }
  return least;
}

// The times of a multiplication that is wanted, in that of one in the tiles of
// a product whose windows are stored; infinite where there is no such product.
//
// The places of a row are the rows of tiles, and vectors hold outputs.
double TimeOfPlaces(const Convolution& conv) {
  // A tile of one vector takes a factor for each multiplication.
  constexpr double kOneVector = 1.1;
  // Each place of a row is in a vector of its own.
  constexpr double kStrided = 1.3;
  if (conv.k == 0 || conv.type.dtype != DType::kF32 ||
      SizeOf(conv.sizes) == 1) {
    return HUGE_VAL;
  }
  const int64_t outputs = OutputsOf(conv);
  const int64_t columns = PanelColumns(outputs);
  const int64_t padded = (outputs + columns - 1) / columns * columns;
  const bool strided = conv.attributes.GetDims("stride").back() != Dim(1);
  const int64_t places = *conv.type.shape.back().Value();
  const auto computed = static_cast<double>(padded * TileRows(places));
  return computed / static_cast<double>(outputs * places) *
         (columns == kVector ? kOneVector : 1) * (strided ? kStrided : 1);
}

// The places of a row are in vectors, and outputs are the rows of tiles.
double TimeOfRowsOfImages(const Convolution& conv) {
  constexpr double kOneVector = 1.5;
  // Vectors begin anywhere.
  constexpr double kUnaligned = 1.2;
  constexpr int64_t kLeastRows = 2;
  if (conv.g > 0 || conv.k == 0 || conv.type.dtype != DType::kF32 ||
      conv.attributes.GetDims("stride").back() != Dim(1) ||
      OutputsOf(conv) < kLeastRows) {
    return HUGE_VAL;
  }
  const auto places = static_cast<double>(*conv.type.shape.back().Value());
  const auto columns = static_cast<double>(TileColumns(conv.type.shape.back()));
  return columns / places * (columns > kVector ? kUnaligned : kOneVector);
}

}  // namespace

WindowsIn CheapestWindows(const Convolution& conv) {
  const double places = TimeOfPlaces(conv);
  const double rows = TimeOfRowsOfImages(conv);
  // The time that an element of a window takes to be stored, in that of a
  // multiplication.
  constexpr double kStored = 47;
  const double stored = 1 + kStored / static_cast<double>(OutputsOf(conv));
  if (places < rows && places < stored) return WindowsIn::kRows;
  return rows < stored ? WindowsIn::kColumns : WindowsIn::kMemory;
}

Value ProductOfRowsOfImages(const Convolution& conv) {
  GraphBuilder& builder = conv.builder;
  const int k = conv.k;
  const int64_t columns = TileColumns(conv.type.shape.back());
  const int64_t beyond = columns - *conv.type.shape.back().Value();
  Attributes attributes = conv.attributes;
  std::vector<Dim> high = attributes.GetDims("high");
  high.back() = high.back() + Dim(beyond);
  attributes.Set("high", StaticValue::Dims(high));
  TensorType type = conv.type;
  type.shape.back() = Dim(columns);
  const Convolution wide{attributes, type,         k,          0,
                         conv.x,     conv.weights, conv.sizes, builder};
  // [n, d, h, c, a, b, w]
  const Value windows = builder.Transpose(
      WindowsOf(wide, Padded(builder, conv.x, attributes)),
      Order({{0, 1}, {2, k - 1}, {1, 1}, {2 + k, k}, {1 + k, 1}}));
  Shape batch = {type.shape[0]};
  batch.insert(batch.end(), type.shape.begin() + 2, type.shape.end() - 1);
  const Value product =
      Dot(builder, ForEach(conv, batch, conv.weights), windows, k,
          Numbers(k + 1, 1 + k), Numbers(k, 1 + k));
  // [n, d, h, o, w] to [n, o, d, h, w]
  const Value result = builder.Transpose(
      product, Order({{0, 1}, {k, 1}, {1, k - 1}, {k + 1, 1}}));
  return FirstOf(builder, result, conv.type.shape);
}

Value ProductOfPlaces(const Convolution& conv) {
  GraphBuilder& builder = conv.builder;
  const int k = conv.k;
  const int g = conv.g;
  const int64_t outputs = OutputsOf(conv);
  const int64_t columns = PanelColumns(outputs);
  const int64_t panels = (outputs + columns - 1) / columns;
  // [g, n, d, h, w, c, a, b]
  const Value left = builder.Transpose(
      WindowsOf(conv, Padded(builder, conv.x, conv.attributes)),
      Order({{1, g}, {0, 1}, {2 + g, k}, {1 + g, 1}, {2 + g + k, k}}));
  // [g, o, c, a, b] to [g, panels, c, a, b, columns] in memory, which is read
  // as [g, c, a, b, o].
  Value right =
      builder.Transpose(conv.weights, Order({{0, g}, {1 + g, 1 + k}, {g, 1}}));
  Shape terms = builder.type(right).shape;
  terms.back() = Dim(panels * columns);
  right = WithZerosBehind(builder, right, terms);
  Shape in_panels = terms;
  in_panels.back() = Dim(panels);
  in_panels.emplace_back(columns);
  right = builder.Transpose(
      builder.Reshape(right, in_panels),
      Order({{0, g}, {g + 1 + k, 1}, {g, 1 + k}, {g + 2 + k, 1}}));
  right = builder.Transpose(
      Stored(builder, right),
      Order({{0, g}, {g + 1, 1 + k}, {g, 1}, {g + 2 + k, 1}}));
  right = builder.Reshape(right, terms);
  // For each row of an image.
  Shape each = builder.type(left).shape;
  each.resize(g + k);
  std::vector<int64_t> axes = Numbers(0, g);
  for (int axis = g; axis < static_cast<int>(terms.size()); ++axis) {
    axes.push_back(axis + k);
    each.push_back(terms[axis]);
  }
  Attributes broadcast;
  broadcast.Set("shape", StaticValue::Dims(each));
  broadcast.Set("axes", StaticValue::Ints(axes));
  right = builder.Apply(Primitive::kBroadcastInDim, {right}, broadcast);
  const Value product = Dot(builder, left, right, g + k,
                            Numbers(g + k + 1, 1 + k), Numbers(g + k, 1 + k));
  Shape kept = builder.type(product).shape;
  kept.back() = Dim(outputs);
  // [g, n, d, h, w, o] to [n, g, o, d, h, w]
  return builder.Transpose(FirstOf(builder, product, kept),
                           Order({{g, 1}, {0, g}, {1 + g + k, 1}, {1 + g, k}}));
}

bool FindsTerms(const Convolution& conv) {
  constexpr int64_t kLeastColumns = 8;
  constexpr int64_t kMostPlaces = 8;
  return conv.g == 0 && conv.type.dtype == DType::kF32 &&
         *conv.type.shape.back().Value() <= kMostPlaces &&
         *conv.type.shape[1].Value() >= kLeastColumns;
}

Value SumOfProducts(const Convolution& conv, Value windows) {
  constexpr int64_t kCachedTerms = 4096;
  constexpr int64_t kLeastTerms = 512;
  GraphBuilder& builder = conv.builder;
  const int k = conv.k;
  const Dim outputs = conv.type.shape[1];
  // [o, n, h, w] to [n, h, w, o]
  Value right = builder.Transpose(conv.weights, Order({{1, 1 + k}, {0, 1}}));
  Shape terms = builder.type(right).shape;
  terms.back() = Dim(TileColumns(outputs));
  right = Stored(builder, WithZerosBehind(builder, right, terms));
  terms.pop_back();
  const auto terms_from = [&](int axis) {
    return *SizeOf({terms.begin() + axis, terms.end()});
  };
  int batch = 0;
  while (batch < k && terms_from(batch) > kCachedTerms &&
         terms_from(batch + 1) >= kLeastTerms) {
    ++batch;
  }
  // [n, h.., (c, a, b), w..]: the axes of images and of windows are 1 and those
  // behind the places.
  const int first = std::min(batch, 1);
  const int rest = batch - first;
  Value left = builder.Transpose(windows, Order({{1, first},
                                                 {2 + k, rest},
                                                 {0, 1},
                                                 {2, k},
                                                 {1, 1 - first},
                                                 {2 + k + rest, k - rest}}));
  Shape rows = {conv.type.shape[0]};
  rows.insert(rows.end(), conv.type.shape.begin() + 2, conv.type.shape.end());
  Shape flat(terms.begin(), terms.begin() + batch);
  flat.emplace_back(*SizeOf(rows));
  flat.insert(flat.end(), terms.begin() + batch, terms.end());
  left = builder.Reshape(left, flat);
  Value product =
      Dot(builder, left, right, batch, Numbers(1 + batch, 1 + k - batch),
          Numbers(batch, 1 + k - batch));
  if (batch > 0) {
    Attributes sum;
    sum.Set("axes", StaticValue::Ints(Numbers(0, batch)));
    product = builder.Apply(Primitive::kReduceSum, {product}, sum);
  }
  Shape kept = builder.type(product).shape;
  kept.back() = outputs;
  rows.push_back(outputs);
  product = builder.Reshape(FirstOf(builder, product, kept), rows);
  return builder.Transpose(product, Order({{0, 1}, {1 + k, 1}, {1, k}}));
}

}  // namespace internal_windows

namespace {

// The windows that `v` is, with their axes in another order.
std::optional<Value> TransposedWindows(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kTranspose)) return std::nullopt;
  const Value windows = graph.operands(v)[0];
  return graph.node(windows).op == ToOpId(Primitive::kWindows)
             ? std::optional(windows)
             : std::nullopt;
}

// The axis of the windows that is the last one of the transpose `v`.
int64_t LastAxis(const Graph& graph, Value v) {
  return graph.attributes(v).GetInts("axes").back();
}

}  // namespace

std::optional<Value> WindowsOfRows(const Graph& graph, Value v) {
  const std::optional<Value> windows = TransposedWindows(graph, v);
  if (!windows) return std::nullopt;
  const auto rank = static_cast<int64_t>(graph.type(*windows).rank());
  const auto places =
      static_cast<int64_t>(graph.attributes(*windows).GetDims("counts").size());
  // The places of the last axis stand last, behind the windows' own axes.
  return LastAxis(graph, v) == rank - places - 1 ? windows : std::nullopt;
}

std::optional<Value> WindowsOfPlaces(const Graph& graph, Value v) {
  const std::optional<Value> windows = TransposedWindows(graph, v);
  return windows && LastAxis(graph, v) == graph.type(v).rank() - 1
             ? windows
             : std::nullopt;
}

std::optional<Value> PanelsOf(const Graph& graph, Value v) {
  for (const Primitive primitive :
       {Primitive::kBroadcastInDim, Primitive::kReshape,
        Primitive::kTranspose}) {
    if (graph.node(v).op != ToOpId(primitive)) return std::nullopt;
    v = graph.operands(v)[0];
  }
  return v;
}

std::optional<Value> WindowsOfTerms(const Graph& graph, Value reshape) {
  if (graph.node(reshape).op != ToOpId(Primitive::kReshape)) {
    return std::nullopt;
  }
  const std::optional<Value> windows =
      WindowsOfPlaces(graph, graph.operands(reshape)[0]);
  // The last axes are those of each window, which a reshape of all of them to
  // one would not keep.
  return windows && graph.type(reshape).shape.back() ==
                        graph.type(*windows).shape.back()
             ? windows
             : std::nullopt;
}

}  // namespace cleave
