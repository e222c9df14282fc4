#include "ops/infer_context.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The real dtype of a complex one; other dtypes stay.
DType RealPart(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

// The dtypes that a pointwise primitive takes.
enum class Domain {
  kFloat,
  kInexact,
  kReal,
  kNumber,
  kInt,
  kBoolOrInt,
  kRealOrBool,
  kNotKey,
  kAny,
};

Domain DomainOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kCeil:
    case Primitive::kFloor:
    case Primitive::kRoundNearestEven:
    case Primitive::kExpm1:
    case Primitive::kLog1p:
    case Primitive::kCbrt:
    case Primitive::kSigmoid:
    case Primitive::kErf:
    case Primitive::kErfc:
    case Primitive::kErfinv:
    case Primitive::kLgamma:
    case Primitive::kAtan2:
    case Primitive::kCopysign:
    case Primitive::kNextafter:
    case Primitive::kPolygamma:
    case Primitive::kFma:
      return Domain::kFloat;
    case Primitive::kExp:
    case Primitive::kLog:
    case Primitive::kSqrt:
    case Primitive::kRsqrt:
    case Primitive::kSin:
    case Primitive::kCos:
    case Primitive::kTan:
    case Primitive::kAsin:
    case Primitive::kAcos:
    case Primitive::kAtan:
    case Primitive::kSinh:
    case Primitive::kCosh:
    case Primitive::kTanh:
    case Primitive::kAsinh:
    case Primitive::kAcosh:
    case Primitive::kAtanh:
    case Primitive::kDiv:
      return Domain::kInexact;
    case Primitive::kSign:
    case Primitive::kRem:
    case Primitive::kMax:
    case Primitive::kMin:
      return Domain::kReal;
    case Primitive::kAbs:
    case Primitive::kNeg:
    case Primitive::kIsnan:
    case Primitive::kIsinf:
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kMul:
    case Primitive::kPow:
    case Primitive::kReal:
    case Primitive::kImag:
      return Domain::kNumber;
    case Primitive::kFloorDiv:
    case Primitive::kFloorMod:
    case Primitive::kShiftLeft:
    case Primitive::kShiftRight:
      return Domain::kInt;
    case Primitive::kNot:
    case Primitive::kAnd:
    case Primitive::kOr:
    case Primitive::kXor:
      return Domain::kBoolOrInt;
    case Primitive::kLt:
    case Primitive::kLe:
    case Primitive::kGt:
    case Primitive::kGe:
      return Domain::kRealOrBool;
    case Primitive::kEq:
    case Primitive::kNe:
    case Primitive::kConvert:
    case Primitive::kBitcastConvert:
      return Domain::kNotKey;
    default:
      return Domain::kAny;
  }
}

bool InDomain(DType dtype, Domain domain) {
  switch (domain) {
    case Domain::kFloat:
      return IsFloat(dtype);
    case Domain::kInexact:
      return IsFloat(dtype) || IsComplex(dtype);
    case Domain::kReal:
      return IsFloat(dtype) || IsInt(dtype);
    case Domain::kNumber:
      return IsFloat(dtype) || IsInt(dtype) || IsComplex(dtype);
    case Domain::kInt:
      return IsInt(dtype);
    case Domain::kBoolOrInt:
      return IsBool(dtype) || IsInt(dtype);
    case Domain::kRealOrBool:
      return IsBool(dtype) || IsFloat(dtype) || IsInt(dtype);
    case Domain::kNotKey:
      return KindOf(dtype) != DTypeKind::kKey;
    case Domain::kAny:
      return true;
  }
  return false;
}

absl::string_view DomainText(Domain domain) {
  switch (domain) {
    case Domain::kFloat:
      return "a float";
    case Domain::kInexact:
      return "a float or complex";
    case Domain::kReal:
      return "a float or an integer";
    case Domain::kNumber:
      return "a number";
    case Domain::kInt:
      return "an integer";
    case Domain::kBoolOrInt:
      return "a bool or an integer";
    case Domain::kRealOrBool:
      return "a bool, a float or an integer";
    case Domain::kNotKey:
      return "a bool or a number";
    case Domain::kAny:
      return "any";
  }
  return "any";
}

