#include <algorithm>
#include <set>
#include <utility>

#include "ops/checked_dim.h"
#include "ops/infer_context.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

absl::StatusOr<InferredType> InferBroadcastInDim(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, context.ShapeOf("shape"));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          context.Axes("axes", static_cast<int>(shape.size())));
  if (static_cast<int>(axes.size()) != x.rank()) {
    return context.Fail("attribute `axes` has ", axes.size(),
                        " elements, but operand 0 is ", x.ToString());
  }
  if (!std::is_sorted(axes.begin(), axes.end())) {
    return context.Fail("attribute `axes` must ascend");
  }
  for (size_t d = 0; d < axes.size(); ++d) {
    if (x.shape[d] == Dim(1)) continue;
    CLEAVE_RETURN_IF_ERROR(
        context.Require(x.shape[d], CompareOp::kEq, shape[axes[d]],
                        absl::StrCat("axis ", d, " of operand 0 and axis ",
                                     axes[d], " of the result")));
  }
  return context.Finish({{x.dtype, shape}});
}

absl::StatusOr<InferredType> InferReshape(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, context.ShapeOf("shape"));
  CLEAVE_ASSIGN_OR_RETURN(const Dim from, NumElements(x.shape));
  CLEAVE_ASSIGN_OR_RETURN(const Dim to, NumElements(shape));
  CLEAVE_RETURN_IF_ERROR(context.Require(
      from, CompareOp::kEq, to,
      absl::StrCat("the numbers of elements of ", ShapeToString(x.shape),
                   " and ", ShapeToString(shape))));
  return context.Finish({{x.dtype, shape}});
}

absl::StatusOr<InferredType> InferTranspose(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          context.Axes("axes", x.rank()));
  if (static_cast<int>(axes.size()) != x.rank()) {
    return context.Fail("attribute `axes` must be a permutation of the axes ",
                        "of ", x.ToString());
  }
  TensorType result{x.dtype, {}};
  for (const int64_t axis : axes) result.shape.push_back(x.shape[axis]);
  return context.Finish({result});
}

absl::StatusOr<InferredType> InferSlice(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> start,
                          context.Dims("start", x.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> size,
                          context.Dims("size", x.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> stride,
                          context.Ints("stride", x.rank(), 1));
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents(size));
  for (int d = 0; d < x.rank(); ++d) {
    const std::string where = absl::StrCat("axis ", d, " of ", x.ToString());
    CLEAVE_RETURN_IF_ERROR(context.Require(start[d], CompareOp::kGe, 0,
                                           absl::StrCat("start on ", where)));
    // One past the last element read; nothing is read if the size is 0.
    const bool has_elements =
        Compare(size[d], CompareOp::kGe, 1) == Truth::kTrue;
    const CheckedDim first = start[d];
    const CheckedDim count = size[d];
    const CheckedDim beyond =
        stride[d] == 1 ? first + count
        : has_elements ? first + (count - 1) * stride[d] + 1
                       : first + CheckedDim::Max(count - 1, 0) * stride[d] +
                             CheckedDim::Min(count, 1);
    CLEAVE_ASSIGN_OR_RETURN(const Dim end, beyond.value());
    CLEAVE_RETURN_IF_ERROR(context.Require(end, CompareOp::kLe, x.shape[d],
                                           absl::StrCat("end on ", where)));
  }
  return context.Finish({{x.dtype, size}});
}

