#include "engine/elaborate/rule_value.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

CompareOp Opposite(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return CompareOp::kNe;
    case CompareOp::kNe:
      return CompareOp::kEq;
    case CompareOp::kLt:
      return CompareOp::kGe;
    case CompareOp::kLe:
      return CompareOp::kGt;
    case CompareOp::kGt:
      return CompareOp::kLe;
    case CompareOp::kGe:
      return CompareOp::kLt;
  }
  return op;
}

}  // namespace

std::variant<bool, Condition> Decide(const Dim& lhs, CompareOp op,
                                     const Dim& rhs) {
  switch (Compare(lhs, op, rhs)) {
    case Truth::kTrue:
      return true;
    case Truth::kFalse:
      return false;
    case Truth::kUnknown:
      break;
  }
  return Condition{lhs, op, rhs};
}

Condition Negate(const Condition& condition) {
  return {condition.lhs, Opposite(condition.op), condition.rhs};
}

Dim MarginOf(const Condition& c) {
  switch (c.op) {
    case CompareOp::kEq:
      return Dim::Min(c.lhs - c.rhs, c.rhs - c.lhs);
    case CompareOp::kNe:
      return Dim::Max(c.lhs - c.rhs, c.rhs - c.lhs) - 1;
    case CompareOp::kLt:
      return c.rhs - c.lhs - 1;
    case CompareOp::kLe:
      return c.rhs - c.lhs;
    case CompareOp::kGt:
      return c.lhs - c.rhs - 1;
    case CompareOp::kGe:
      break;
  }
  return c.lhs - c.rhs;
}

Condition And(const Condition& a, const Condition& b) {
  return {Dim::Min(MarginOf(a), MarginOf(b)), CompareOp::kGe, 0};
}

Condition Or(const Condition& a, const Condition& b) {
  return {Dim::Max(MarginOf(a), MarginOf(b)), CompareOp::kGe, 0};
}

bool HoldsForLargeSizes(const Condition& condition) {
  const Dim margin = MarginOf(condition);
  std::map<std::string, int64_t> sizes;
  int64_t size = 1009;
  for (const std::string& name : margin.Variables()) {
    sizes[name] = size;
    size += 210;
  }
  const absl::StatusOr<int64_t> value = margin.Evaluate(sizes);
  return value.ok() && *value >= 0;
}

absl::string_view RuleValue::KindName() const {
  switch (kind()) {
    case Kind::kAbsent:
      return "absent";
    case Kind::kBool:
    case Kind::kCondition:
      return "a static condition";
    case Kind::kInt:
      return "an integer";
    case Kind::kReal:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kDType:
      return "a dtype";
    case Kind::kList:
      return "a list";
    case Kind::kRecord:
      return "a record";
    case Kind::kTerm:
      return "a tensor";
    case Kind::kIndex:
      return "an index";
    case Kind::kPack:
      return "a list of indices";
    case Kind::kImpossible:
      break;
  }
  return "impossible";
}

RuleValue DimList(const Shape& shape) {
  RuleList list;
  for (const Dim& dim : shape) list.push_back(dim);
  return list;
}

RuleValue FromStatic(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kNone:
      return RuleValue();
    case StaticValue::Kind::kBool:
      return value.AsBool();
    case StaticValue::Kind::kInt:
      return value.AsDim();
    case StaticValue::Kind::kReal:
      return value.AsReal();
    case StaticValue::Kind::kString:
      return value.AsString();
    case StaticValue::Kind::kDType:
      return DTypeVariable::Known(value.AsDType());
    case StaticValue::Kind::kList: {
      RuleList list;
      for (const StaticValue& v : value.AsList()) list.push_back(FromStatic(v));
      return list;
    }
    case StaticValue::Kind::kRecord: {
      RuleRecord record;
      for (const auto& [name, v] : value.AsRecord()) {
        record.emplace_back(name, FromStatic(v));
      }
      return record;
    }
    case StaticValue::Kind::kRegion:
      break;
  }
  CLEAVE_CHECK(value.kind() != StaticValue::Kind::kRegion)
      << "a region is no value of a rule";
  return RuleValue();
}

absl::StatusOr<StaticValue> ToStatic(const RuleValue& value) {
  switch (value.kind()) {
    case RuleValue::Kind::kAbsent:
      return StaticValue();
    case RuleValue::Kind::kBool:
      return StaticValue(value.AsBool());
    case RuleValue::Kind::kInt:
      return StaticValue(value.AsDim());
    case RuleValue::Kind::kReal:
      return StaticValue(value.AsReal());
    case RuleValue::Kind::kString:
      return StaticValue(value.AsString());
    case RuleValue::Kind::kDType: {
      const std::optional<DType> dtype = value.AsDType()->dtype();
      if (!dtype.has_value()) {
        return absl::InvalidArgumentError("a dtype that is not known yet");
      }
      return StaticValue(*dtype);
    }
    case RuleValue::Kind::kList: {
      StaticValue::List list;
      for (const RuleValue& v : value.AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue element, ToStatic(v));
        list.push_back(std::move(element));
      }
      return StaticValue(std::move(list));
    }
    case RuleValue::Kind::kRecord: {
      StaticValue::Record record;
      for (const auto& [name, v] : value.AsRecord()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue element, ToStatic(v));
        record.emplace_back(name, std::move(element));
      }
      return StaticValue(std::move(record));
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(value.KindName(), " is not static"));
  }
}

std::optional<Exact> ToExact(const RuleValue& value) {
  if (value.Is(RuleValue::Kind::kReal)) return value.AsReal();
  if (value.Is(RuleValue::Kind::kInt)) {
    const std::optional<int64_t> number = value.AsDim().Value();
    if (number.has_value()) return Exact(*number);
  }
  return std::nullopt;
}

const RuleValue* Scope::Find(absl::string_view name) const {
  const std::string key(name);
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    const auto it = scope->values_.find(key);
    if (it != scope->values_.end()) return &it->second;
  }
  return nullptr;
}

void Scope::CollectNames(std::vector<std::string>* names) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    for (const auto& [name, value] : scope->values_) names->push_back(name);
  }
}

}  // namespace cleave
