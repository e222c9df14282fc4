// Gather, scatter, sort and nonzero.

#include <algorithm>

#include "ops/infer_context.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The shapes that gather and scatter share: x is B.., X..; index is B.., I..,
// k; the window (gather's result, scatter's updates) is B.., I.., rest of X...
absl::StatusOr<Shape> WindowShape(InferContext& context) {
  const TensorType& x = context.operand(0);
  const TensorType& index = context.operand(1);
  CLEAVE_RETURN_IF_ERROR(context.RequireDType(1, DType::kI64));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t batch, context.Int("batch", 0));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          context.Axes("axes", x.rank()));
  if (batch > x.rank()) {
    return context.Fail("attribute `batch` is ", batch, ", but operand 0 is ",
                        x.ToString());
  }
  CLEAVE_RETURN_IF_ERROR(
      context.RequireRankAtLeast(1, static_cast<int>(batch) + 1));
  if (!std::is_sorted(axes.begin(), axes.end())) {
    return context.Fail("attribute `axes` must ascend");
  }
  if (!axes.empty() && axes.front() < batch) {
    return context.Fail("attribute `axes` holds axis ", axes.front(),
                        ", which is one of the ", batch, " batch axes");
  }
  CLEAVE_RETURN_IF_ERROR(context.Require(
      index.shape.back(), CompareOp::kEq, static_cast<int64_t>(axes.size()),
      "the last axis of operand 1 and the number of axes indexed"));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
      Shape(x.shape.begin(), x.shape.begin() + batch),
      Shape(index.shape.begin(), index.shape.begin() + batch),
      "the batch axes of operands 0 and 1"));
  Shape shape(index.shape.begin(), index.shape.end() - 1);
  for (int64_t d = batch; d < x.rank(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) {
      shape.push_back(x.shape[d]);
    }
  }
  return shape;
}

absl::StatusOr<InferredType> InferGather(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 2));
  CLEAVE_RETURN_IF_ERROR(context.RequireRank(2, 0));
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, WindowShape(context));
  CLEAVE_RETURN_IF_ERROR(context.Choice("mode", {"fill", "error"}).status());
  return context.Finish({{context.operand(0).dtype, shape}});
}

absl::StatusOr<InferredType> InferScatter(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 2));
  CLEAVE_ASSIGN_OR_RETURN(const Shape window, WindowShape(context));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::string mode,
      context.Choice("mode", {"add", "mul", "max", "min", "set"}));
  if (mode == "max" || mode == "min") {
    CLEAVE_RETURN_IF_ERROR(context.Tie({"even", "first"}));
  } else {
    CLEAVE_RETURN_IF_ERROR(context.RefuseTie());
  }
  if (mode == "add" || mode == "mul") {
    CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  } else if (mode != "set") {
    CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kReal));
  }
  CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
      context.operand(2).shape, window,
      "operand 2, and the shape that the indices select"));
  return context.Finish({context.operand(0)});
}

absl::StatusOr<InferredType> InferSort(InferContext& context) {
  const TensorType& x = context.operand(0);
  if (!IsBool(x.dtype)) {
    CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kReal));
  }
  CLEAVE_RETURN_IF_ERROR(context.Axis("axis", x.rank()).status());
  CLEAVE_RETURN_IF_ERROR(context.Bool("descending").status());
  return context.Finish({x, {DType::kI64, x.shape}});
}

absl::StatusOr<InferredType> InferNonzero(InferContext& context) {
  const TensorType& x = context.operand(0);
  if (!IsBool(x.dtype)) {
    CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim size, context.DimOf("size"));
  CLEAVE_RETURN_IF_ERROR(context.CheckExtents({size}));
  return context.Finish(
      {{DType::kI64, {size, static_cast<int64_t>(x.rank())}}});
}

}  // namespace

absl::StatusOr<InferredType> InferIndexing(InferContext& context) {
  switch (context.primitive()) {
    case Primitive::kGather:
      return InferGather(context);
    case Primitive::kScatter:
      return InferScatter(context);
    case Primitive::kSort:
      return InferSort(context);
    case Primitive::kNonzero:
      return InferNonzero(context);
    default:
      return context.Fail("does not index");
  }
}

}  // namespace cleave
