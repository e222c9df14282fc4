// Tangents of gather, scatter and sort.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

// x with one axis more, of extent 1, at the end.
Value WithUnitAxis(GraphBuilder& b, Value x) {
  Shape shape = b.type(x).shape;
  shape.push_back(1);
  return b.Reshape(x, shape);
}

// x[b.., at[b.., u], rest..]: rows of axis `batch`, `fill` beyond its ends.
Value Rows(GraphBuilder& b, Value x, Value at, int batch, const Exact& fill) {
  const DType dtype = b.type(x).dtype;
  return b.Apply(Primitive::kGather,
                 {x, WithUnitAxis(b, at), b.Constant(fill, dtype)},
                 {{"axes", StaticValue::Ints(std::vector<int>{batch})},
                  {"batch", batch},
                  {"mode", "fill"}});
}

// A scatter as one along a single axis: x is [B.., M, rest..], M the indexed
// axes merged; place is [B.., U], M where an index is out of range; updates are
// [B.., U, rest..].
struct FlatScatter {
  int batch = 0;
  Dim rows;                // M
  std::vector<int> order;  // axis d of the transposed x is axis order[d] of x
  Shape transposed;
  Value x;
  Value place;
};

FlatScatter Flatten(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  FlatScatter flat;
  flat.batch = static_cast<int>(node.attributes.GetInt("batch"));
  const std::vector<int> axes = emit::Ints(node.attributes, "axes");
  const Shape shape = node.type(0).shape;
  flat.order = emit::Range(flat.batch);
  flat.order.insert(flat.order.end(), axes.begin(), axes.end());
  Shape merged(shape.begin(), shape.begin() + flat.batch);
  flat.rows = 1;
  for (int axis : axes) flat.rows = flat.rows * shape[axis];
  merged.push_back(flat.rows);
  for (int d = flat.batch; d < static_cast<int>(shape.size()); ++d) {
    if (std::binary_search(axes.begin(), axes.end(), d)) continue;
    flat.order.push_back(d);
    merged.push_back(shape[d]);
  }
  const Value x = b.Transpose(node.x(0), flat.order);
  flat.transposed = b.type(x).shape;
  flat.x = b.Reshape(x, merged);

  const Shape index_shape = node.type(1).shape;
  Shape places(index_shape.begin(), index_shape.end() - 1);
  const int last = static_cast<int>(places.size());
  const auto number = [&](const Dim& value) {
    return b.BroadcastInDim(b.Apply(Primitive::kExtent, {}, {{"value", value}}),
                            places, {});
  };
  Value place = number(0);
  Value inside = b.Constant(Exact(1), TensorType{DType::kBool, places});
  for (size_t k = 0; k < axes.size(); ++k) {
    const Value at = b.Reshape(
        emit::SliceAxis(b, node.x(1), last, static_cast<int64_t>(k), 1),
        places);
    const Value extent = number(shape[axes[k]]);
    place = emit::Add(b, emit::Mul(b, place, extent), at);
    for (const Value test : {b.Apply(Primitive::kGe, {at, number(0)}),
                             b.Apply(Primitive::kLt, {at, extent})}) {
      inside = b.Apply(Primitive::kAnd, {inside, test});
    }
  }
  place = emit::Select(b, inside, place, number(flat.rows));
  Dim count = 1;
  Shape line(places.begin(), places.begin() + flat.batch);
  for (int d = flat.batch; d < last; ++d) count = count * places[d];
  line.push_back(count);
  flat.place = b.Reshape(place, line);
  return flat;
}

// Updates as [B.., U, rest..].
Value FlatUpdates(GraphBuilder& b, const FlatScatter& flat, Value updates) {
  Shape shape = b.type(flat.x).shape;
  shape[flat.batch] = b.type(flat.place).shape[flat.batch];
  return b.Reshape(updates, shape);
}

// [B.., M, rest..] as x's own shape.
Value Unflatten(GraphBuilder& b, const FlatScatter& flat, Value y) {
  return b.Transpose(b.Reshape(y, flat.transposed),
                     emit::InverseOf(flat.order));
}

