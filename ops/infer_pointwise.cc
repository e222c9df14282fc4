#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

// "a bool, a float or an integer" for `bool|real`.
std::string DTypesText(absl::string_view dtypes) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(dtypes, '|')) {
    if (part == "inexact") {
      parts.insert(parts.end(), {"a float", "complex"});
    } else if (part == "real") {
      parts.insert(parts.end(), {"a float", "an integer"});
    } else if (part == "int") {
      parts.push_back("an integer");
    } else if (part == "float") {
      parts.push_back("a float");
    } else if (part == "number") {
      parts.push_back("a number");
    } else if (part == "bool") {
      parts.push_back("a bool");
    } else {
      parts.push_back(part);
    }
  }
  const absl::string_view last = parts.back();
  parts.pop_back();
  return parts.empty() ? std::string(last)
                       : absl::StrCat(absl::StrJoin(parts, ", "), " or ", last);
}

// The dtypes of the operands are those that ops/primitive.def has.
absl::Status CheckDTypes(const InferContext& context) {
  const std::vector<PrimitiveOperand>& declared =
      OperandsOf(context.primitive());
  for (int i = 0; i < static_cast<int>(declared.size()); ++i) {
    const TensorType& type = context.operand(i);
    if (declared[i].dtypes.empty()) {
      CLEAVE_RETURN_IF_ERROR(context.RequireSameDType(i - 1, i));
    } else if (!declared[i].Takes(type.dtype)) {
      return context.Fail("operand ", i, " is ", type.ToString(),
                          ", but its dtype must be ",
                          DTypesText(declared[i].dtypes));
    }
  }
  return absl::OkStatus();
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

}  // namespace

absl::StatusOr<InferredType> InferPointwise(InferContext& context) {
  const int count = static_cast<int>(context.operands().size());
  for (int i = 1; i < count; ++i) {
    CLEAVE_RETURN_IF_ERROR(context.RequireSameShape(
        context.operand(0).shape, context.operand(i).shape, "the operands"));
  }
  CLEAVE_RETURN_IF_ERROR(CheckDTypes(context));
  const TensorType& x = context.operand(0);
  switch (context.primitive()) {
    case Primitive::kConvert:
      return InferConvert(context);
    case Primitive::kBitcastConvert:
      return InferBitcast(context);
    case Primitive::kSelect:
      return context.Finish({context.operand(1)});
    case Primitive::kComplex:
      return context.Finish(
          {{x.dtype == DType::kF32 ? DType::kC64 : DType::kC128, x.shape}});
    case Primitive::kMax:
    case Primitive::kMin:
      CLEAVE_RETURN_IF_ERROR(context.Tie({"even", "first", "second"}));
      return context.Finish({x});
    case Primitive::kAbs:
    case Primitive::kReal:
    case Primitive::kImag:
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
