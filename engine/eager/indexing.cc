// NumPy's x[..]: basic indices make one slice, one reverse and one reshape of
// the view; tensors among them make a gather, or a scatter where it is written.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tensor_access.h"
#include "ops/checked_dim.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

bool Surely(const Dim& a, CompareOp op, const Dim& b) {
  return Compare(a, op, b) == Truth::kTrue;
}

// A bound of a slice or an element, counted from the front.
struct Place {
  Dim at = 0;
  bool known_non_negative = false;
};

// A number counts from the end if it is negative. An expression cannot, whose
// sign would decide what it means: it must be at least 0, which a trace may
// leave to a guard.
absl::StatusOr<Place> PlaceOf(const Dim& bound, const Dim& extent) {
  if (bound.IsConstant()) {
    if (Surely(bound, CompareOp::kGe, 0)) return Place{bound, true};
    CLEAVE_ASSIGN_OR_RETURN(Dim at, Dim::CheckedAdd(extent, bound));
    return Place{std::move(at), false};
  }
  CLEAVE_ASSIGN_OR_RETURN(Dim at, ResolveDim(bound));
  const Truth fits = Compare(at, CompareOp::kGe, 0);
  if (fits == Truth::kFalse) {
    return absl::OutOfRangeError(absl::StrCat(
        "the index ", bound.ToString(), " is ", at.ToString(),
        ": an expression counts from the front and must be at least 0"));
  }
  if (fits == Truth::kUnknown) {
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                            CurrentRecorder());
    recorder->builder().AddGuard(
        {at, CompareOp::kGe, 0,
         absl::StrCat("the index ", bound.ToString(), " is not negative")});
  }
  return Place{std::move(at), true};
}

// min(max(place, low), high) with the comparisons that are known left out; low
// is 0 or -1.
absl::StatusOr<Dim> Clamp(const Place& place, const Dim& low, const Dim& high) {
  Dim result = place.at;
  if (!place.known_non_negative && !Surely(result, CompareOp::kGe, low)) {
    CLEAVE_ASSIGN_OR_RETURN(result, Dim::CheckedMax({result, low}));
  }
  if (!Surely(result, CompareOp::kLe, high)) {
    CLEAVE_ASSIGN_OR_RETURN(result, Dim::CheckedMin({result, high}));
  }
  return result;
}

// The slice of one axis of the view.
struct AxisSlice {
  Dim start = 0;
  Dim size = 0;
  int64_t stride = 1;
  bool reversed = false;
};

absl::StatusOr<AxisSlice> SliceOf(const Index::Slice& slice, const Dim& n) {
  if (slice.step == 0 || slice.step == INT64_MIN) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slice with step ", slice.step));
  }
  const bool forward = slice.step > 0;
  // Backwards, bounds lie in [-1, n - 1]: -1 is before the first element.
  CLEAVE_ASSIGN_OR_RETURN(const Dim last, Dim::CheckedSub(n, 1));
  const Dim low = forward ? 0 : -1;
  const Dim high = forward ? n : last;
  Dim start = forward ? low : high;
  Dim stop = forward ? high : low;
  bool stop_known = false;  // not to be negative
  if (slice.start.has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(const Place place, PlaceOf(*slice.start, n));
    CLEAVE_ASSIGN_OR_RETURN(start, Clamp(place, low, high));
  }
  if (slice.stop.has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(const Place place, PlaceOf(*slice.stop, n));
    stop_known = place.known_non_negative;
    CLEAVE_ASSIGN_OR_RETURN(stop, Clamp(place, low, high));
  }
  AxisSlice result;
  result.stride = forward ? slice.step : -slice.step;
  result.reversed = !forward;
  CheckedDim way =
      forward ? CheckedDim(stop) - start : CheckedDim(start) - stop;
  CLEAVE_ASSIGN_OR_RETURN(const Dim distance, way.value());
  if (!Surely(distance, CompareOp::kGe, 0) &&
      !(forward && stop_known && start == Dim(0))) {
    way = CheckedDim::Max(way, 0);
  }
  if (result.stride != 1) {
    way = CheckedDim::FloorDiv(way + (result.stride - 1), result.stride);
  }
  CLEAVE_ASSIGN_OR_RETURN(result.size, way.value());
  if (forward) {
    result.start = std::move(start);
    return result;
  }
  // The lowest element; any place within the axis if there is none.
  CheckedDim steps = CheckedDim(result.size) - 1;
  if (!Surely(result.size, CompareOp::kGe, 1))
    steps = CheckedDim::Max(steps, 0);
  CheckedDim lowest = CheckedDim(start) - steps * result.stride;
  CLEAVE_ASSIGN_OR_RETURN(result.start, lowest.value());
  if (!Surely(result.start, CompareOp::kGe, 0)) {
    CLEAVE_ASSIGN_OR_RETURN(result.start, CheckedDim::Max(lowest, 0).value());
  }
  return result;
}