// Along `axis`: c_i = same_i ? c_(i-1) * factor_i : start_i. A loop, not a
// linear_scan: with a factor 0 the infinity of one run would spoil the next.
Value RunningProducts(GraphBuilder& b, Value same, Value factor, Value start,
                      int axis, bool reverse) {
  const TensorType type = b.type(start);
  TensorType slice = type;
  slice.shape.erase(slice.shape.begin() + axis);
  GraphBuilder body(b.context());
  const Value carry = body.Input("product", slice);
  const Value same_i = body.Input("same", {DType::kBool, slice.shape});
  const Value factor_i = body.Input("factor", slice);
  const Value start_i = body.Input("start", slice);
  const Value next =
      emit::Select(body, same_i, emit::Mul(body, carry, factor_i), start_i);
  const Value scan = b.Apply(
      Primitive::kScan,
      {b.Constant(Exact(1), slice), emit::MoveAxis(b, same, axis, 0),
       emit::MoveAxis(b, factor, axis, 0), emit::MoveAxis(b, start, axis, 0)},
      {{"body", MakeRegion(*std::move(body).Build(
                    {{"product", next}, {"products", next}}))},
       {"consts", 0},
       {"carries", 1},
       {"length", type.shape[axis]},
       {"reverse", reverse}});
  return emit::MoveAxis(b, b.Result(scan, 1), 0, axis);
}

// dy_p = dx_p prod u + sum_i du_i x_p prod_(j != i) u_j over the updates of p.
// The updates are sorted by their place, so that those of one place are
// neighbours; the product of the others is that of those before and behind.
Tangent ScatterMul(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  Value sum;
  if (node.active(0)) {
    const TensorType type = node.type(0);
    CLEAVE_ASSIGN_OR_RETURN(
        const Value products,
        b.Add(Primitive::kScatter, node.attributes,
              {b.Constant(Exact(1), type), node.x(1), node.x(2)}));
    sum = emit::Mul(b, node.dx(0), products);
  }
  if (!node.active(2)) return sum;
  const FlatScatter flat = Flatten(node);
  const int axis = flat.batch;
  const Value sorted = b.Apply(Primitive::kSort, {flat.place},
                               {{"axis", axis}, {"descending", false}});
  const Value place = b.Result(sorted, 0);
  const Value order = b.Result(sorted, 1);
  const Value u =
      Rows(b, FlatUpdates(b, flat, node.x(2)), order, axis, Exact(1));
  const Value du =
      Rows(b, FlatUpdates(b, flat, node.dx(2)), order, axis, Exact(0));
  const Shape shape = b.type(u).shape;
  const auto same_as = [&](bool back) {
    const Value same =
        emit::Eq(b, place, emit::Shift(b, place, axis, back, -1));
    return b.BroadcastInDim(same, shape, emit::Range(axis + 1));
  };
  const Value before = RunningProducts(
      b, same_as(false), emit::Shift(b, u, axis, false, Exact(1)),
      Rows(b, flat.x, place, axis, Exact(1)), axis, false);
  const Value behind =
      RunningProducts(b, same_as(true), emit::Shift(b, u, axis, true, Exact(1)),
                      emit::Like(b, u, Exact(1)), axis, true);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value added,
      b.Add(Primitive::kScatter,
            {{"axes", StaticValue::Ints(std::vector<int>{axis})},
             {"batch", axis},
             {"mode", "add"}},
            {b.Zeros(b.type(flat.x)), WithUnitAxis(b, place),
             emit::Mul(b, emit::Mul(b, du, before), behind)}));
  return emit::AddTangents(b, sum, Unflatten(b, flat, added));
}

// The attributes of a gather or scatter at the places of `node`.
Attributes AtPlaces(const JvpNode& node, const std::string& mode) {
  return {{"axes", *node.attributes.Find("axes")},
          {"batch", node.attributes.GetInt("batch")},
          {"mode", mode}};
}

