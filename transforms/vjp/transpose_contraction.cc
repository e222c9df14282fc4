// Transposes of contractions, each in one of its factors: contractions again.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/transpose_primitive.h"

namespace cleave {
namespace {

absl::Status OneFactor(const TransposeNode& node) {
  if (node.linear[0] != node.linear[1]) return absl::OkStatus();
  return absl::InternalError(
      "transpose: a contraction is linear in one factor at a time");
}

// The axes of a tensor of `rank` that are in neither list.
std::vector<int> FreeAxes(int rank, const std::vector<int>& batch,
                          const std::vector<int>& contracted) {
  std::vector<int> free;
  for (int d = 0; d < rank; ++d) {
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracted.begin(), contracted.end(), d) ==
            contracted.end()) {
      free.push_back(d);
    }
  }
  return free;
}

// x[A, B, ..] split as [g, A/g, B, ..] along axis 0, joined again as the axes
// `order` of that say, the first two of the result and the next merged: the
// weights of a grouped convolution turned around.
absl::StatusOr<Value> Regroup(GraphBuilder& b, Value x, const Shape& split,
                              const std::vector<int>& order,
                              const Shape& joined) {
  CLEAVE_ASSIGN_OR_RETURN(x, b.Add(Primitive::kReshape,
                                   {{"shape", StaticValue::Dims(split)}}, {x}));
  x = b.Transpose(x, order);
  return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(joined)}},
               {x});
}

// `shape` with its first axes replaced.
Shape WithFront(const Shape& shape, int replaced, const Shape& front) {
  Shape result = front;
  result.insert(result.end(), shape.begin() + replaced, shape.end());
  return result;
}

// `order` of the first axes of a tensor of `rank`, the others in their places.
std::vector<int> FrontOrder(std::vector<int> order, int rank) {
  const int first = static_cast<int>(order.size());
  for (int d = first; d < rank; ++d) order.push_back(d);
  return order;
}

struct ConvGeometry {
  std::vector<int64_t> stride;
  std::vector<int64_t> lhs_dilation;
  std::vector<int64_t> rhs_dilation;
  std::vector<Dim> low;
  int64_t groups;
  int64_t batch_groups;
};

ConvGeometry GeometryOf(const Attributes& attributes) {
  return {
      attributes.GetInts("stride"),       attributes.GetInts("lhs_dilation"),
      attributes.GetInts("rhs_dilation"), attributes.GetDims("low"),
      attributes.GetInt("groups"),        attributes.GetInt("batch_groups")};
}

// The extent of `size` elements that stand `dilation` apart.
Dim Dilated(const Dim& size, int64_t dilation) {
  return emit::SpreadExtent(size, dilation - 1);
}

Attributes ConvAttributes(const ConvGeometry& g, const std::vector<Dim>& high) {
  return {{"stride", StaticValue::Ints(g.stride)},
          {"low", StaticValue::Dims(g.low)},
          {"high", StaticValue::Dims(high)},
          {"lhs_dilation", StaticValue::Ints(g.lhs_dilation)},
          {"rhs_dilation", StaticValue::Ints(g.rhs_dilation)},
          {"groups", g.groups},
          {"batch_groups", g.batch_groups}};
}

// x at i meets y at p through the tap k where i lhs_dilation + low = p stride +
// k rhs_dilation: dy, spread by the stride, meets the taps in reverse.
absl::StatusOr<Value> ConvInput(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const ConvGeometry g = GeometryOf(node.attributes);
  const Shape& x_shape = node.types[0].shape;
  const Shape w_shape = node.types[1].shape;
  const int rank = static_cast<int>(x_shape.size());
  Value w = b.Apply(Primitive::kReverse, {Conjugate(b, node.x(1))},
                    {{"axes", StaticValue::Ints(emit::Range(rank - 2, 2))}});
  Value dy = node.dy();
  const int64_t parts = g.groups * g.batch_groups;
  const Dim part = Dim::FloorDiv(w_shape[0], parts);
  // [g, outputs, channels, ..] with outputs and channels exchanged.
  CLEAVE_ASSIGN_OR_RETURN(
      w, Regroup(b, w, WithFront(w_shape, 1, {parts, part}),
                 FrontOrder({0, 2, 1}, rank + 1),
                 WithFront(w_shape, 2, {parts * w_shape[1], part})));
  const Shape dy_shape = b.type(dy).shape;
  if (g.batch_groups > 1) {
    CLEAVE_ASSIGN_OR_RETURN(
        dy, Regroup(b, dy, WithFront(dy_shape, 2, {dy_shape[0], parts, part}),
                    FrontOrder({1, 0}, rank + 1),
                    WithFront(dy_shape, 2, {parts * dy_shape[0], part})));
  }
  ConvGeometry turned = g;
  turned.stride = g.lhs_dilation;
  turned.lhs_dilation = g.stride;
  std::vector<Dim> high;
  for (int d = 0; d < rank - 2; ++d) {
    const Dim kernel = Dilated(w_shape[d + 2], g.rhs_dilation[d]);
    turned.low[d] = kernel - 1 - g.low[d];
    high.push_back((x_shape[d + 2] - 1) * g.lhs_dilation[d] + kernel -
                   Dilated(dy_shape[d + 2], g.stride[d]) - turned.low[d]);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      Value dx, b.Add(Primitive::kConv, ConvAttributes(turned, high), {dy, w}));
  if (g.batch_groups > 1) {
    // [n, g channels, ..] to [g n, channels, ..].
    const Shape shape = b.type(dx).shape;
    CLEAVE_ASSIGN_OR_RETURN(
        dx, Regroup(b, dx, WithFront(shape, 2, {shape[0], parts, x_shape[1]}),
                    FrontOrder({1, 0}, rank + 1), x_shape));
  }
  return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(x_shape)}},
               {dx});
}

