// Reductions, contractions and scans.

#include <algorithm>

#include "ops/checked_dim.h"
#include "ops/infer_context.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

bool Contains(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

absl::StatusOr<InferredType> InferDotGeneral(InferContext& context) {
  const TensorType& a = context.operand(0);
  const TensorType& b = context.operand(1);
  CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> batch_a,
                          context.Axes("batch_a", a.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> batch_b,
                          context.Axes("batch_b", b.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> contract_a,
                          context.Axes("contract_a", a.rank()));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> contract_b,
                          context.Axes("contract_b", b.rank()));
  CLEAVE_RETURN_IF_ERROR(context.OptionalBool("zeros"));
  if (batch_a.size() != batch_b.size()) {
    return context.Fail("`batch_a` has ", batch_a.size(),
                        " axes, but `batch_b` has ", batch_b.size());
  }
  if (contract_a.size() != contract_b.size()) {
    return context.Fail("`contract_a` has ", contract_a.size(),
                        " axes, but `contract_b` has ", contract_b.size());
  }
  for (const int64_t axis : contract_a) {
    if (Contains(batch_a, axis)) {
      return context.Fail("axis ", axis,
                          " is in both `batch_a` and `contract_a`");
    }
  }
  for (const int64_t axis : contract_b) {
    if (Contains(batch_b, axis)) {
      return context.Fail("axis ", axis,
                          " is in both `batch_b` and `contract_b`");
    }
  }
  Shape shape;
  for (size_t i = 0; i < batch_a.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(context.Require(
        a.shape[batch_a[i]], CompareOp::kEq, b.shape[batch_b[i]],
        absl::StrCat("batch axes ", batch_a[i], " of ", a.ToString(), " and ",
                     batch_b[i], " of ", b.ToString())));
    shape.push_back(a.shape[batch_a[i]]);
  }
  for (size_t i = 0; i < contract_a.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(context.Require(
        a.shape[contract_a[i]], CompareOp::kEq, b.shape[contract_b[i]],
        absl::StrCat("contracted axes ", contract_a[i], " of ", a.ToString(),
                     " and ", contract_b[i], " of ", b.ToString())));
  }
  for (int d = 0; d < a.rank(); ++d) {
    if (!Contains(batch_a, d) && !Contains(contract_a, d)) {
      shape.push_back(a.shape[d]);
    }
  }
  for (int d = 0; d < b.rank(); ++d) {
    if (!Contains(batch_b, d) && !Contains(contract_b, d)) {
      shape.push_back(b.shape[d]);
    }
  }
  return context.Finish({{a.dtype, shape}});
}

// Elements of an axis spread by `dilation`: (n - 1) * dilation + 1, and 0 for
// none.
CheckedDim Dilated(const Dim& extent, int64_t dilation) {
  const CheckedDim n = extent;
  if (dilation == 1) return n;
  if (Compare(extent, CompareOp::kGe, 1) == Truth::kTrue) {
    return (n - 1) * dilation + 1;
  }
  return CheckedDim::Max(n - 1, 0) * dilation + CheckedDim::Min(n, 1);
}

absl::StatusOr<InferredType> InferConv(InferContext& context) {
  const TensorType& x = context.operand(0);
  const TensorType& w = context.operand(1);
  CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
  CLEAVE_RETURN_IF_ERROR(context.RequireRankAtLeast(0, 2));
  CLEAVE_RETURN_IF_ERROR(context.RequireRank(1, x.rank()));
  const int k = x.rank() - 2;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> stride,
                          context.Ints("stride", k, 1));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> low, context.Dims("low", k));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> high, context.Dims("high", k));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> lhs_dilation,
                          context.Ints("lhs_dilation", k, 1));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> rhs_dilation,
                          context.Ints("rhs_dilation", k, 1));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t groups, context.Int("groups", 1));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t batch_groups,
                          context.Int("batch_groups", 1));
  if (groups > 1 && batch_groups > 1) {
    return context.Fail("`groups` and `batch_groups` cannot both exceed 1");
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim channels,
                          Dim::CheckedMul(w.shape[1], groups));
  CLEAVE_RETURN_IF_ERROR(
      context.Require(x.shape[1], CompareOp::kEq, channels,
                      "channels of operand 0, and of operand 1 times groups"));
  // One of the two is 1.
  const int64_t output_groups = groups * batch_groups;
  if (output_groups > 1) {
    CLEAVE_ASSIGN_OR_RETURN(const Dim rest,
                            Dim::CheckedMod(w.shape[0], output_groups));
    CLEAVE_RETURN_IF_ERROR(context.Require(rest, CompareOp::kEq, 0,
                                           "outputs divide into the groups"));
  }
  Shape shape = {x.shape[0], w.shape[0]};
  if (batch_groups > 1) {
    CLEAVE_ASSIGN_OR_RETURN(const Dim rest,
                            Dim::CheckedMod(x.shape[0], batch_groups));
    CLEAVE_RETURN_IF_ERROR(context.Require(
        rest, CompareOp::kEq, 0, "the batch divides into the groups"));
    CLEAVE_ASSIGN_OR_RETURN(shape[0],
                            Dim::CheckedFloorDiv(x.shape[0], batch_groups));
  }
  for (int d = 0; d < k; ++d) {
    // Positions that a kernel of extent `kernel` has in the padded input; none
    // if it does not fit.
    const CheckedDim padded =
        Dilated(x.shape[d + 2], lhs_dilation[d]) + low[d] + high[d];
    const CheckedDim kernel = Dilated(w.shape[d + 2], rhs_dilation[d]);
    CheckedDim positions = CheckedDim::FloorDiv(padded - kernel, stride[d]) + 1;
    if (stride[d] == 1) positions = padded - kernel + 1;
    CLEAVE_ASSIGN_OR_RETURN(Dim count, positions.value());
    if (Compare(count, CompareOp::kGe, 0) != Truth::kTrue) {
      CLEAVE_ASSIGN_OR_RETURN(count, Dim::CheckedMax({count, 0}));
    }
    shape.push_back(count);
  }
  return context.Finish({{x.dtype, shape}});
}

}  // namespace