absl::StatusOr<Dim> ElementOf(const Dim& index, const Dim& n) {
  CLEAVE_ASSIGN_OR_RETURN(const Place place, PlaceOf(index, n));
  if (Compare(place.at, CompareOp::kLt, 0) == Truth::kTrue ||
      Compare(place.at, CompareOp::kLt, n) == Truth::kFalse) {
    return absl::OutOfRangeError(absl::StrCat(
        "index ", index.ToString(), " of an axis of extent ", n.ToString()));
  }
  return place.at;
}

// The basic part of an indexing, and where tensors stand in what it gives.
struct Plan {
  View view;
  struct AtAxis {
    int axis;
    Tensor index;
  };
  std::vector<AtAxis> tensors;
};

absl::StatusOr<Plan> MakePlan(const View& view,
                              const std::vector<Index>& indices) {
  const TensorType& type = view.type();
  int taken = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    if (std::holds_alternative<Index::Ellipsis>(index.kind())) {
      ++ellipses;
    } else if (!std::holds_alternative<Index::NewAxis>(index.kind())) {
      ++taken;
    }
  }
  if (taken > type.rank() || ellipses > 1) {
    return absl::InvalidArgumentError(
        ellipses > 1 ? std::string("more than one ellipsis in an index")
                     : absl::StrCat(taken, " indices for ", type.ToString()));
  }
  const int rest = type.rank() - taken;
  Plan plan;
  std::vector<Dim> start, size;
  std::vector<int64_t> stride;
  std::vector<int> reversed;
  Shape shape;
  const auto keep = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Dim& extent = type.shape[start.size()];
      start.push_back(0);
      size.push_back(extent);
      stride.push_back(1);
      shape.push_back(extent);
    }
  };
  for (const Index& index : indices) {
    if (std::holds_alternative<Index::Ellipsis>(index.kind())) {
      keep(rest);
    } else if (std::holds_alternative<Index::NewAxis>(index.kind())) {
      shape.push_back(1);
    } else if (const Dim* at = std::get_if<Dim>(&index.kind())) {
      CLEAVE_ASSIGN_OR_RETURN(Dim element,
                              ElementOf(*at, type.shape[start.size()]));
      start.push_back(std::move(element));
      size.push_back(1);
      stride.push_back(1);
    } else if (const auto* slice = std::get_if<Index::Slice>(&index.kind())) {
      CLEAVE_ASSIGN_OR_RETURN(AxisSlice axis,
                              SliceOf(*slice, type.shape[start.size()]));
      if (axis.reversed) reversed.push_back(static_cast<int>(start.size()));
      start.push_back(std::move(axis.start));
      size.push_back(axis.size);
      stride.push_back(axis.stride);
      shape.push_back(std::move(axis.size));
    } else {
      const Tensor& tensor = std::get<Tensor>(index.kind());
      CLEAVE_RETURN_IF_ERROR(tensor.status());
      if (!tensor.valid() || !IsInt(tensor.dtype())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "not supported: an index that is ",
            tensor.valid() ? tensor.type().ToString() : tensor.ToString(),
            "; tensors of integers are"));
      }
      plan.tensors.push_back({static_cast<int>(shape.size()), tensor});
      keep(1);
    }
  }
  if (ellipses == 0) keep(rest);
  CLEAVE_ASSIGN_OR_RETURN(plan.view, view.Slice(start, size, stride));
  CLEAVE_ASSIGN_OR_RETURN(plan.view, plan.view.Reverse(reversed));
  CLEAVE_ASSIGN_OR_RETURN(plan.view, plan.view.Reshape(shape));
  return plan;
}

