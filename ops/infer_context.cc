#include "ops/infer_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

absl::string_view KindName(StaticValue::Kind kind) {
  switch (kind) {
    case StaticValue::Kind::kNone:
      return "none";
    case StaticValue::Kind::kBool:
      return "a bool";
    case StaticValue::Kind::kInt:
      return "an integer";
    case StaticValue::Kind::kReal:
      return "a real number";
    case StaticValue::Kind::kString:
      return "a string";
    case StaticValue::Kind::kDType:
      return "a dtype";
    case StaticValue::Kind::kList:
      return "a list";
    case StaticValue::Kind::kRecord:
      return "a record";
    case StaticValue::Kind::kRegion:
      return "a region";
  }
  return "unknown";
}

absl::string_view OpText(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "==";
    case CompareOp::kNe:
      return "!=";
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
  }
  return "?";
}

}  // namespace

absl::StatusOr<const StaticValue*> InferContext::Find(absl::string_view name) {
  const StaticValue* value = attributes_.Find(name);
  if (value == nullptr) return Fail("attribute `", name, "` is missing");
  return value;
}

absl::StatusOr<const StaticValue*> InferContext::Attribute(
    absl::string_view name, StaticValue::Kind kind) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value, Find(name));
  if (value->kind() != kind) {
    return Fail("attribute `", name, "` must be ", KindName(kind), ", not ",
                value->ToString());
  }
  return value;
}

absl::StatusOr<Dim> InferContext::DimOf(absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value,
                          Attribute(name, StaticValue::Kind::kInt));
  return value->AsDim();
}

absl::StatusOr<int64_t> InferContext::Int(absl::string_view name,
                                          int64_t least) {
  CLEAVE_ASSIGN_OR_RETURN(const Dim dim, DimOf(name));
  const std::optional<int64_t> value = dim.Value();
  if (!value) {
    return Fail("attribute `", name, "` must be a known integer, not ",
                dim.ToString());
  }
  if (*value < least) {
    return Fail("attribute `", name, "` is ", *value, ", but must be at least ",
                least);
  }
  return *value;
}

absl::StatusOr<bool> InferContext::Bool(absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value,
                          Attribute(name, StaticValue::Kind::kBool));
  return value->AsBool();
}

absl::Status InferContext::OptionalBool(absl::string_view name) {
  if (attributes_.Find(name) == nullptr) return absl::OkStatus();
  return Bool(name).status();
}

absl::StatusOr<Exact> InferContext::Real(absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value, Find(name));
  if (value->kind() == StaticValue::Kind::kReal) return value->AsReal();
  if (value->kind() == StaticValue::Kind::kInt && value->AsDim().Value()) {
    return Exact(*value->AsDim().Value());
  }
  return Fail("attribute `", name, "` must be a number, not ",
              value->ToString());
}

absl::StatusOr<DType> InferContext::DTypeOf(absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value,
                          Attribute(name, StaticValue::Kind::kDType));
  return value->AsDType();
}

absl::StatusOr<std::string> InferContext::Choice(
    absl::string_view name, absl::Span<const absl::string_view> choices) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value,
                          Attribute(name, StaticValue::Kind::kString));
  const std::string& text = value->AsString();
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return Fail("attribute `", name, "` is \"", text, "\", but must be one of ",
                absl::StrJoin(choices, ", "));
  }
  return text;
}

absl::Status InferContext::Tie(absl::Span<const absl::string_view> choices) {
  if (attributes_.Find("tie") == nullptr) return absl::OkStatus();
  return Choice("tie", choices).status();
}

absl::Status InferContext::RefuseTie() const {
  if (attributes_.Find("tie") == nullptr) return absl::OkStatus();
  return Fail("unknown attribute `tie`");
}

absl::StatusOr<std::vector<Dim>> InferContext::Dims(absl::string_view name) {
  return Dims(name, -1);
}

absl::StatusOr<std::vector<Dim>> InferContext::Dims(absl::string_view name,
                                                    int count) {
  CLEAVE_ASSIGN_OR_RETURN(const StaticValue* value,
                          Attribute(name, StaticValue::Kind::kList));
  std::vector<Dim> dims;
  for (const StaticValue& element : value->AsList()) {
    if (element.kind() != StaticValue::Kind::kInt) {
      return Fail("attribute `", name, "` must be a list of integers, not ",
                  value->ToString());
    }
    dims.push_back(element.AsDim());
  }
  if (count >= 0 && static_cast<int>(dims.size()) != count) {
    return Fail("attribute `", name, "` has ", dims.size(),
                " elements, but must have ", count);
  }
  return dims;
}