absl::StatusOr<InferredType> InferPad(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
  CLEAVE_RETURN_IF_ERROR(context.RequireRank(1, 0));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> low,
                          context.Dims("low", x.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> high,
                          context.Dims("high", x.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> interior,
                          context.Dims("interior", x.rank()));
  TensorType result{x.dtype, {}};
  for (int d = 0; d < x.rank(); ++d) {
    CLEAVE_RETURN_IF_ERROR(context.Require(
        interior[d], CompareOp::kGe, 0, absl::StrCat("interior on axis ", d)));
    const bool has_elements =
        Compare(x.shape[d], CompareOp::kGe, 1) == Truth::kTrue;
    const CheckedDim last = CheckedDim(x.shape[d]) - 1;
    const CheckedDim gaps = has_elements ? last : CheckedDim::Max(last, 0);
    CheckedDim padded = CheckedDim(low[d]) + x.shape[d] + high[d];
    if (interior[d] != Dim(0)) padded = padded + gaps * interior[d];
    CLEAVE_ASSIGN_OR_RETURN(Dim extent, padded.value());
    result.shape.push_back(std::move(extent));
  }
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents(result.shape));
  return context.Finish({result});
}

absl::StatusOr<InferredType> InferConcatenate(InferContext& context) {
  if (context.operands().empty()) {
    return context.Fail("needs at least one operand");
  }
  TensorType result = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const int64_t axis,
                          context.Axis("axis", result.rank()));
  for (size_t i = 1; i < context.operands().size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, static_cast<int>(i)));
    CLEAVE_RETURN_IF_ERROR(
        context.RequireRank(static_cast<int>(i), result.rank()));
    // The concatenated axis may differ; it is compared with itself.
    Shape other = context.operand(static_cast<int>(i)).shape;
    const Dim extent = other[axis];
    other[axis] = result.shape[axis];
    CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
        result.shape, other, absl::StrCat("operands 0 and ", i)));
    CLEAVE_ASSIGN_OR_RETURN(result.shape[axis],
                            Dim::CheckedAdd(result.shape[axis], extent));
  }
  return context.Finish({result});
}

}  // namespace

absl::StatusOr<InferredType> InferMovement(InferContext& context) {
  switch (context.primitive()) {
    case Primitive::kBroadcastInDim:
      return InferBroadcastInDim(context);
    case Primitive::kReshape:
      return InferReshape(context);
    case Primitive::kTranspose:
      return InferTranspose(context);
    case Primitive::kSlice:
      return InferSlice(context);
    case Primitive::kReverse: {
      CLEAVE_RETURN_IF_ERROR(
          context.Axes("axes", context.operand(0).rank()).status());
      return context.Finish({context.operand(0)});
    }
    case Primitive::kPad:
      return InferPad(context);
    case Primitive::kConcatenate:
      return InferConcatenate(context);
    default:
      return context.Fail("is not a movement");
  }
}

absl::StatusOr<InferredType> InferWindow(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> sizes, context.Dims("sizes"));
  const int k = static_cast<int>(sizes.size());
  CLEAVE_RETURN_IF_ERROR(context.Ints("strides", k, 1).status());
  CLEAVE_RETURN_IF_ERROR(context.Ints("dilations", k, 1).status());
  CLEAVE_RETURN_IF_ERROR(context.Dims("low", k).status());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> counts,
                          context.Dims("counts", k));
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents(sizes));
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents(counts));
  const bool reads = context.primitive() == Primitive::kWindows;
  if (reads) {
    CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
    CLEAVE_RETURN_IF_ERROR(context.RequireRank(1, 0));
    CLEAVE_RETURN_IF_ERROR(context.RequireRankAtLeast(0, k));
    Shape shape(x.shape.begin(), x.shape.end() - k);
    shape.insert(shape.end(), counts.begin(), counts.end());
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    return context.Finish({{x.dtype, shape}});
  }
  CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  CLEAVE_RETURN_IF_ERROR(context.RequireRankAtLeast(0, 2 * k));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> spatial,
                          context.Dims("shape", k));
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents(spatial));
  Shape windows = counts;
  windows.insert(windows.end(), sizes.begin(), sizes.end());
  CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
      Shape(x.shape.end() - 2 * k, x.shape.end()), windows,
      "the trailing axes of operand 0 and counts, sizes"));
  Shape shape(x.shape.begin(), x.shape.end() - 2 * k);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return context.Finish({{x.dtype, shape}});
}

}  // namespace cleave