// A node as one of that shape. Shapes come from views, which may be of any
// size.
absl::StatusOr<Value> Broadcast(GraphBuilder& builder, Value node,
                                const Shape& shape) {
  CLEAVE_ASSIGN_OR_RETURN(const View view,
                          View(builder.type(node)).BroadcastTo(shape));
  return ReadView(builder, node, view);
}

// The tensors of a plan as the operand of a gather: i64[I.., k], elements from
// the end counted from the front.
absl::StatusOr<Value> IndexOperand(Recorder& recorder, const Plan& plan,
                                   Shape* index_shape) {
  GraphBuilder& builder = recorder.builder();
  std::vector<Value> nodes;
  std::vector<Shape> shapes;
  for (const Plan::AtAxis& at : plan.tensors) {
    CLEAVE_ASSIGN_OR_RETURN(Value node, TensorAccess::Read(recorder, at.index));
    CLEAVE_ASSIGN_OR_RETURN(
        node,
        builder.Add(Primitive::kConvert, {{"dtype", DType::kI64}}, {node}));
    const TensorType type = builder.type(node);
    const Dim& n = plan.view.type().shape[at.axis];
    CLEAVE_ASSIGN_OR_RETURN(
        Value extent, builder.Add(Primitive::kExtent, {{"value", n}}, {}));
    CLEAVE_ASSIGN_OR_RETURN(extent, Broadcast(builder, extent, type.shape));
    CLEAVE_ASSIGN_OR_RETURN(
        const Value zero,
        Broadcast(builder, builder.Constant(Exact(0), type.dtype), type.shape));
    CLEAVE_ASSIGN_OR_RETURN(const Value is_negative,
                            builder.Add(Primitive::kLt, {}, {node, zero}));
    CLEAVE_ASSIGN_OR_RETURN(const Value from_front,
                            builder.Add(Primitive::kAdd, {}, {node, extent}));
    CLEAVE_ASSIGN_OR_RETURN(node, builder.Add(Primitive::kSelect, {},
                                              {is_negative, from_front, node}));
    nodes.push_back(node);
    shapes.push_back(type.shape);
  }
  CLEAVE_ASSIGN_OR_RETURN(*index_shape, BroadcastShapes(shapes));
  Shape column = *index_shape;
  column.push_back(1);
  for (Value& node : nodes) {
    CLEAVE_ASSIGN_OR_RETURN(node, Broadcast(builder, node, *index_shape));
    CLEAVE_ASSIGN_OR_RETURN(
        node, builder.Add(Primitive::kReshape,
                          {{"shape", StaticValue::Dims(column)}}, {node}));
  }
  return builder.Add(Primitive::kConcatenate,
                     {{"axis", static_cast<int64_t>(index_shape->size())}},
                     nodes);
}

std::vector<int> AxesOf(const Plan& plan) {
  std::vector<int> axes;
  for (const Plan::AtAxis& at : plan.tensors) axes.push_back(at.axis);
  return axes;
}

// Where the axes of the index stand in the result: axis d of NumPy's is axis
// order[d] of gather's, which has them in front.
std::vector<int> OrderOf(const Plan& plan, int index_rank) {
  const std::vector<int> axes = AxesOf(plan);
  const int rest = plan.view.type().rank() - static_cast<int>(axes.size());
  const bool adjacent =
      axes.back() - axes.front() + 1 == static_cast<int>(axes.size());
  const int before = adjacent ? axes.front() : 0;
  std::vector<int> order;
  for (int d = 0; d < before; ++d) order.push_back(index_rank + d);
  for (int d = 0; d < index_rank; ++d) order.push_back(d);
  for (int d = before; d < rest; ++d) order.push_back(index_rank + d);
  return order;
}

