// Reads: transposes, slices, pads, windows and gathers.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/index/element_lowering.h"
#include "engine/index/term_builder.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = AxisPlan::Kind;

bool IsSlice(const AxisPlan& axis) {
  return axis.kind != Kind::kWindow && axis.kind != Kind::kComputed;
}

}  // namespace

absl::StatusOr<Element> ElementLowering::LowerRead(const Term& read) {
  CLEAVE_ASSIGN_OR_RETURN(const Value x, terms_.Lower(read.children[0]));
  const TensorType type = builder_.type(x);
  CLEAVE_CHECK(read.children.size() == type.shape.size() + 1)
      << read.children.size() - 1 << " indices for " << type.ToString();
  if (type.shape.empty()) return Element{x, {}};
  const auto is_reduced = [this](const IndexPtr& index) {
    return std::find(scope_.begin() + array_indices_, scope_.end(), index) !=
           scope_.end();
  };
  ReadPlan plan = PlanRead(
      read, type.shape, facts_, scope_,
      [&is_reduced](const IndexPtr& p, const IndexPtr& k, bool whole_axis) {
        return !whole_axis && !is_reduced(p) && is_reduced(k);
      });

  // The value of a read out of range: the fill if it is one number, else a zero
  // that is replaced afterwards.
  Fill fill;
  std::optional<Element> replacement;
  bool gather_fails = false;  // a gather out of range is an error
  bool checked = false;       // an error only where the conditions hold
  if (plan.InRange()) {
    // Nothing else is needed.
  } else if (read.fill != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(const Element element, Lower(read.fill));
    if (element.axes.empty()) {
      fill = element.value;
    } else {
      replacement = element;
    }
  } else if (mask_.has_value()) {
    checked = !plan.InRangeWhereTrue();
  } else {
    CLEAVE_RETURN_IF_ERROR(CheckUnmasked(read, type.shape, plan));
    gather_fails = true;
  }

  CLEAVE_ASSIGN_OR_RETURN(Moved moved, Move(x, plan, fill, !gather_fails));
  CLEAVE_ASSIGN_OR_RETURN(moved, TakeWindows(std::move(moved), plan, fill));
  CLEAVE_ASSIGN_OR_RETURN(Element element,
                          Gather(moved, read, plan, fill, gather_fails));
  if (!replacement.has_value() && !checked) return element;

  CLEAVE_ASSIGN_OR_RETURN(const Element in_range,
                          Lower(InRange(read, type.shape, plan)));
  if (replacement.has_value()) {
    return Pointwise(Primitive::kSelect, {in_range, element, *replacement});
  }
  CLEAVE_ASSIGN_OR_RETURN(const Element outside,
                          Pointwise(Primitive::kNot, {in_range}));
  CLEAVE_ASSIGN_OR_RETURN(const Element bad,
                          Pointwise(Primitive::kAnd, {*mask_, outside}));
  return Checked(element, bad);
}

TermPtr ElementLowering::InRange(const Term& read, const Shape& shape,
                                 const ReadPlan& plan) const {
  std::vector<TermPtr> conditions;
  for (size_t d = 0; d < shape.size(); ++d) {
    const TermPtr index = ConvertTerm(read.children[d + 1], DType::kI64);
    if (!plan.axes[d].not_below) {
      conditions.push_back(
          PointwiseTerm(Primitive::kGe, DType::kBool,
                        {index, NumberTerm(Exact(0), DType::kI64)}));
    }
    if (!plan.axes[d].not_above) {
      conditions.push_back(PointwiseTerm(Primitive::kLt, DType::kBool,
                                         {index, DimTerm(shape[d])}));
    }
  }
  return AndTerm(conditions);
}