// Leaves in `taken` the first update at each place alone, and in `kept` the
// places that no such update goes to.
absl::Status KeepFirst(const JvpNode& node, Value& taken, Value& kept) {
  GraphBuilder& b = node.builder;
  const TensorType numbers{DType::kI64, node.type(2).shape};
  Dim count = 1;
  for (const Dim& extent : numbers.shape) count = count * extent;
  const Value number = b.Reshape(
      b.Apply(Primitive::kIota, {}, {{"size", count}}), numbers.shape);
  const auto none = [&](const Shape& shape) {
    return b.BroadcastInDim(b.Apply(Primitive::kExtent, {}, {{"value", count}}),
                            shape, {});
  };
  const Value none_at_place = none(node.type(0).shape);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value first,
      b.Add(Primitive::kScatter, AtPlaces(node, "min"),
            {none_at_place, node.x(1),
             emit::Select(b, taken, number, none(numbers.shape))}));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value first_of,
      b.Add(Primitive::kGather, AtPlaces(node, "fill"),
            {first, node.x(1), b.Constant(Exact(-1), DType::kI64)}));
  taken = b.Apply(Primitive::kAnd, {taken, emit::Eq(b, number, first_of)});
  kept = b.Apply(Primitive::kAnd, {kept, emit::Eq(b, first, none_at_place)});
  return absl::OkStatus();
}

// The mean of the tangents of x and of all updates that equal the extremum, or
// that of the first such update, else of x; NaN equals nothing: 0 / 0.
Tangent ScatterMaxMin(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const TensorType type = node.type(0);
  const DType dtype = AccumulationType(type.dtype);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value extremum,
      b.Add(Primitive::kGather, AtPlaces(node, "fill"),
            {node.y(), node.x(1), b.Constant(Exact::NaN(), type.dtype)}));
  Value kept = emit::Eq(b, node.x(0), node.y());
  Value taken = emit::Eq(b, node.x(2), extremum);
  const StaticValue* tie = node.attributes.Find("tie");
  if (tie != nullptr && tie->AsString() == "first") {
    CLEAVE_RETURN_IF_ERROR(KeepFirst(node, taken, kept));
  }
  const Attributes add = AtPlaces(node, "add");
  const auto total = [&](Value of_x, Value of_updates) {
    return b.Add(Primitive::kScatter, add,
                 {emit::Convert(b, of_x, dtype), node.x(1),
                  emit::Convert(b, of_updates, dtype)});
  };
  CLEAVE_ASSIGN_OR_RETURN(
      const Value sum,
      total(
          emit::Select(b, kept, node.DenseTangent(0), b.Zeros(type)),
          emit::Select(b, taken, node.DenseTangent(2), b.Zeros(node.type(2)))));
  CLEAVE_ASSIGN_OR_RETURN(const Value count, total(kept, taken));
  return emit::Convert(b, emit::Div(b, sum, count), type.dtype);
}

}  // namespace

// Linear in x and in the fill.
Tangent JvpGather(const JvpNode& node) {
  return node.builder.Add(
      Primitive::kGather, node.attributes,
      {node.DenseTangent(0), node.x(1), node.DenseTangent(2)});
}

Tangent JvpScatter(const JvpNode& node) {
  const std::string& mode = node.attributes.Get("mode").AsString();
  if (mode == "mul") return ScatterMul(node);
  if (mode == "max" || mode == "min") return ScatterMaxMin(node);
  // add and set are linear: the same updates stay.
  return node.builder.Add(
      Primitive::kScatter, node.attributes,
      {node.DenseTangent(0), node.x(1), node.DenseTangent(2)});
}

// The tangents of the values, in the order that the values took.
Tangent JvpSort(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const int axis = static_cast<int>(node.attributes.GetInt("axis"));
  const int last = node.type(0).rank() - 1;
  const Value dx = emit::MoveAxis(b, node.dx(0), axis, last);
  const Value order = emit::MoveAxis(b, node.results[1], axis, last);
  return emit::MoveAxis(b, Rows(b, dx, order, last, Exact(0)), last, axis);
}

}  // namespace cleave
