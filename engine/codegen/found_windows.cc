#include "engine/codegen/found_windows.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/codegen/stored.h"
#include "ops/dtype.h"
#include "ops/exact.h"
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

// The first elements of x along each axis.
Value FirstOf(GraphBuilder& builder, Value x, const Shape& shape) {
  if (builder.type(x).shape == shape) return x;
  Attributes slice;
  slice.Set("start", StaticValue::Dims(std::vector<Dim>(shape.size(), Dim(0))));
  slice.Set("size", StaticValue::Dims(shape));
  slice.Set("stride",
            StaticValue::Dims(std::vector<Dim>(shape.size(), Dim(1))));
  return builder.Apply(Primitive::kSlice, {x}, slice);
}

// x with zeros behind it along the last axis.
Value WithZerosBehind(GraphBuilder& builder, Value x, const Shape& shape) {
  const Shape& from = builder.type(x).shape;
  if (from == shape) return x;
  std::vector<Dim> none(shape.size(), Dim(0));
  Attributes pad;
  pad.Set("interior", StaticValue::Ints(std::vector<int64_t>(shape.size(), 0)));
  pad.Set("low", StaticValue::Dims(none));
  none.back() = shape.back() - from.back();
  pad.Set("high", StaticValue::Dims(none));
  const Value zero = builder.Constant(Exact(0), builder.type(x).dtype);
  return builder.Apply(Primitive::kPad, {x, zero}, pad);
}

}  // namespace

bool MeetsRowsOfImages(const Convolution& conv) {
  // The time that an element of a window takes to be stored, in that of a
  // multiplication.
  constexpr double kStored = 47;
  // A tile of one vector takes a factor for each multiplication.
  constexpr double kOneVector = 1.5;
  constexpr double kFound = 1.05;
  constexpr int64_t kLeastRows = 2;
  if (conv.g > 0 || conv.k == 0 || conv.type.dtype != DType::kF32 ||
      conv.attributes.GetDims("stride").back() != Dim(1)) {
    return false;
  }
  const int64_t rows = *conv.type.shape[1].Value();
  const auto places = static_cast<double>(*conv.type.shape.back().Value());
  const auto columns = static_cast<double>(TileColumns(conv.type.shape.back()));
  const double time =
      columns / places * (columns > kVector ? kFound : kOneVector);
  return rows >= kLeastRows && rows * (time - 1) < kStored;
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

std::optional<Value> WindowsOfRows(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kTranspose)) return std::nullopt;
  const Value windows = graph.operands(v)[0];
  if (graph.node(windows).op != ToOpId(Primitive::kWindows)) {
    return std::nullopt;
  }
  const auto rank = static_cast<int64_t>(graph.type(windows).rank());
  const auto places =
      static_cast<int64_t>(graph.attributes(windows).GetDims("counts").size());
  // The places of the last axis stand last, behind the windows' own axes.
  return graph.attributes(v).GetInts("axes").back() == rank - places - 1
             ? std::optional(windows)
             : std::nullopt;
}

std::optional<Value> WindowsOfTerms(const Graph& graph, Value reshape) {
  if (graph.node(reshape).op != ToOpId(Primitive::kReshape)) {
    return std::nullopt;
  }
  const Value v = graph.operands(reshape)[0];
  if (graph.node(v).op != ToOpId(Primitive::kTranspose)) return std::nullopt;
  const Value windows = graph.operands(v)[0];
  if (graph.node(windows).op != ToOpId(Primitive::kWindows)) {
    return std::nullopt;
  }
  // Its last axes are those of each window, which a reshape of all of them to
  // one would not keep.
  const std::vector<int64_t> axes = graph.attributes(v).GetInts("axes");
  const auto last = static_cast<int64_t>(axes.size()) - 1;
  const bool kept =
      graph.type(reshape).shape.back() == graph.type(windows).shape.back();
  return axes.back() == last && kept ? std::optional(windows) : std::nullopt;
}

}  // namespace cleave