// A read that must be in range, and is not proved to be: an error where it
// provably is not, a guard where extents decide it, else a gather that fails.
absl::Status ElementLowering::CheckUnmasked(const Term& read,
                                            const Shape& shape,
                                            ReadPlan& plan) {
  for (size_t d = 0; d < plan.axes.size(); ++d) {
    AxisPlan& axis = plan.axes[d];
    if (axis.kind == Kind::kComputed || axis.InRange()) continue;
    const std::optional<Affine> index = ToAffine(*read.children[d + 1]);
    Affine last;
    last.constant = shape[d] - 1;
    const Affine above = last - *index;
    if (ProvedSometimesNegative(*index) || ProvedSometimesNegative(above)) {
      CLEAVE_ASSIGN_OR_RETURN(const Dim reads, HaveElements(scope_));
      if (reads != Dim(1)) {
        // Where an extent is 0 nothing is read, and nothing is wrong.
        MakeComputed(axis);
        continue;
      }
      return absl::OutOfRangeError(absl::StrCat(
          "an index is out of range: axis ", d, " of extent ",
          shape[d].ToString(), " is read from ", LeastValue(*index)->ToString(),
          " to ", GreatestValue(*index)->ToString()));
    }
    if (IsSlice(axis)) continue;  // typing the slice adds the guard
    const std::optional<Dim> least = LeastValue(*index);
    const std::optional<Dim> greatest = GreatestValue(*index);
    CLEAVE_CHECK(least.has_value() && greatest.has_value())
        << "a window's strides have signs";
    // Where nothing is read, all is well.
    CLEAVE_ASSIGN_OR_RETURN(const Dim reads, HaveElements(scope_));
    if (!axis.not_below) {
      CLEAVE_ASSIGN_OR_RETURN(Dim low, Dim::CheckedMul(*least, reads));
      builder_.AddGuard({std::move(low), CompareOp::kGe, 0,
                         absl::StrCat("the least index of axis ", d)});
    }
    if (!axis.not_above) {
      CLEAVE_ASSIGN_OR_RETURN(Dim high, Dim::CheckedMul(*greatest, reads));
      CLEAVE_ASSIGN_OR_RETURN(Dim last, Dim::CheckedMul(shape[d] - 1, reads));
      builder_.AddGuard({std::move(high), CompareOp::kLe, std::move(last),
                         absl::StrCat("the greatest index of axis ", d)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Element> ElementLowering::Checked(const Element& element,
                                                 const Element& bad) {
  // A gather from [true] at place 1 is an error of kind index.
  CLEAVE_ASSIGN_OR_RETURN(const Element place, Converted(bad, DType::kI64));
  CLEAVE_ASSIGN_OR_RETURN(const Value index, IndexArray({place}, place.axes));
  const Value one = builder_.Constant(Exact(1), {DType::kBool, {Dim(1)}});
  CLEAVE_ASSIGN_OR_RETURN(
      const Value good,
      builder_.Add(Primitive::kGather,
                   {{"axes", StaticValue::Ints(std::vector<int>{0})},
                    {"batch", 0},
                    {"mode", "error"}},
                   {one, index, builder_.Constant(Exact(0), DType::kBool)}));
  return Where({good, place.axes}, element, Exact(0));
}

absl::StatusOr<Value> ElementLowering::FillValue(const Fill& fill,
                                                 DType dtype) {
  if (fill.has_value()) return *fill;
  CLEAVE_ASSIGN_OR_RETURN(const Element zero, Number(Exact(0), dtype));
  return zero.value;
}

absl::StatusOr<ElementLowering::Moved> ElementLowering::Move(
    Value x, const ReadPlan& plan, const Fill& fill, bool padded) {
  const Shape shape = builder_.type(x).shape;
  const int rank = static_cast<int>(shape.size());

  std::vector<Dim> low(rank, 0), high(rank, 0), none(rank, 0);
  std::vector<Dim> start(rank, 0), size = shape;
  std::vector<int64_t> stride(rank, 1);
  for (int d = 0; d < rank; ++d) {
    const AxisPlan& axis = plan.axes[d];
    if (!IsSlice(axis)) continue;
    CLEAVE_ASSIGN_OR_RETURN(size[d], axis.Size());
    stride[d] = axis.stride;
    start[d] = axis.start;
    // The part in range may be empty and lie behind the end: no slice says
    // that, but padding crops to it.
    const auto holds = [](const Dim& a, CompareOp op, const Dim& b) {
      return Compare(a, op, b) == Truth::kTrue;
    };
    // Most reads start at 0, which needs no search for a proof.
    const bool starts_inside =
        (holds(axis.start, CompareOp::kGe, 0) &&
         (holds(axis.start, CompareOp::kLe, shape[d]) ||
          holds(axis.start + size[d], CompareOp::kLe, shape[d]))) ||
        holds(size[d], CompareOp::kGe, 1);
    const bool slices = axis.InRange() ? starts_inside : !padded;
    if (!slices) {
      low[d] = -axis.start;
      // The gap behind the last element counts: of none, there is none.
      CLEAVE_ASSIGN_OR_RETURN(const Dim span,
                              Dim::CheckedMul(size[d], axis.stride));
      CLEAVE_ASSIGN_OR_RETURN(const Dim end, Dim::CheckedAdd(axis.start, span));
      CLEAVE_ASSIGN_OR_RETURN(high[d], Dim::CheckedSub(end, shape[d]));
      start[d] = 0;
    }
  }
  if (low != none || high != none) {
    CLEAVE_ASSIGN_OR_RETURN(const Value outside,
                            FillValue(fill, builder_.type(x).dtype));
    CLEAVE_ASSIGN_OR_RETURN(
        x, builder_.Add(Primitive::kPad,
                        {{"low", StaticValue::Dims(low)},
                         {"high", StaticValue::Dims(high)},
                         {"interior", StaticValue::Dims(none)}},
                        {x, outside}));
  }
  CLEAVE_ASSIGN_OR_RETURN(x,
                          builder_.Add(Primitive::kSlice,
                                       {{"start", StaticValue::Dims(start)},
                                        {"size", StaticValue::Dims(size)},
                                        {"stride", StaticValue::Ints(stride)}},
                                       {x}));

  // One axis for each variable; constants leave none.
  Moved moved;
  Shape split;
  std::vector<int> reversed;
  for (int d = 0; d < rank; ++d) {
    const AxisPlan& axis = plan.axes[d];
    if (!IsSlice(axis)) {
      split.push_back(shape[d]);
      moved.labels.push_back({nullptr, d});
      continue;
    }
    for (size_t i = 0; i < axis.indices.size(); ++i) {
      if (axis.reversed[i]) reversed.push_back(static_cast<int>(split.size()));
      split.push_back(axis.indices[i]->extent);
      moved.labels.push_back({axis.indices[i], -1});
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(
      x, builder_.Add(Primitive::kReshape,
                      {{"shape", StaticValue::Dims(split)}}, {x}));
  CLEAVE_ASSIGN_OR_RETURN(
      moved.value, builder_.Add(Primitive::kReverse,
                                {{"axes", StaticValue::Ints(reversed)}}, {x}));
  return moved;
}

absl::StatusOr<ElementLowering::Moved> ElementLowering::TakeWindows(
    Moved moved, const ReadPlan& plan, const Fill& fill) {
  if (!plan.HasWindow()) return moved;
  // Windows go over trailing axes.
  std::vector<int> order;
  std::vector<int> windowed;
  for (size_t d = 0; d < moved.labels.size(); ++d) {
    const int origin = moved.labels[d].origin;
    const bool window = origin >= 0 && plan.axes[origin].kind == Kind::kWindow;
    (window ? windowed : order).push_back(static_cast<int>(d));
  }
  Moved result;
  for (const int d : order) result.labels.push_back(moved.labels[d]);
  order.insert(order.end(), windowed.begin(), windowed.end());
  std::vector<Dim> sizes, counts, low;
  std::vector<int64_t> strides, dilations;
  std::vector<const AxisPlan*> axes;
  for (const int d : windowed) {
    const AxisPlan& axis = plan.axes[moved.labels[d].origin];
    axes.push_back(&axis);
    counts.push_back(axis.indices[0]->extent);
    sizes.push_back(axis.indices[1]->extent);
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
    low.push_back(-axis.start);
  }
  std::vector<int> reversed;
  for (const int which : {0, 1}) {
    for (const AxisPlan* axis : axes) {
      if (axis->reversed[which]) {
        reversed.push_back(static_cast<int>(result.labels.size()));
      }
      result.labels.push_back({axis->indices[which], -1});
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value outside,
                          FillValue(fill, builder_.type(moved.value).dtype));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value windows,
      builder_.Add(Primitive::kWindows,
                   {{"sizes", StaticValue::Dims(sizes)},
                    {"strides", StaticValue::Ints(strides)},
                    {"dilations", StaticValue::Ints(dilations)},
                    {"low", StaticValue::Dims(low)},
                    {"counts", StaticValue::Dims(counts)}},
                   {builder_.Transpose(moved.value, order), outside}));
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      builder_.Add(Primitive::kReverse, {{"axes", StaticValue::Ints(reversed)}},
                   {windows}));
  return result;
}

absl::StatusOr<Value> ElementLowering::IndexArray(
    absl::Span<const Element> indices, const std::vector<IndexPtr>& axes) {
  std::vector<Value> columns;
  for (const Element& index : indices) {
    CLEAVE_ASSIGN_OR_RETURN(const Element integer,
                            Converted(index, DType::kI64));
    CLEAVE_ASSIGN_OR_RETURN(const Value value, Aligned(integer, axes));
    Shape shape = builder_.type(value).shape;
    shape.push_back(1);
    columns.push_back(builder_.Reshape(value, shape));
  }
  return builder_.Add(Primitive::kConcatenate,
                      {{"axis", static_cast<int64_t>(axes.size())}}, columns);
}

absl::StatusOr<Element> ElementLowering::Gather(const Moved& moved,
                                                const Term& read,
                                                const ReadPlan& plan,
                                                const Fill& fill,
                                                bool is_error) {
  std::vector<Element> indices;  // of the axes still to be read
  std::vector<int> computed;     // these axes
  std::vector<int> plain;
  std::vector<IndexPtr> index_axes;
  for (size_t d = 0; d < moved.labels.size(); ++d) {
    const AxisLabel& label = moved.labels[d];
    if (label.index != nullptr) {
      plain.push_back(static_cast<int>(d));
      continue;
    }
    computed.push_back(static_cast<int>(d));
    CLEAVE_ASSIGN_OR_RETURN(Element index,
                            Lower(read.children[label.origin + 1]));
    for (const IndexPtr& v : index.axes) {
      if (std::find(index_axes.begin(), index_axes.end(), v) ==
          index_axes.end()) {
        index_axes.push_back(v);
      }
    }
    indices.push_back(std::move(index));
  }
  Element result;
  if (computed.empty()) {
    for (const AxisLabel& label : moved.labels) {
      result.axes.push_back(label.index);
    }
    result.value = moved.value;
    return result;
  }
  if (!indices.empty()) index_axes = InScopeOrder(std::move(index_axes));

  // Variables of the indices that have an axis of their own are batch axes.
  std::vector<int> order;
  std::vector<IndexPtr> batch;
  std::vector<IndexPtr> rest;
  for (const int d : plain) {
    const IndexPtr& v = moved.labels[d].index;
    if (std::find(index_axes.begin(), index_axes.end(), v) !=
        index_axes.end()) {
      batch.push_back(v);
      order.push_back(d);
    } else {
      rest.push_back(v);
    }
  }
  result.axes = batch;
  for (const IndexPtr& v : index_axes) {
    if (std::find(batch.begin(), batch.end(), v) == batch.end()) {
      result.axes.push_back(v);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value index, IndexArray(indices, result.axes));
  result.axes.insert(result.axes.end(), rest.begin(), rest.end());
  // The others keep their order.
  std::vector<int> axes;
  for (size_t d = 0; d < moved.labels.size(); ++d) {
    if (std::find(order.begin(), order.end(), static_cast<int>(d)) !=
        order.end()) {
      continue;
    }
    if (moved.labels[d].index == nullptr) {
      axes.push_back(static_cast<int>(order.size()));
    }
    order.push_back(static_cast<int>(d));
  }
  const bool in_range = std::all_of(
      computed.begin(), computed.end(),
      [&](int d) { return plan.axes[moved.labels[d].origin].InRange(); });
  CLEAVE_ASSIGN_OR_RETURN(const Value outside,
                          FillValue(fill, builder_.type(moved.value).dtype));
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      builder_.Add(Primitive::kGather,
                   {{"axes", StaticValue::Ints(axes)},
                    {"batch", static_cast<int64_t>(batch.size())},
                    {"mode", is_error && !in_range ? "error" : "fill"}},
                   {builder_.Transpose(moved.value, order), index, outside}));
  return result;
}

}  // namespace cleave