// The taps are the places at which dy, spread by the stride, meets x: the batch
// is summed, so it takes the channels' place; groups of channels become groups
// of the batch, and the other way round.
absl::StatusOr<Value> ConvKernel(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const ConvGeometry g = GeometryOf(node.attributes);
  const Shape& w_shape = node.types[1].shape;
  const Shape x_shape = node.types[0].shape;
  const Shape dy_shape = b.type(node.dy()).shape;
  const int rank = static_cast<int>(w_shape.size());
  const std::vector<int> exchanged = FrontOrder({1, 0}, rank);
  const Value x = b.Transpose(Conjugate(b, node.x(0)), exchanged);
  const Value dy = b.Transpose(node.dy(), exchanged);
  ConvGeometry turned = g;
  turned.stride = g.rhs_dilation;
  turned.rhs_dilation = g.stride;
  std::swap(turned.groups, turned.batch_groups);
  std::vector<Dim> high;
  for (int d = 0; d < rank - 2; ++d) {
    high.push_back((w_shape[d + 2] - 1) * g.rhs_dilation[d] +
                   Dilated(dy_shape[d + 2], g.stride[d]) -
                   Dilated(x_shape[d + 2], g.lhs_dilation[d]) - g.low[d]);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value dw,
      b.Add(Primitive::kConv, ConvAttributes(turned, high), {x, dy}));
  return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(w_shape)}},
               {b.Transpose(dw, exchanged)});
}

}  // namespace

// y[batch, free_a, free_b] = sum a b: the other factor is contracted over its
// free axes, and those that were contracted become free.
Cotangents TransposeDotGeneral(const TransposeNode& node) {
  CLEAVE_RETURN_IF_ERROR(OneFactor(node));
  GraphBuilder& b = node.builder;
  const int self = node.linear[0] ? 0 : 1;
  const char* suffix[] = {"a", "b"};
  const auto axes = [&](const char* kind, int i) {
    return emit::Ints(node.attributes, absl::StrCat(kind, "_", suffix[i]));
  };
  const std::vector<int> batch = axes("batch", self);
  const std::vector<int> contracted = axes("contract", self);
  const std::vector<int> other_batch = axes("batch", 1 - self);
  const std::vector<int> other_contracted = axes("contract", 1 - self);
  const std::vector<int> free =
      FreeAxes(node.types[self].rank(), batch, contracted);
  const std::vector<int> other_free =
      FreeAxes(node.types[1 - self].rank(), other_batch, other_contracted);
  const int batches = static_cast<int>(batch.size());
  const int frees = static_cast<int>(free.size());
  const int other_frees = static_cast<int>(other_free.size());
  const int first_other = batches + (self == 0 ? frees : 0);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value product,
      b.Add(Primitive::kDotGeneral,
            {{"batch_a", StaticValue::Ints(emit::Range(batches))},
             {"batch_b", StaticValue::Ints(other_batch)},
             {"contract_a",
              StaticValue::Ints(emit::Range(other_frees, first_other))},
             {"contract_b", StaticValue::Ints(other_free)}},
            {node.dy(), Conjugate(b, node.x(1 - self))}));
  // The product's axes as axes of the operand: batch, free, contracted in the
  // order that they have in the other factor.
  std::vector<int> places = batch;
  places.insert(places.end(), free.begin(), free.end());
  std::vector<int> by_other(other_contracted.size());
  std::iota(by_other.begin(), by_other.end(), 0);
  std::sort(by_other.begin(), by_other.end(), [&](int i, int k) {
    return other_contracted[i] < other_contracted[k];
  });
  for (int i : by_other) places.push_back(contracted[i]);
  std::vector<Value> cotangents(2);
  cotangents[self] = b.Transpose(product, emit::InverseOf(places));
  return cotangents;
}

Cotangents TransposeConv(const TransposeNode& node) {
  CLEAVE_RETURN_IF_ERROR(OneFactor(node));
  std::vector<Value> cotangents(2);
  if (node.linear[0]) {
    CLEAVE_ASSIGN_OR_RETURN(cotangents[0], ConvInput(node));
  } else {
    CLEAVE_ASSIGN_OR_RETURN(cotangents[1], ConvKernel(node));
  }
  return cotangents;
}

}  // namespace cleave