absl::Status CheckDomain(const InferContext& context, int operand,
                         Domain domain) {
  if (InDomain(context.operand(operand).dtype, domain)) return absl::OkStatus();
  return context.Fail("operand ", operand, " is ",
                      context.operand(operand).ToString(),
                      ", but its dtype must be ", DomainText(domain));
}

absl::StatusOr<InferredType> InferConvert(InferContext& context) {
  CLEAVE_ASSIGN_OR_RETURN(const DType to, context.DTypeOf("dtype"));
  const TensorType& x = context.operand(0);
  if (KindOf(to) == DTypeKind::kKey) {
    return context.Fail("nothing converts to a key");
  }
  if (IsComplex(x.dtype) && !IsComplex(to)) {
    return context.Fail("complex does not convert to ", DTypeName(to),
                        ": take its real part");
  }
  return context.Finish({{to, x.shape}});
}

absl::StatusOr<InferredType> InferBitcast(InferContext& context) {
  CLEAVE_ASSIGN_OR_RETURN(const DType to, context.DTypeOf("dtype"));
  const TensorType& x = context.operand(0);
  for (const DType dtype : {x.dtype, to}) {
    if (!IsFloat(dtype) && !IsInt(dtype)) {
      return context.Fail("has no bits of dtype ", DTypeName(dtype),
                          ": floats and integers only");
    }
  }
  if (ByteSize(to) != ByteSize(x.dtype)) {
    return context.Fail(DTypeName(x.dtype), " and ", DTypeName(to),
                        " differ in size");
  }
  return context.Finish({{to, x.shape}});
}

absl::StatusOr<InferredType> InferSelect(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireDType(0, DType::kBool));
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(1, 2));
  return context.Finish({context.operand(1)});
}

absl::StatusOr<InferredType> InferLdexp(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireClass(0, DTypeClass::kFloat));
  CLEAVE_RETURN_IF_ERROR(context.RequireDType(1, DType::kI32));
  return context.Finish({context.operand(0)});
}

absl::StatusOr<InferredType> InferComplex(InferContext& context) {
  CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, 1));
  const TensorType& x = context.operand(0);
  if (x.dtype != DType::kF32 && x.dtype != DType::kF64) {
    return context.Fail("operand 0 is ", x.ToString(), ", but must be f32 or ",
                        "f64");
  }
  const DType to = x.dtype == DType::kF32 ? DType::kC64 : DType::kC128;
  return context.Finish({{to, x.shape}});
}

}  // namespace

absl::StatusOr<InferredType> InferPointwise(InferContext& context) {
  const int count = static_cast<int>(context.operands().size());
  for (int i = 1; i < count; ++i) {
    CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
        context.operand(0).shape, context.operand(i).shape, "the operands"));
  }
  const Primitive primitive = context.primitive();
  switch (primitive) {
    case Primitive::kSelect:
      return InferSelect(context);
    case Primitive::kLdexp:
      return InferLdexp(context);
    case Primitive::kComplex:
      return InferComplex(context);
    default:
      break;
  }
  const TensorType& x = context.operand(0);
  CLEAVE_RETURN_IF_ERROR(CheckDomain(context, 0, DomainOf(primitive)));
  for (int i = 1; i < count; ++i) {
    CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(0, i));
  }
  switch (primitive) {
    case Primitive::kConvert:
      return InferConvert(context);
    case Primitive::kBitcastConvert:
      return InferBitcast(context);
    case Primitive::kMax:
    case Primitive::kMin:
      CLEAVE_RETURN_IF_ERROR(context.Tie({"even", "first", "second"}));
      return context.Finish({x});
    case Primitive::kAbs:
    case Primitive::kReal:
    case Primitive::kImag:
      if ((primitive != Primitive::kAbs) && !IsComplex(x.dtype)) {
        return context.Fail("operand 0 is ", x.ToString(),
                            ", but must be complex");
      }
      return context.Finish({{RealPart(x.dtype), x.shape}});
    case Primitive::kIsnan:
    case Primitive::kIsinf:
    case Primitive::kEq:
    case Primitive::kNe:
    case Primitive::kLt:
    case Primitive::kLe:
    case Primitive::kGt:
    case Primitive::kGe:
      return context.Finish({{DType::kBool, x.shape}});
    default:
      return context.Finish({x});
  }
}

}  // namespace cleave
