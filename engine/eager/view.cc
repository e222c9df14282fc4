#include "engine/eager/view.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/checked_dim.h"
#include "ops/infer_type.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

// The step without what it does not move; nullopt where nothing is left.
std::optional<Attributes> Simplified(Primitive primitive, Attributes attributes,
                                     const TensorType& from,
                                     const TensorType& to) {
  switch (primitive) {
    case Primitive::kSlice:  // as long as before: from 0 and in steps of 1
    case Primitive::kReshape:
    case Primitive::kBroadcastInDim:
      if (from == to) return std::nullopt;
      break;
    case Primitive::kTranspose: {
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      if (std::is_sorted(axes.begin(), axes.end())) return std::nullopt;
      break;
    }
    case Primitive::kReverse: {
      std::vector<int> axes;
      for (const int64_t axis : attributes.GetInts("axes")) {
        if (from.shape[axis] != Dim(1)) axes.push_back(static_cast<int>(axis));
      }
      if (axes.empty()) return std::nullopt;
      std::sort(axes.begin(), axes.end());
      attributes.Set("axes", StaticValue::Ints(axes));
      break;
    }
    default:
      break;
  }
  return attributes;
}

// Two steps of one kind as one; nullopt where that is not possible.
std::optional<Attributes> Joined(const ViewStep& first,
                                 const Attributes& second) {
  switch (first.primitive) {
    case Primitive::kReshape:
      return second;
    case Primitive::kTranspose: {
      const std::vector<int64_t> inner = first.attributes.GetInts("axes");
      std::vector<int64_t> axes;
      for (const int64_t axis : second.GetInts("axes")) {
        axes.push_back(inner[axis]);
      }
      return Attributes{{"axes", StaticValue::Ints(axes)}};
    }
    case Primitive::kReverse: {
      std::set<int64_t> axes;
      for (const Attributes* attributes : {&first.attributes, &second}) {
        for (const int64_t axis : attributes->GetInts("axes")) {
          if (!axes.erase(axis)) axes.insert(axis);
        }
      }
      return Attributes{{"axes", StaticValue::Ints(std::vector<int64_t>(
                                     axes.begin(), axes.end()))}};
    }
    case Primitive::kSlice: {
      const std::vector<Dim> start_1 = first.attributes.GetDims("start");
      const std::vector<Dim> start_2 = second.GetDims("start");
      std::vector<int64_t> stride = first.attributes.GetInts("stride");
      const std::vector<int64_t> stride_2 = second.GetInts("stride");
      std::vector<Dim> start;
      for (size_t d = 0; d < start_1.size(); ++d) {
        const absl::StatusOr<Dim> at =
            (CheckedDim(start_1[d]) + CheckedDim(start_2[d]) * stride[d])
                .value();
        if (!at.ok()) return std::nullopt;
        start.push_back(*at);
        if (__builtin_mul_overflow(stride[d], stride_2[d], &stride[d])) {
          return std::nullopt;
        }
      }
      return Attributes{{"start", StaticValue::Dims(start)},
                        {"size", second.Get("size")},
                        {"stride", StaticValue::Ints(stride)}};
    }
    default:
      return std::nullopt;
  }
}

bool IsViewStep(Primitive primitive) {
  switch (primitive) {
    case Primitive::kSlice:
    case Primitive::kReverse:
    case Primitive::kTranspose:
    case Primitive::kReshape:
    case Primitive::kBroadcastInDim:
      return true;
    default:
      return false;
  }
}

}  // namespace

const std::shared_ptr<const View::Rep>& View::Whole() {
  static const auto* const whole =
      new std::shared_ptr<const Rep>(std::make_shared<const Rep>());
  return *whole;
}

bool View::writable() const {
  return std::none_of(steps().begin(), steps().end(), [](const ViewStep& step) {
    return step.primitive == Primitive::kBroadcastInDim;
  });
}

