// SignatureBinder: attributes take their types.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/signature_binder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

absl::Status SignatureBinder::BindSizeAttributes() {
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (attribute.type != "dim") continue;
    CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindAxes() {
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (attribute.type == "axis") {
      CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
    }
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindAttributes() {
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (attribute.type != "axis" && attribute.type != "dim") {
      CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
    }
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindAttribute(const AttributeDecl& attribute) {
  RuleValue value;
  if (const RuleValue* given = Given(attribute.name)) {
    value = *given;
  } else if (attribute.default_value != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(
        value, elaborator_.Eval(*attribute.default_value, call_.scope));
  } else if (!attribute.optional) {
    return Wrong(absl::StrCat("attribute `", attribute.name, "` is missing"));
  }
  if (!value.Is(Kind::kAbsent)) {
    if (attribute.list || attribute.type == "axes") {
      CLEAVE_ASSIGN_OR_RETURN(value, AsList(attribute, value));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(value, AsType(attribute, value));
    }
  }
  const absl::StatusOr<StaticValue> canonical = ToStatic(value);
  if (canonical.ok() && !canonical->is_none()) {
    call_.attributes.Set(attribute.name, *canonical);
  }
  if (attribute.optional) value = std::move(value).Optional();
  call_.scope.Set(attribute.name, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<RuleValue> SignatureBinder::AsList(
    const AttributeDecl& attribute, const RuleValue& value) {
  std::optional<int64_t> length;
  if (attribute.list_length != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(
        const Dim dim,
        elaborator_.EvalDim(*attribute.list_length, call_.scope));
    length = dim.Value();
  }
  RuleList elements;
  if (value.Is(Kind::kList)) {
    elements = value.AsList();
  } else {
    elements.assign(attribute.type == "axes" ? 1 : length.value_or(1), value);
  }
  // In a host's `int[2] stride=[]` the length says how often one value counts
  // and no more: any other list is the host's own matter.
  if (callable_.item->kind == ItemKind::kAten && elements.size() != 1) {
    length.reset();
  }
  // One value counts for all.
  if (length.has_value() && elements.size() == 1 && *length != 1) {
    elements.assign(*length, RuleValue(elements[0]));
  }
  if (length.has_value() && static_cast<int64_t>(elements.size()) != *length) {
    return Wrong(absl::StrCat("attribute `", attribute.name, "` has ",
                              elements.size(), " elements, not ", *length));
  }
  RuleList list;
  for (const RuleValue& element : elements) {
    CLEAVE_ASSIGN_OR_RETURN(RuleValue x, AsType(attribute, element));
    for (const RuleValue& other : list) {
      if (attribute.type == "axes" && other.AsDim() == x.AsDim()) {
        return Wrong(absl::StrCat("axis ", x.AsDim().ToString(),
                                  " is named twice in `", attribute.name, "`"));
      }
    }
    list.push_back(std::move(x));
  }
  return RuleValue(std::move(list));
}

absl::StatusOr<RuleValue> SignatureBinder::AsType(
    const AttributeDecl& attribute, const RuleValue& value) {
  const std::string& type = attribute.type;
  const auto wrong = [&](absl::string_view wanted) {
    return Wrong(absl::StrCat("attribute `", attribute.name, "` must be ",
                              wanted, ", not ", value.KindName()));
  };
  if (type == "int" || type == "dim") {
    if (value.Is(Kind::kInt)) return value;
    if (value.Is(Kind::kBool)) return RuleValue(value.AsBool() ? 1 : 0);
    return wrong("an integer");
  }
  if (type == "real") {
    if (value.Is(Kind::kReal)) return value;
    if (std::optional<Exact> number = ToExact(value)) {
      return RuleValue(*std::move(number));
    }
    if (value.Is(Kind::kInt)) return value;  // an extent
    return wrong("a number");
  }
  if (type == "scalar") {
    if (value.IsNumber() || value.Is(Kind::kBool)) return value;
    return wrong("a number or a bool");
  }
  if (type == "bool") {
    if (value.IsTruth()) {
      if (value.Is(Kind::kBool)) return value;
      return Wrong(absl::StrCat("attribute `", attribute.name,
                                "` rests on an unknown size"));
    }
    // Hosts give 0 and 1.
    if (value.Is(Kind::kInt) && value.AsDim().Value().has_value()) {
      return RuleValue(*value.AsDim().Value() != 0);
    }
    return wrong("a bool");
  }
  if (type == "str") {
    return value.Is(Kind::kString) ? absl::StatusOr<RuleValue>(value)
                                   : wrong("a string");
  }
  if (type == "dtype") {
    return value.Is(Kind::kDType) ? absl::StatusOr<RuleValue>(value)
                                  : wrong("a dtype");
  }
  if (type == "enum") {
    if (!value.Is(Kind::kString)) return wrong("a name");
    const std::vector<std::string>& values = attribute.enum_values;
    if (std::find(values.begin(), values.end(), value.AsString()) ==
        values.end()) {
      const std::string closest = ClosestName(value.AsString(), values);
      return Wrong(absl::StrCat(
          "attribute `", attribute.name, "` cannot be `", value.AsString(), "`",
          closest.empty() ? ""
                          : absl::StrCat("; did you mean `", closest, "`?")));
    }
    return value;
  }
  if (type == "axis" || type == "axes") {
    const std::optional<int64_t> axis =
        value.Is(Kind::kInt) ? value.AsDim().Value() : std::nullopt;
    if (!axis.has_value()) return wrong("a known axis");
    const int rank = RankOf(attribute.axis_of);
    if (rank < 0) return value;  // of an absent input
    const int64_t normal = *axis < 0 ? *axis + rank : *axis;
    if (normal < 0 || normal >= rank) {
      return Wrong(absl::StrCat("axis ", *axis, " of `", attribute.axis_of,
                                "`, which has ", rank,
                                rank == 1 ? " axis" : " axes"));
    }
    return RuleValue(Dim(normal));
  }
  return elaborator_.Fail(DiagnosticKind::kType, attribute.range,
                          absl::StrCat("`", type, "` is no type"));
}

int SignatureBinder::RankOf(const std::string& name) const {
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    if (callable_.inputs[i].name != name) continue;
    const auto tensors = Tensors(inputs_[i]);
    if (tensors.empty()) return -1;
    return static_cast<int>(tensors[0].second->shape.size());
  }
  return -1;
}

}  // namespace cleave
