#include "engine/elaborate/builtin_call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

// The known numbers that a number or a list names.
std::optional<std::vector<int>> Numbers(const RuleValue& value) {
  const RuleList one = {value};
  std::vector<int> numbers;
  for (const RuleValue& element :
       value.Is(Kind::kList) ? value.AsList() : one) {
    const std::optional<int64_t> number =
        element.Is(Kind::kInt) ? element.AsDim().Value() : std::nullopt;
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

}  // namespace

absl::Status BuiltinCall::Check() const {
  const size_t wanted = builtin_.operands.size();
  const size_t given = operands().size();
  const bool any = wanted > 0 && builtin_.operands.back() == "..";
  if (given != wanted && !any) {
    return Wrong(absl::StrCat("takes ", wanted,
                              wanted == 1 ? " value" : " values",
                              " by position, not ", given));
  }
  for (const auto& [key, value] : arguments_.named) {
    if (builtin_.FindAttribute(key) != nullptr) continue;
    return elaborator_.Fail(
        DiagnosticKind::kUnknownAttribute, range_,
        absl::StrCat("`", name, "` has no attribute `", key, "`"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TermPtr> BuiltinCall::Tensor(size_t operand) {
  return ToTerm(operands()[operand]);
}

absl::StatusOr<RuleList> BuiltinCall::List(size_t operand) {
  return elaborator_.AsElements(operands()[operand], range_);
}

absl::StatusOr<std::vector<Shape>> BuiltinCall::Shapes(size_t operand) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, List(operand));
  std::vector<Shape> shapes;
  for (const RuleValue& element : list) {
    CLEAVE_ASSIGN_OR_RETURN(const RuleList dims,
                            elaborator_.AsElements(element, range_));
    Shape& shape = shapes.emplace_back();
    for (const RuleValue& dim : dims) {
      if (!dim.Is(Kind::kInt)) return Wrong("takes lists of sizes");
      shape.push_back(dim.AsDim());
    }
  }
  return shapes;
}

absl::StatusOr<std::vector<int>> BuiltinCall::Places(size_t operand,
                                                     size_t count) {
  std::optional<std::vector<int>> places = Numbers(operands()[operand]);
  if (!places.has_value()) return Wrong("needs known places");
  for (int& place : *places) {
    if (place < 0) place += static_cast<int>(count);
  }
  return *std::move(places);
}

bool BuiltinCall::Has(absl::string_view key) const {
  const RuleValue* value = arguments_.Find(key);
  return value != nullptr && !value->Is(Kind::kAbsent);
}

absl::StatusOr<RuleValue> BuiltinCall::Attribute(absl::string_view key) const {
  if (const RuleValue* value = arguments_.Find(key)) return *value;
  const Builtin::Attribute* declared = builtin_.FindAttribute(key);
  CLEAVE_CHECK(declared != nullptr) << name << " has no " << key;
  int number;
  if (absl::SimpleAtoi(declared->fallback, &number)) return RuleValue(number);
  if (declared->fallback == "true") return RuleValue(true);
  if (declared->fallback == "false") return RuleValue(false);
  return Wrong(absl::StrCat("needs `", key, ":`"));
}

absl::StatusOr<Dim> BuiltinCall::Size(absl::string_view key) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  if (value.Is(Kind::kInt)) return value.AsDim();
  return Wrong(absl::StrCat("needs a number as `", key, ":`"));
}

absl::StatusOr<Shape> BuiltinCall::Dims(absl::string_view key) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  if (!value.Is(Kind::kList)) {
    return Wrong(absl::StrCat("needs a list of sizes as `", key, ":`"));
  }
  Shape shape;
  for (const RuleValue& element : value.AsList()) {
    if (!element.Is(Kind::kInt)) {
      return Wrong(absl::StrCat("needs a list of sizes as `", key,
                                ":`; it holds ", element.KindName()));
    }
    shape.push_back(element.AsDim());
  }
  return shape;
}

absl::StatusOr<Shape> BuiltinCall::DimsPerAxis(absl::string_view key,
                                               size_t count) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  if (value.Is(Kind::kInt)) return Shape(count, value.AsDim());
  CLEAVE_ASSIGN_OR_RETURN(Shape dims, Dims(key));
  if (dims.size() == count) return dims;
  return Wrong(absl::StrCat("needs one `", key, ":` per axis"));
}

absl::StatusOr<std::vector<int>> BuiltinCall::Axes(absl::string_view key,
                                                   int rank) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  const std::optional<std::vector<int>> places = Numbers(value);
  if (!places.has_value()) {
    return Wrong(absl::StrCat("needs known axes as `", key, ":`"));
  }
  const auto fail = [&](auto... what) {
    return elaborator_.Fail(DiagnosticKind::kShape, range_,
                            absl::StrCat("axis ", what...));
  };
  std::vector<int> axes;
  for (const int axis : *places) {
    const int normal = axis < 0 ? axis + rank : axis;
    if (normal < 0 || normal >= rank) {
      return fail(axis, " of a tensor with ", rank,
                  rank == 1 ? " axis" : " axes");
    }
    if (std::find(axes.begin(), axes.end(), normal) != axes.end()) {
      return fail(axis, " twice");
    }
    axes.push_back(normal);
  }
  return axes;
}

absl::StatusOr<int> BuiltinCall::Axis(int rank) const {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> axes, Axes("axis", rank));
  if (axes.size() != 1) return Wrong("needs one axis as `axis:`");
  return axes[0];
}

absl::StatusOr<bool> BuiltinCall::Flag(absl::string_view key) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  if (value.Is(Kind::kBool)) return value.AsBool();
  return Wrong(absl::StrCat("needs true or false as `", key, ":`"));
}

absl::StatusOr<DTypePtr> BuiltinCall::DTypeOf(absl::string_view key) const {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
  if (value.Is(Kind::kDType)) return value.AsDType();
  return Wrong(absl::StrCat("needs a dtype as `", key, ":`"));
}

absl::StatusOr<DType> BuiltinCall::KnownDType(absl::string_view key) const {
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, DTypeOf(key));
  if (!dtype->dtype().has_value()) return Wrong("needs a known dtype");
  return *dtype->dtype();
}

std::string BuiltinCall::tie() const {
  return tie_.empty() ? "even" : std::string(tie_);
}

absl::StatusOr<TermPtr> BuiltinCall::ToTerm(const RuleValue& value) {
  return elaborator_.ToTerm(value, range_);
}

BuiltinCall::Result BuiltinCall::Combine(absl::string_view op,
                                         const RuleValue& a,
                                         const RuleValue& b) {
  return elaborator_.StaticArithmetic(op, a, b, range_);
}

absl::Status BuiltinCall::UnifyDTypes(const std::vector<TermPtr>& terms) {
  return At(cleave::UnifyDTypes(terms), DiagnosticKind::kType);
}

Dim BuiltinCall::NewExtent() {
  return elaborator_.DynamicExtent(absl::StrCat(
      elaborator_.rule_, ".", name, elaborator_.dynamic_extents_++));
}

absl::Status BuiltinCall::Wrong(absl::string_view what) const {
  return elaborator_.Fail(DiagnosticKind::kArgument, range_,
                          absl::StrCat("`", name, "` ", what));
}

absl::Status BuiltinCall::At(const absl::Status& status,
                             DiagnosticKind kind) const {
  return elaborator_.At(status, range_, kind);
}

BuiltinCall::Result BuiltinCall::Done(absl::StatusOr<TermPtr> term) const {
  if (!term.ok()) return At(term.status());
  return RuleValue(*std::move(term));
}

}  // namespace cleave
