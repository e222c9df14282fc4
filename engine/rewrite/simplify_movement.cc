#include "engine/rewrite/simplify_movement.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"

namespace cleave {
namespace {

// The movement, which may move nothing; invalid if it is of another type than
// what it would replace: extents may be equal, and not be the same.
Value Made(GraphBuilder& builder, Primitive primitive, AttributesId attributes,
           TypeId type, absl::Span<const Value> operands) {
  const absl::StatusOr<Value> made =
      builder.AddInterned(primitive, attributes, operands);
  if (!made.ok() || builder.graph().node(*made).type != type) return Value();
  return *made;
}

Value Made(GraphBuilder& builder, Primitive primitive,
           const Attributes& attributes, TypeId type, Value x) {
  return Made(builder, primitive, builder.context()->Intern(attributes), type,
              {x});
}

// Whether the slice takes all of the axes that a broadcast has from its source.
bool TakesAll(const Attributes& slice, const Shape& shape,
              const std::vector<int64_t>& axes) {
  const std::vector<Dim> start = slice.GetDims("start");
  const std::vector<Dim> size = slice.GetDims("size");
  const std::vector<int64_t> stride = slice.GetInts("stride");
  return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return start[axis] == Dim(0) && size[axis] == shape[axis] &&
           stride[axis] == 1;
  });
}

// One place of an iota.
Value Place(GraphBuilder& builder, const Attributes& slice, TypeId type) {
  const auto start = slice.GetDims("start")[0].Value();
  if (!start.has_value() || slice.GetDims("size")[0] != Dim(1)) return Value();
  return builder.Constant(Exact(*start),
                          builder.context()->types(type).front());
}

Value Composed(GraphBuilder& builder, Primitive primitive,
               AttributesId attributes, TypeId type,
               absl::Span<const Value> operands) {
  if (operands.size() != 1) return Value();
  const Graph& graph = builder.graph();
  const Value x = operands[0];
  const Attributes& own = builder.context()->attributes(attributes);
  switch (primitive) {
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
    case Primitive::kReduceAll:
    case Primitive::kReduceAny:
      return own.GetInts("axes").empty() ? x : Value();
    case Primitive::kBroadcastInDim:
    case Primitive::kReshape:
    case Primitive::kTranspose:
    case Primitive::kSlice:
    case Primitive::kReverse:
      break;
    default:
      return Value();
  }
  if (graph.node(x).op == ToOpId(Primitive::kReverse) &&
      primitive == Primitive::kReverse) {
    std::vector<int64_t> a = graph.attributes(x).GetInts("axes");
    std::vector<int64_t> b = own.GetInts("axes");
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<int64_t> axes;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                  std::back_inserter(axes));
    return Made(builder, primitive, {{"axes", StaticValue::Ints(axes)}}, type,
                graph.operands(x)[0]);
  }
  if (primitive == Primitive::kSlice &&
      graph.node(x).op == ToOpId(Primitive::kIota)) {
    return Place(builder, own, type);
  }
  if (graph.node(x).op != ToOpId(Primitive::kBroadcastInDim)) return Value();
  const Value source = graph.operands(x)[0];
  const StaticValue shape =
      StaticValue::Dims(builder.context()->types(type).front().shape);
  if (primitive == Primitive::kBroadcastInDim) {
    // Axis d of the source is axis first[d] of x, which is outer[first[d]].
    std::vector<int64_t> axes = graph.attributes(x).GetInts("axes");
    const std::vector<int64_t> outer = own.GetInts("axes");
    for (int64_t& axis : axes) axis = outer[axis];
    return Made(builder, primitive,
                {{"shape", shape}, {"axes", StaticValue::Ints(axes)}}, type,
                source);
  }
  const std::vector<int64_t> axes = graph.attributes(x).GetInts("axes");
  const bool keeps = axes.empty() || (primitive == Primitive::kSlice &&
                                      TakesAll(own, graph.type(x).shape, axes));
  if (!keeps) return Value();
  return Made(builder, Primitive::kBroadcastInDim,
              {{"shape", shape}, {"axes", StaticValue::Ints(axes)}}, type,
              source);
}

}  // namespace

Value SimplifyMovement(GraphBuilder& builder, Primitive primitive,
                       AttributesId attributes, TypeId type,
                       absl::Span<const Value> operands) {
  const Value composed =
      Composed(builder, primitive, attributes, type, operands);
  if (composed.valid()) return composed;
  return Made(builder, primitive, attributes, type, operands);
}

}  // namespace cleave