absl::StatusOr<InferredType> InferReduction(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                          context.Axes("axes", x.rank()));
  if (!std::is_sorted(axes.begin(), axes.end())) {
    return context.Fail("attribute `axes` must ascend");
  }
  DType dtype = x.dtype;
  switch (context.primitive()) {
    case Primitive::kReduceSum:
    case Primitive::kReduceProd:
      CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
      break;
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
      CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kReal));
      CLEAVE_RETURN_IF_ERROR(context.Tie({"even", "first"}));
      break;
    case Primitive::kReduceAll:
    case Primitive::kReduceAny:
      CLEAVE_RETURN_IF_ERROR(context.RequireDType(0, DType::kBool));
      break;
    case Primitive::kArgmax:
    case Primitive::kArgmin:
      CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kReal));
      dtype = DType::kI64;
      break;
    default:
      return context.Fail("is not a reduction");
  }
  TensorType result{dtype, {}};
  for (int d = 0; d < x.rank(); ++d) {
    if (!Contains(axes, d)) result.shape.push_back(x.shape[d]);
  }
  return context.Finish({result});
}

absl::StatusOr<InferredType> InferContraction(InferContext& context) {
  if (context.primitive() == Primitive::kDotGeneral) {
    return InferDotGeneral(context);
  }
  return InferConv(context);
}

absl::StatusOr<InferredType> InferScan(InferContext& context) {
  const TensorType& x = context.operand(0);
  CLEAVE_ASSIGN_OR_RETURN(const int64_t axis, context.Axis("axis", x.rank()));
  CLEAVE_RETURN_IF_ERROR(context.Bool("reverse").status());
  if (context.primitive() != Primitive::kLinearScan) {
    CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kReal));
    return context.Finish({x});
  }
  CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kNumber));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 2));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
      x.shape, context.operand(1).shape, "operands 0 and 1"));
  Shape init = x.shape;
  init.erase(init.begin() + axis);
  CLEAVE_RETURN_IF_ERROR(
      context.RequireSameShape(context.operand(2).shape, init,
                               "operand 2, and operand 0 without the axis"));
  return context.Finish({x});
}

}  // namespace cleave