absl::StatusOr<Value> ReadAt(Recorder& recorder, const Tensor& x,
                             const Plan& plan) {
  GraphBuilder& builder = recorder.builder();
  CLEAVE_ASSIGN_OR_RETURN(const Value source,
                          TensorAccess::Read(recorder, x.WithView(plan.view)));
  const DType dtype = builder.type(source).dtype;
  if (dtype == DType::kKey) {
    return absl::UnimplementedError(
        "not supported: tensors as indices of keys; there is no key to fill "
        "with");
  }
  Shape index_shape;
  CLEAVE_ASSIGN_OR_RETURN(const Value index,
                          IndexOperand(recorder, plan, &index_shape));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value gathered,
      builder.Add(Primitive::kGather,
                  {{"axes", StaticValue::Ints(AxesOf(plan))},
                   {"batch", 0},
                   {"mode", "error"}},
                  {source, index, builder.Constant(Exact(0), dtype)}));
  return builder.Add(
      Primitive::kTranspose,
      {{"axes", StaticValue::Ints(
                    OrderOf(plan, static_cast<int>(index_shape.size())))}},
      {gathered});
}

}  // namespace

Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return At(std::vector<Index>(indices));
}

Tensor Tensor::At(const std::vector<Index>& indices) const {
  if (!status().ok()) return *this;
  if (!valid()) {
    return Invalid(absl::InvalidArgumentError("a number has no elements"));
  }
  const absl::StatusOr<Plan> plan = MakePlan(view_, indices);
  if (!plan.ok()) return Seen(plan.status());
  if (plan->tensors.empty()) return WithView(plan->view);
  const absl::StatusOr<std::shared_ptr<Recorder>> recorder = CurrentRecorder();
  if (!recorder.ok()) return Invalid(recorder.status());
  const absl::StatusOr<Value> node = ReadAt(**recorder, *this, *plan);
  if (!node.ok()) {
    (*recorder)->Mistake(node.status());
    return Invalid(node.status());
  }
  Tensor result = TensorAccess::Make(**recorder, *node);
  const absl::Status done = (*recorder)->Done();
  return done.ok() ? result : Invalid(done);
}

absl::Status Tensor::AssignAt(const std::vector<Index>& indices,
                              const Tensor& value) {
  CLEAVE_RETURN_IF_ERROR(status());
  if (!valid()) return absl::InvalidArgumentError("a number cannot be written");
  CLEAVE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(view_, indices));
  Tensor target = WithView(plan.view);
  if (plan.tensors.empty()) return target.Assign(value);
  return target.Write([&](Recorder& recorder) -> absl::StatusOr<cleave::Value> {
    GraphBuilder& builder = recorder.builder();
    CLEAVE_ASSIGN_OR_RETURN(const cleave::Value old,
                            TensorAccess::Read(recorder, target));
    Shape index_shape;
    CLEAVE_ASSIGN_OR_RETURN(const cleave::Value index,
                            IndexOperand(recorder, plan, &index_shape));
    // The shape of x[indices], from which the updates are moved to where
    // scatter wants them.
    const std::vector<int> order =
        OrderOf(plan, static_cast<int>(index_shape.size()));
    Shape update_shape = index_shape;
    const std::vector<int> axes = AxesOf(plan);
    const TensorType& type = plan.view.type();
    for (int d = 0; d < type.rank(); ++d) {
      if (!std::binary_search(axes.begin(), axes.end(), d)) {
        update_shape.push_back(type.shape[d]);
      }
    }
    Shape shape;
    std::vector<int> inverse(order.size());
    for (size_t d = 0; d < order.size(); ++d) {
      shape.push_back(update_shape[order[d]]);
      inverse[order[d]] = static_cast<int>(d);
    }
    CLEAVE_ASSIGN_OR_RETURN(cleave::Value updates,
                            TensorAccess::Read(recorder, value, type.dtype));
    CLEAVE_ASSIGN_OR_RETURN(const View view,
                            View(builder.type(updates)).BroadcastTo(shape));
    CLEAVE_ASSIGN_OR_RETURN(updates, ReadView(builder, updates, view));
    CLEAVE_ASSIGN_OR_RETURN(
        updates,
        builder.Add(Primitive::kTranspose,
                    {{"axes", StaticValue::Ints(inverse)}}, {updates}));
    return builder.Add(
        Primitive::kScatter,
        {{"axes", StaticValue::Ints(axes)}, {"batch", 0}, {"mode", "set"}},
        {old, index, updates});
  });
}

}  // namespace cleave::functional