absl::StatusOr<std::vector<int64_t>> InferContext::Ints(absl::string_view name,
                                                        int count,
                                                        int64_t least) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Dim> dims, Dims(name, count));
  std::vector<int64_t> ints;
  for (const Dim& dim : dims) {
    const std::optional<int64_t> value = dim.Value();
    if (!value) {
      return Fail("attribute `", name, "` must hold known integers, not ",
                  dim.ToString());
    }
    if (*value < least) {
      return Fail("attribute `", name, "` holds ", *value,
                  ", but must be at least ", least);
    }
    ints.push_back(*value);
  }
  return ints;
}

absl::StatusOr<std::vector<int64_t>> InferContext::Axes(absl::string_view name,
                                                        int rank) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Ints(name, -1, 0));
  std::set<int64_t> seen;
  for (const int64_t axis : axes) {
    if (axis >= rank) {
      return Fail("attribute `", name, "` holds axis ", axis,
                  ", but the rank is ", rank);
    }
    if (!seen.insert(axis).second) {
      return Fail("attribute `", name, "` holds axis ", axis, " twice");
    }
  }
  return axes;
}

absl::StatusOr<int64_t> InferContext::Axis(absl::string_view name, int rank) {
  CLEAVE_ASSIGN_OR_RETURN(const int64_t axis, Int(name, 0));
  if (axis >= rank) {
    return Fail("attribute `", name, "` is ", axis, ", but the rank is ", rank);
  }
  return axis;
}

absl::StatusOr<Shape> InferContext::ShapeOf(absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(Shape shape, Dims(name));
  CLEAVE_RETURN_IF_ERROR(CheckExtents(shape));
  return shape;
}

absl::Status InferContext::CheckExtents(const Shape& shape) {
  for (const Dim& extent : shape) {
    CLEAVE_RETURN_IF_ERROR(
        Require(extent, CompareOp::kGe, 0, "an extent of the result"));
  }
  return absl::OkStatus();
}

absl::Status InferContext::Require(const Dim& a, CompareOp op, const Dim& b,
                                   absl::string_view why) {
  switch (Compare(a, op, b)) {
    case Truth::kTrue:
      return absl::OkStatus();
    case Truth::kFalse:
      return Fail(why, ": ", a.ToString(), " ", OpText(op), " ", b.ToString(),
                  " does not hold");
    case Truth::kUnknown:
      break;
  }
  guards_.push_back(
      {a, op, b, absl::StrCat("`", PrimitiveName(primitive_), "`: ", why)});
  return absl::OkStatus();
}

absl::Status InferContext::RequireSameShape(const Shape& a, const Shape& b,
                                            absl::string_view why) {
  if (a.size() != b.size()) {
    return Fail(why, ": shapes ", ShapeToString(a), " and ", ShapeToString(b),
                " differ in rank");
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    CLEAVE_RETURN_IF_ERROR(
        Require(a[i], CompareOp::kEq, b[i],
                absl::StrCat(why, ": axis ", i, " of shapes ", ShapeToString(a),
                             " and ", ShapeToString(b))));
  }
  return absl::OkStatus();
}

absl::Status InferContext::RequireRank(int operand, int rank) const {
  if (operands_[operand].rank() == rank) return absl::OkStatus();
  return Fail("operand ", operand, " is ", operands_[operand].ToString(),
              ", but must have rank ", rank);
}

absl::Status InferContext::RequireRankAtLeast(int operand, int rank) const {
  if (operands_[operand].rank() >= rank) return absl::OkStatus();
  return Fail("operand ", operand, " is ", operands_[operand].ToString(),
              ", but must have at least rank ", rank);
}

absl::Status InferContext::RequireDType(int operand, DType dtype) const {
  if (operands_[operand].dtype == dtype) return absl::OkStatus();
  return Fail("operand ", operand, " is ", operands_[operand].ToString(),
              ", but must be ", DTypeName(dtype));
}

absl::Status InferContext::RequireSameDType(int a, int b) const {
  if (operands_[a].dtype == operands_[b].dtype) return absl::OkStatus();
  return Fail("operands ", a, " and ", b, " have dtypes ",
              DTypeName(operands_[a].dtype), " and ",
              DTypeName(operands_[b].dtype), ", but must agree");
}

absl::Status InferContext::RequireClass(int operand,
                                        DTypeClass dtype_class) const {
  if (InClass(operands_[operand].dtype, dtype_class)) return absl::OkStatus();
  return Fail("operand ", operand, " is ", operands_[operand].ToString(),
              ", but its dtype must be of class ", DTypeClassName(dtype_class));
}

absl::StatusOr<InferredType> InferContext::Finish(
    std::vector<TensorType> results) {
  for (const auto& [name, value] : attributes_.values()) {
    if (FindAttribute(primitive_, name) == nullptr) {
      return Fail("unknown attribute `", name, "`");
    }
  }
  return InferredType{std::move(results), std::move(guards_)};
}

}  // namespace cleave
