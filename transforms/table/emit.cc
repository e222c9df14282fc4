#include "transforms/table/emit.h"

#include <algorithm>
#include <numeric>

namespace cleave::emit {

Value Add(GraphBuilder& b, Value x, Value y) {
  return b.Apply(Primitive::kAdd, {x, y});
}

Value Mul(GraphBuilder& b, Value x, Value y) {
  return b.Apply(Primitive::kMul, {x, y});
}

Value Div(GraphBuilder& b, Value x, Value y) {
  return b.Apply(Primitive::kDiv, {x, y});
}

Value Eq(GraphBuilder& b, Value x, Value y) {
  return b.Apply(Primitive::kEq, {x, y});
}

Value Select(GraphBuilder& b, Value condition, Value x, Value y) {
  return b.Apply(Primitive::kSelect, {condition, x, y});
}

Value Convert(GraphBuilder& b, Value x, DType dtype) {
  return b.Apply(Primitive::kConvert, {x}, {{"dtype", dtype}});
}

Value Like(GraphBuilder& b, Value x, const Exact& value) {
  const TensorType type = b.type(x);
  return b.Constant(value, type);
}

Value AddTangents(GraphBuilder& b, Value x, Value y) {
  if (!x.valid()) return y;
  if (!y.valid()) return x;
  return Add(b, x, y);
}

Value MoveAxis(GraphBuilder& b, Value x, int from, int to) {
  std::vector<int> axes = Range(b.type(x).rank());
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return b.Transpose(x, axes);
}

Value MergeAxesAtEnd(GraphBuilder& b, Value x, const std::vector<int>& axes) {
  const Shape shape = b.type(x).shape;
  std::vector<int> order;
  Shape merged;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (std::binary_search(axes.begin(), axes.end(), d)) continue;
    order.push_back(d);
    merged.push_back(shape[d]);
  }
  Dim size = 1;
  for (int d : axes) {
    order.push_back(d);
    size = size * shape[d];
  }
  merged.push_back(size);
  return b.Reshape(b.Transpose(x, order), merged);
}

Value SliceAxis(GraphBuilder& b, Value x, int axis, const Dim& start,
                const Dim& size) {
  std::vector<Dim> sizes = b.type(x).shape;
  std::vector<Dim> starts(sizes.size(), Dim(0));
  starts[axis] = start;
  sizes[axis] = size;
  const std::vector<int> strides(sizes.size(), 1);
  return b.Apply(Primitive::kSlice, {x},
                 {{"start", StaticValue::Dims(starts)},
                  {"size", StaticValue::Dims(sizes)},
                  {"stride", StaticValue::Ints(strides)}});
}

Value Pad(GraphBuilder& b, Value x, Value fill, const std::vector<Dim>& low,
          const std::vector<Dim>& high, const std::vector<Dim>& interior) {
  return b.Apply(Primitive::kPad, {x, fill},
                 {{"low", StaticValue::Dims(low)},
                  {"high", StaticValue::Dims(high)},
                  {"interior", StaticValue::Dims(interior)}});
}

Value Shift(GraphBuilder& b, Value x, int axis, bool back, const Exact& fill) {
  const TensorType type = b.type(x);
  const std::vector<Dim> none(type.rank(), Dim(0));
  std::vector<Dim> low = none;
  std::vector<Dim> high = none;
  low[axis] = back ? -1 : 1;
  high[axis] = back ? 1 : -1;
  return Pad(b, x, b.Constant(fill, type.dtype), low, high, none);
}

Dim SpreadExtent(const Dim& size, const Dim& interior) {
  if (interior == Dim(0)) return size;
  const bool some = Compare(size, CompareOp::kGe, 1) == Truth::kTrue;
  return size + (some ? size - 1 : Dim::Max(size - 1, 0)) * interior;
}

Value WithShape(GraphBuilder& b, Value x, const Shape& shape) {
  const TensorType type = b.type(x);
  if (type.shape == shape) return x;
  Context& context = *b.context();
  const Attributes attributes = {{"shape", StaticValue::Dims(shape)}};
  return b.AddTyped(ToOpId(Primitive::kReshape), context.Intern(attributes),
                    context.Intern(TensorType{type.dtype, shape}), {x},
                    b.provenance());
}

Value Broadcast(GraphBuilder& b, Value x, const Shape& shape,
                const std::vector<int>& axes) {
  if (b.graph().node(x).op != ToOpId(Primitive::kBroadcastInDim)) {
    return b.BroadcastInDim(x, shape, axes);
  }
  std::vector<int> composed = Ints(b.graph().attributes(x), "axes");
  for (int& axis : composed) axis = axes[axis];
  return b.BroadcastInDim(b.graph().operands(x)[0], shape, composed);
}

Value Unreduce(GraphBuilder& b, Value y, const Shape& shape,
               const std::vector<int>& axes) {
  std::vector<int> kept;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) kept.push_back(d);
  }
  return Broadcast(b, y, shape, kept);
}

Value ReduceSum(GraphBuilder& b, Value x, const std::vector<int>& axes) {
  return b.Apply(Primitive::kReduceSum, {x},
                 {{"axes", StaticValue::Ints(axes)}});
}

std::vector<int> Ints(const Attributes& attributes, absl::string_view name) {
  const std::vector<int64_t> values = attributes.GetInts(name);
  return std::vector<int>(values.begin(), values.end());
}

std::vector<int> Range(int count, int first) {
  std::vector<int> range(count);
  std::iota(range.begin(), range.end(), first);
  return range;
}

std::vector<int> InverseOf(const std::vector<int>& permutation) {
  std::vector<int> inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    inverse[permutation[d]] = static_cast<int>(d);
  }
  return inverse;
}

bool IsInexact(DType dtype) { return IsFloat(dtype) || IsComplex(dtype); }

}  // namespace cleave::emit