absl::StatusOr<View> View::Then(Primitive primitive,
                                Attributes attributes) const {
  if (!IsViewStep(primitive)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", PrimitiveName(primitive), "` is no step of a view"));
  }
  const TensorType from = type();
  CLEAVE_ASSIGN_OR_RETURN(const InferredType inferred,
                          InferType(primitive, attributes, {from}));
  const TensorType& to = inferred.results[0];
  std::optional<Attributes> simple =
      Simplified(primitive, std::move(attributes), from, to);
  if (!simple.has_value()) return *this;
  if (!steps().empty() && steps().back().primitive == primitive) {
    std::optional<Attributes> joined = Joined(steps().back(), *simple);
    if (joined.has_value()) {
      Rep shorter = *rep_;
      shorter.steps.pop_back();
      // An empty slice may begin beyond what a join of the two may name.
      absl::StatusOr<View> whole =
          View(std::move(shorter)).Then(primitive, *std::move(joined));
      if (whole.ok() && whole->type() == to) return whole;
    }
  }
  Rep result = *rep_;
  result.steps.push_back({primitive, *std::move(simple), to});
  return View(std::move(result));
}

absl::StatusOr<View> View::Slice(const std::vector<Dim>& start,
                                 const std::vector<Dim>& size,
                                 const std::vector<int64_t>& stride) const {
  const std::vector<int64_t> strides =
      stride.empty() ? std::vector<int64_t>(start.size(), 1) : stride;
  return Then(Primitive::kSlice, {{"start", StaticValue::Dims(start)},
                                  {"size", StaticValue::Dims(size)},
                                  {"stride", StaticValue::Ints(strides)}});
}

absl::StatusOr<View> View::Transpose(const std::vector<int>& axes) const {
  return Then(Primitive::kTranspose, {{"axes", StaticValue::Ints(axes)}});
}

absl::StatusOr<View> View::Reshape(const Shape& shape) const {
  return Then(Primitive::kReshape, {{"shape", StaticValue::Dims(shape)}});
}

absl::StatusOr<View> View::Reverse(const std::vector<int>& axes) const {
  return Then(Primitive::kReverse, {{"axes", StaticValue::Ints(axes)}});
}

absl::StatusOr<View> View::BroadcastTo(const Shape& shape) const {
  const int new_axes = static_cast<int>(shape.size()) - type().rank();
  if (new_axes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        type().ToString(), " has more axes than ", ShapeToString(shape)));
  }
  std::vector<int> axes(type().rank());
  for (size_t d = 0; d < axes.size(); ++d) {
    axes[d] = new_axes + static_cast<int>(d);
  }
  return BroadcastInDim(shape, axes);
}

absl::StatusOr<View> View::BroadcastInDim(const Shape& shape,
                                          const std::vector<int>& axes) const {
  return Then(Primitive::kBroadcastInDim, {{"shape", StaticValue::Dims(shape)},
                                           {"axes", StaticValue::Ints(axes)}});
}

std::string View::ToString() const {
  std::string text = absl::StrCat("base ", base().ToString());
  for (const ViewStep& step : steps()) {
    absl::StrAppend(&text, ": ", PrimitiveName(step.primitive), "(",
                    step.attributes.ToString(), ") -> ",
                    step.result.ToString());
  }
  return text;
}

namespace {

absl::Status CheckType(absl::string_view what, const TensorType& type,
                       const TensorType& wanted) {
  if (type == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", type.ToString(), ", the view's is ", wanted.ToString()));
}

// `base` with `value` where the slice reads it. The value is padded between and
// around its elements; a mask, padded likewise, tells padding from elements.
absl::StatusOr<Value> WriteSlice(GraphBuilder& builder, Value base,
                                 const Attributes& slice, Value value) {
  const TensorType type = builder.type(base);
  if (type.dtype == DType::kKey) {
    return absl::UnimplementedError(
        "not supported: to write through a slice of keys; there is no key to "
        "pad with");
  }
  const std::vector<Dim> start = slice.GetDims("start");
  const std::vector<Dim> size = slice.GetDims("size");
  const std::vector<int64_t> stride = slice.GetInts("stride");
  std::vector<Dim> high, interior;
  for (int d = 0; d < type.rank(); ++d) {
    CheckedDim rest = CheckedDim(type.shape[d]) - start[d] - size[d];
    if (stride[d] != 1) {
      const bool has_elements =
          Compare(size[d], CompareOp::kGe, 1) == Truth::kTrue;
      const CheckedDim last = CheckedDim(size[d]) - 1;
      rest = rest -
             (has_elements ? last : CheckedDim::Max(last, 0)) * (stride[d] - 1);
    }
    CLEAVE_ASSIGN_OR_RETURN(Dim above, rest.value());
    high.push_back(std::move(above));
    interior.push_back(Dim(stride[d] - 1));
  }
  const Attributes pad = {{"low", StaticValue::Dims(start)},
                          {"high", StaticValue::Dims(high)},
                          {"interior", StaticValue::Dims(interior)}};
  CLEAVE_ASSIGN_OR_RETURN(
      const Value padded,
      builder.Add(Primitive::kPad, pad,
                  {value, builder.Constant(Exact(0), type.dtype)}));
  const Value ones = builder.Constant(Exact(1), TensorType{DType::kBool, size});
  CLEAVE_ASSIGN_OR_RETURN(
      const Value mask,
      builder.Add(Primitive::kPad, pad,
                  {ones, builder.Constant(Exact(0), DType::kBool)}));
  return builder.Add(Primitive::kSelect, {}, {mask, padded, base});
}

// The new value of what step `step` reads, whose old one is `base`.
absl::StatusOr<Value> WriteSteps(GraphBuilder& builder, Value base,
                                 const std::vector<ViewStep>& steps,
                                 size_t step, Value value) {
  if (step == steps.size()) return value;
  const Attributes& attributes = steps[step].attributes;
  Value inner = value;  // the new value of what the step gives
  if (step + 1 < steps.size()) {
    CLEAVE_ASSIGN_OR_RETURN(const Value old, builder.Add(steps[step].primitive,
                                                         attributes, {base}));
    CLEAVE_ASSIGN_OR_RETURN(inner,
                            WriteSteps(builder, old, steps, step + 1, value));
  }
  switch (steps[step].primitive) {
    case Primitive::kSlice:
      return WriteSlice(builder, base, attributes, inner);
    case Primitive::kReverse:
      return builder.Add(Primitive::kReverse, attributes, {inner});
    case Primitive::kTranspose: {
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      std::vector<int> inverse(axes.size());
      for (size_t d = 0; d < axes.size(); ++d) {
        inverse[axes[d]] = static_cast<int>(d);
      }
      return builder.Add(Primitive::kTranspose,
                         {{"axes", StaticValue::Ints(inverse)}}, {inner});
    }
    case Primitive::kReshape: {
      const Shape shape = builder.type(base).shape;
      return builder.Add(Primitive::kReshape,
                         {{"shape", StaticValue::Dims(shape)}}, {inner});
    }
    default:
      return absl::InvalidArgumentError(
          "a broadcast cannot be written: several places show one element");
  }
}

}  // namespace

absl::StatusOr<Value> ReadView(GraphBuilder& builder, Value base,
                               const View& view) {
  CLEAVE_RETURN_IF_ERROR(
      CheckType("the base", builder.type(base), view.base()));
  for (const ViewStep& step : view.steps()) {
    CLEAVE_ASSIGN_OR_RETURN(
        base, builder.Add(step.primitive, step.attributes, {base}));
  }
  return base;
}

absl::StatusOr<Value> WriteView(GraphBuilder& builder, Value base,
                                const View& view, Value value) {
  CLEAVE_RETURN_IF_ERROR(
      CheckType("the base", builder.type(base), view.base()));
  CLEAVE_RETURN_IF_ERROR(
      CheckType("the value", builder.type(value), view.type()));
  if (!view.writable()) {
    return absl::InvalidArgumentError(
        "a broadcast cannot be written: several places show one element");
  }
  return WriteSteps(builder, base, view.steps(), 0, value);
}

namespace {

// Where the elements of a view lie in a dense array: a strided walk.
struct Layout {
  std::vector<int64_t> shape;
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

Layout DenseLayout(const std::vector<int64_t>& shape) {
  Layout layout{shape, 0, std::vector<int64_t>(shape.size())};
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    layout.strides[d] = stride;
    stride *= shape[d];
  }
  return layout;
}

absl::StatusOr<std::vector<int64_t>> Numbers(const std::vector<Dim>& dims) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t number, dim.Evaluate({}));
    numbers.push_back(number);
  }
  return numbers;
}

// The layout after a step that is no reshape.
absl::StatusOr<Layout> Step(Layout layout, const ViewStep& step) {
  const Attributes& attributes = step.attributes;
  switch (step.primitive) {
    case Primitive::kSlice: {
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> start,
                              Numbers(attributes.GetDims("start")));
      CLEAVE_ASSIGN_OR_RETURN(layout.shape,
                              Numbers(attributes.GetDims("size")));
      const std::vector<int64_t> stride = attributes.GetInts("stride");
      for (size_t d = 0; d < start.size(); ++d) {
        layout.offset += start[d] * layout.strides[d];
        // A stride is of no use, and may be huge, where it is not taken.
        layout.strides[d] =
            layout.shape[d] > 1 ? layout.strides[d] * stride[d] : 0;
      }
      return layout;
    }
    case Primitive::kReverse:
      for (const int64_t axis : attributes.GetInts("axes")) {
        layout.offset += (layout.shape[axis] - 1) * layout.strides[axis];
        layout.strides[axis] = -layout.strides[axis];
      }
      return layout;
    case Primitive::kTranspose: {
      const Layout from = layout;
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      for (size_t d = 0; d < axes.size(); ++d) {
        layout.shape[d] = from.shape[axes[d]];
        layout.strides[d] = from.strides[axes[d]];
      }
      return layout;
    }
    default: {  // broadcast_in_dim
      Layout to;
      CLEAVE_ASSIGN_OR_RETURN(to.shape, Numbers(attributes.GetDims("shape")));
      to.offset = layout.offset;
      to.strides.resize(to.shape.size());
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      for (size_t d = 0; d < axes.size(); ++d) {
        to.strides[axes[d]] = layout.shape[d] == 1 ? 0 : layout.strides[d];
      }
      return to;
    }
  }
}

// The elements that the layout names, in row-major order.
absl::StatusOr<Tensor> Gather(const Tensor& base, const Layout& layout) {
  CLEAVE_ASSIGN_OR_RETURN(
      Tensor result, Tensor::CreateUninitialized(base.dtype(), layout.shape));
  if (result.size() == 0) return result;
  const size_t bytes = result.byte_size() / result.size();
  std::vector<int64_t> index(layout.shape.size(), 0);
  std::byte* to = result.mutable_data();
  int64_t at = layout.offset;
  for (int64_t i = 0; i < result.size(); ++i) {
    std::memcpy(to, base.data() + at * bytes, bytes);
    to += bytes;
    for (size_t d = index.size(); d-- > 0;) {
      at += layout.strides[d];
      if (++index[d] < layout.shape[d]) break;
      at -= layout.strides[d] * layout.shape[d];
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

bool HasType(const Tensor& tensor, const TensorType& type) {
  return tensor.dtype() == type.dtype &&
         tensor.shape().size() == type.shape.size() &&
         std::equal(tensor.shape().begin(), tensor.shape().end(),
                    type.shape.begin(), [](int64_t extent, const Dim& dim) {
                      return dim.Value() == extent;
                    });
}

absl::StatusOr<Tensor> CopyView(const Tensor& base, const View& view) {
  if (!HasType(base, view.base())) {
    return CheckType("the base", base.type(), view.base());
  }
  if (view.IsIdentity()) return base;
  Tensor current = base;
  Layout layout = DenseLayout(base.shape());
  bool dense = true;  // `layout` is that of `current`
  for (const ViewStep& step : view.steps()) {
    if (step.primitive != Primitive::kReshape) {
      CLEAVE_ASSIGN_OR_RETURN(layout, Step(std::move(layout), step));
      dense = false;
      continue;
    }
    // A reshape counts elements in row-major order: they are put in that first.
    if (!dense) {
      CLEAVE_ASSIGN_OR_RETURN(current, Gather(current, layout));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            Numbers(step.result.shape));
    layout = DenseLayout(shape);
    dense = true;
  }
  return Gather(current, layout);
}

}  // namespace cleave::functional
