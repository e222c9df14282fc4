#include "ops/infer_type.h"

#include "ops/infer_context.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

absl::StatusOr<InferredType> InferConstant(InferContext& context) {
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, context.DTypeOf("dtype"));
  if (KindOf(dtype) == DTypeKind::kKey) {
    return context.Fail("a constant is no key");
  }
  if (IsBool(dtype)) {
    CLEAVE_RETURN_IF_ERROR(context.Bool("value").status());
    return context.Finish({{dtype, {}}});
  }
  CLEAVE_ASSIGN_OR_RETURN(const Exact exact, context.Real("value"));
  if (IsInt(dtype)) {
    if (!exact.IsInteger()) {
      return context.Fail(exact.ToString(), " is no ", DTypeName(dtype));
    }
    // The range of the dtype; u64 goes beyond int64_t.
    const int bits = 8 * ByteSize(dtype);
    const Exact half = Exact::Pow(Exact(2), Exact(bits - 1));
    const Exact low = IsSigned(dtype) ? -half : Exact(0);
    const Exact high = IsSigned(dtype) ? half : half + half;
    if (exact < low || high <= exact) {
      return context.Fail(exact.ToString(), " is out of range for ",
                          DTypeName(dtype));
    }
  }
  return context.Finish({{dtype, {}}});
}

absl::StatusOr<InferredType> InferLeaf(InferContext& context) {
  switch (context.primitive()) {
    case Primitive::kConstant:
      return InferConstant(context);
    case Primitive::kExtent:
      CLEAVE_RETURN_IF_ERROR(context.DimOf("value").status());
      return context.Finish({{DType::kI64, {}}});
    case Primitive::kIota: {
      CLEAVE_ASSIGN_OR_RETURN(const Dim size, context.DimOf("size"));
      CLEAVE_RETURN_IF_ERROR(context.CheckExtents({size}));
      return context.Finish({{DType::kI64, {size}}});
    }
    default:
      return context.Fail("has the type that it was declared with");
  }
}

// The operands stand for the results of the node projected from.
absl::StatusOr<InferredType> InferResult(InferContext& context) {
  CLEAVE_ASSIGN_OR_RETURN(const int64_t index, context.Int("index", 0));
  const int64_t count = static_cast<int64_t>(context.operands().size());
  if (index >= count) {
    return context.Fail("attribute `index` is ", index, ", but there are ",
                        count, " results");
  }
  return context.Finish({context.operand(static_cast<int>(index))});
}

// Each key of the operand gives a block of the attribute's shape, or a key for
// its number.
absl::StatusOr<InferredType> InferRandom(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireDType(0, DType::kKey));
  TensorType result{DType::kKey, context.operand(0).shape};
  if (context.primitive() == Primitive::kRandomFoldIn) {
    CLEAVE_RETURN_IF_ERROR(context.RequireDType(1, DType::kI64));
    CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
        result.shape, context.operand(1).shape, "the operands"));
    return context.Finish({result});
  }
  if (context.primitive() == Primitive::kRandomSplit) {
    CLEAVE_ASSIGN_OR_RETURN(const Dim count, context.DimOf("count"));
    CLEAVE_RETURN_IF_ERROR(context.CheckExtents({count}));
    result.shape.push_back(count);
    return context.Finish({result});
  }
  CLEAVE_ASSIGN_OR_RETURN(result.dtype, context.DTypeOf("dtype"));
  const bool bits = context.primitive() == Primitive::kRandomBits;
  if (bits ? !IsInt(result.dtype) : !IsFloat(result.dtype)) {
    return context.Fail("attribute `dtype` is ", DTypeName(result.dtype),
                        ", but must be ", bits ? "an integer" : "a float");
  }
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, context.ShapeOf("shape"));
  result.shape.insert(result.shape.end(), shape.begin(), shape.end());
  return context.Finish({result});
}

// The status of the first invalid Dim of an attribute.
absl::Status CheckValue(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kInt:
      return value.AsDim().valid() ? absl::OkStatus() : value.AsDim().status();
    case StaticValue::Kind::kList:
      for (const StaticValue& element : value.AsList()) {
        CLEAVE_RETURN_IF_ERROR(CheckValue(element));
      }
      return absl::OkStatus();
    case StaticValue::Kind::kRecord:
      for (const auto& [name, field] : value.AsRecord()) {
        CLEAVE_RETURN_IF_ERROR(CheckValue(field));
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<InferredType> InferType(Primitive primitive,
                                       const Attributes& attributes,
                                       absl::Span<const TensorType> operands) {
  InferContext context(primitive, attributes, operands);
  const int count = OperandCount(primitive);
  if (primitive != Primitive::kResult && count >= 0 &&
      static_cast<int>(operands.size()) != count) {
    return context.Fail("takes ", count, " operands, not ", operands.size());
  }
  for (const TensorType& operand : operands) {
    CLEAVE_RETURN_IF_ERROR(CheckDims(operand.shape));
  }
  for (const auto& [name, value] : attributes.values()) {
    CLEAVE_RETURN_IF_ERROR(CheckValue(value));
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
      return InferLeaf(context);
    case PrimitiveClass::kProjection:
      return InferResult(context);
    case PrimitiveClass::kPointwise:
      return InferPointwise(context);
    case PrimitiveClass::kMovement:
      return InferMovement(context);
    case PrimitiveClass::kWindow:
      return InferWindow(context);
    case PrimitiveClass::kReduction:
      return InferReduction(context);
    case PrimitiveClass::kContraction:
      return InferContraction(context);
    case PrimitiveClass::kScan:
      return InferScan(context);
    case PrimitiveClass::kGather:
    case PrimitiveClass::kScatter:
    case PrimitiveClass::kSort:
    case PrimitiveClass::kDynamic:
      return InferIndexing(context);
    case PrimitiveClass::kRandom:
      return InferRandom(context);
    case PrimitiveClass::kControl:
      return context.Fail("is typed by its regions");
  }
  return context.Fail("has no class");
}

}  // namespace cleave
