// Batching of what maps axes to axes: pointwise, movement, windows,
// reductions, scans, sorts, randomness.

#include <string>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vmap/batch.h"

namespace cleave {
namespace {

BatchedResults One(Value value) {
  return std::vector<BatchedValue>{{value, true}};
}

BatchedResults One(absl::StatusOr<Value> value) {
  if (!value.ok()) return std::move(value).status();
  return One(*value);
}

// The attribute, a list of axes, each moved behind the batch.
void ShiftAxes(Attributes& attributes, absl::string_view name) {
  std::vector<int> axes = emit::Ints(attributes, name);
  for (int& axis : axes) ++axis;
  attributes.Set(name, StaticValue::Ints(axes));
}

void ShiftAxis(Attributes& attributes) {
  attributes.Set("axis", attributes.GetInt("axis") + 1);
}

// The attribute, one value per axis, with one for the batch in front.
void Prepend(Attributes& attributes, absl::string_view name, const Dim& value) {
  std::vector<Dim> dims = attributes.GetDims(name);
  dims.insert(dims.begin(), value);
  attributes.Set(name, StaticValue::Dims(dims));
}

// The attribute, axes, with the batch's in front.
void PrependAxis(Attributes& attributes, absl::string_view name) {
  ShiftAxes(attributes, name);
  std::vector<int> axes = emit::Ints(attributes, name);
  axes.insert(axes.begin(), 0);
  attributes.Set(name, StaticValue::Ints(axes));
}

// pad and windows take one fill for all elements. Where each example has its
// own, it is selected wherever the same movement of `true` reads the fill
// `false`.
BatchedResults WithFill(const BatchNode& node, const Attributes& attributes) {
  GraphBuilder& b = node.builder;
  const Value x = node.front(0);
  if (!node.batched(1)) {
    return One(b.Add(node.primitive, attributes, {x, node.value(1)}));
  }
  const TensorType type = b.type(x);
  const Value zero = b.Constant(Exact(0), type.dtype);
  CLEAVE_ASSIGN_OR_RETURN(const Value moved,
                          b.Add(node.primitive, attributes, {x, zero}));
  const Value mask = b.Constant(Exact(1), TensorType{DType::kBool, type.shape});
  CLEAVE_ASSIGN_OR_RETURN(const Value inside,
                          b.Add(node.primitive, attributes,
                                {mask, b.Constant(Exact(0), DType::kBool)}));
  const Shape shape = b.type(moved).shape;
  return One(emit::Select(b, inside, moved,
                          emit::Broadcast(b, node.value(1), shape, {0})));
}

}  // namespace

BatchedResults BatchPointwise(const BatchNode& node) {
  return One(node.Same(node.attributes));
}

BatchedResults BatchMovement(const BatchNode& node) {
  Attributes attributes = node.attributes;
  switch (node.primitive) {
    case Primitive::kBroadcastInDim:
      Prepend(attributes, "shape", node.batch);
      PrependAxis(attributes, "axes");
      break;
    case Primitive::kReshape:
      Prepend(attributes, "shape", node.batch);
      break;
    case Primitive::kTranspose:
      PrependAxis(attributes, "axes");
      break;
    case Primitive::kSlice:
      Prepend(attributes, "start", 0);
      Prepend(attributes, "size", node.batch);
      Prepend(attributes, "stride", 1);
      break;
    case Primitive::kReverse:
      ShiftAxes(attributes, "axes");
      break;
    case Primitive::kPad:
      Prepend(attributes, "low", 0);
      Prepend(attributes, "high", 0);
      Prepend(attributes, "interior", 0);
      return WithFill(node, attributes);
    default:  // concatenate
      ShiftAxis(attributes);
      break;
  }
  return One(node.Same(attributes));
}

// Windows lie on the trailing axes: the batch is one more in front.
BatchedResults BatchWindow(const BatchNode& node) {
  if (node.primitive == Primitive::kWindows) {
    return WithFill(node, node.attributes);
  }
  return One(node.Same(node.attributes));
}

BatchedResults BatchReduction(const BatchNode& node) {
  Attributes attributes = node.attributes;
  ShiftAxes(attributes, "axes");
  return One(node.Same(attributes));
}

BatchedResults BatchScan(const BatchNode& node) {
  Attributes attributes = node.attributes;
  ShiftAxis(attributes);
  return One(node.Same(attributes));
}

BatchedResults BatchSort(const BatchNode& node) {
  Attributes attributes = node.attributes;
  ShiftAxis(attributes);
  CLEAVE_ASSIGN_OR_RETURN(const Value sorted, node.Same(attributes));
  return std::vector<BatchedValue>{{node.builder.Result(sorted, 0), true},
                                   {node.builder.Result(sorted, 1), true}};
}

// Each key gives its own block, or with its number its own key.
BatchedResults BatchRandom(const BatchNode& node) {
  return One(node.Same(node.attributes));
}

}  // namespace cleave
