#include "ops/static_value.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

const char* KindName(StaticValue::Kind kind) {
  constexpr const char* kNames[] = {"none",   "a bool",   "an integer",
                                    "a real", "a string", "a dtype",
                                    "a list", "a record", "a region"};
  return kNames[static_cast<int>(kind)];
}

absl::Status NotA(const char* wanted, const StaticValue& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", wanted, ", found ", KindName(value.kind()),
                   " `", value.ToString(), "`"));
}

template <typename T>
StaticValue ListOf(const std::vector<T>& values) {
  return StaticValue::List(values.begin(), values.end());
}

}  // namespace

StaticValue StaticValue::Ints(const std::vector<int>& values) {
  return ListOf(values);
}
StaticValue StaticValue::Ints(const std::vector<int64_t>& values) {
  return ListOf(values);
}
StaticValue StaticValue::Dims(const std::vector<Dim>& values) {
  return ListOf(values);
}

#define CLEAVE_CHECK_KIND(wanted) \
  CLEAVE_CHECK(kind() == Kind::wanted) << "found " << KindName(kind())

bool StaticValue::AsBool() const {
  CLEAVE_CHECK_KIND(kBool);
  return std::get<bool>(value_);
}
const Dim& StaticValue::AsDim() const {
  CLEAVE_CHECK_KIND(kInt);
  return std::get<Dim>(value_);
}
const Exact& StaticValue::AsReal() const {
  CLEAVE_CHECK_KIND(kReal);
  return std::get<Exact>(value_);
}
const std::string& StaticValue::AsString() const {
  CLEAVE_CHECK_KIND(kString);
  return std::get<std::string>(value_);
}
DType StaticValue::AsDType() const {
  CLEAVE_CHECK_KIND(kDType);
  return std::get<DType>(value_);
}
const StaticValue::List& StaticValue::AsList() const {
  CLEAVE_CHECK_KIND(kList);
  return *std::get<std::shared_ptr<const List>>(value_);
}
const StaticValue::Record& StaticValue::AsRecord() const {
  CLEAVE_CHECK_KIND(kRecord);
  return *std::get<std::shared_ptr<const Record>>(value_);
}
const Region& StaticValue::AsRegion() const {
  CLEAVE_CHECK_KIND(kRegion);
  return std::get<Region>(value_);
}

#undef CLEAVE_CHECK_KIND

absl::StatusOr<int64_t> StaticValue::ToInt() const {
  if (kind() != Kind::kInt || !AsDim().IsConstant()) {
    return NotA("a constant integer", *this);
  }
  return *AsDim().Value();
}

absl::StatusOr<std::vector<int64_t>> StaticValue::ToInts() const {
  if (kind() != Kind::kList) return NotA("a list of integers", *this);
  std::vector<int64_t> result;
  for (const StaticValue& element : AsList()) {
    CLEAVE_ASSIGN_OR_RETURN(result.emplace_back(), element.ToInt());
  }
  return result;
}

absl::StatusOr<std::vector<Dim>> StaticValue::ToDims() const {
  if (kind() != Kind::kList) return NotA("a list of integers", *this);
  std::vector<Dim> result;
  for (const StaticValue& element : AsList()) {
    if (element.kind() != Kind::kInt) return NotA("an integer", element);
    result.push_back(element.AsDim());
  }
  return result;
}

bool operator==(const StaticValue& a, const StaticValue& b) {
  using Kind = StaticValue::Kind;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.AsBool() == b.AsBool();
    case Kind::kInt:
      return a.AsDim() == b.AsDim();
    case Kind::kReal:
      return IsSame(a.AsReal(), b.AsReal());
    case Kind::kString:
      return a.AsString() == b.AsString();
    case Kind::kDType:
      return a.AsDType() == b.AsDType();
    case Kind::kList:
      return a.AsList() == b.AsList();
    case Kind::kRecord:
      return a.AsRecord() == b.AsRecord();
    case Kind::kRegion:
      return a.AsRegion().text == b.AsRegion().text;
  }
  return false;
}

size_t StaticValue::Hash() const {
  const auto hash = [this](const auto&... parts) {
    return absl::HashOf(static_cast<int>(kind()), parts...);
  };
  switch (kind()) {
    case Kind::kNone:
      return hash(0);
    case Kind::kBool:
      return hash(AsBool());
    case Kind::kInt:
      return hash(AsDim());
    case Kind::kReal:
      // Equal reals are equal doubles; a NaN's payload does not count.
      return AsReal().IsNaN()
                 ? hash(1)
                 : hash(AsReal().ToDouble(), AsReal().IsNegativeZero());
    case Kind::kString:
      return hash(AsString());
    case Kind::kDType:
      return hash(AsDType());
    case Kind::kList:
      return hash(AsList());
    case Kind::kRecord:
      return hash(AsRecord());
    case Kind::kRegion:
      return hash(AsRegion().text);
  }
  return 0;
}

std::string StaticValue::ToString() const {
  switch (kind()) {
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return AsBool() ? "true" : "false";
    case Kind::kInt:
      return AsDim().ToString();
    case Kind::kReal: {
      // An integral real keeps its point, which tells it from an integer.
      std::string text = AsReal().ToString();
      const bool digits =
          text.find_first_not_of("-0123456789") == std::string::npos;
      return digits ? text + ".0" : text;
    }
    case Kind::kString:
      return absl::StrCat("\"", absl::CEscape(AsString()), "\"");
    case Kind::kDType:
      return std::string(DTypeName(AsDType()));
    case Kind::kList:
      return absl::StrCat(
          "[",
          absl::StrJoin(AsList(), ", ",
                        [](std::string* out, const StaticValue& element) {
                          absl::StrAppend(out, element.ToString());
                        }),
          "]");
    case Kind::kRecord:
      return absl::StrCat(
          "(",
          absl::StrJoin(AsRecord(), ", ",
                        [](std::string* out, const auto& field) {
                          absl::StrAppend(out, field.first, " = ",
                                          field.second.ToString());
                        }),
          ")");
    case Kind::kRegion:
      return absl::StrCat("{", AsRegion().text, "}");
  }
  return "";
}

Attributes::Attributes(
    std::initializer_list<std::pair<std::string, StaticValue>> init) {
  for (const auto& [name, value] : init) Set(name, value);
}

void Attributes::Set(absl::string_view name, StaticValue value) {
  const auto at = std::lower_bound(
      values_.begin(), values_.end(), name,
      [](const auto& entry, absl::string_view n) { return entry.first < n; });
  if (at != values_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    values_.insert(at, {std::string(name), std::move(value)});
  }
}

const StaticValue* Attributes::Find(absl::string_view name) const {
  // A handful of entries: a linear search is the fastest.
  for (const auto& entry : values_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

const StaticValue& Attributes::Get(absl::string_view name) const {
  const StaticValue* value = Find(name);
  CLEAVE_CHECK(value != nullptr) << "no attribute `" << name << "`";
  return *value;
}

int64_t Attributes::GetInt(absl::string_view name) const {
  auto value = Get(name).ToInt();
  CLEAVE_CHECK(value.ok()) << name << ": " << value.status();
  return *value;
}

bool Attributes::GetBool(absl::string_view name) const {
  return Get(name).AsBool();
}

std::vector<int64_t> Attributes::GetInts(absl::string_view name) const {
  auto value = Get(name).ToInts();
  CLEAVE_CHECK(value.ok()) << name << ": " << value.status();
  return *std::move(value);
}

std::vector<Dim> Attributes::GetDims(absl::string_view name) const {
  auto value = Get(name).ToDims();
  CLEAVE_CHECK(value.ok()) << name << ": " << value.status();
  return *std::move(value);
}

std::string Attributes::ToString() const {
  return absl::StrJoin(values_, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, ": ", entry.second.ToString());
  });
}

}  // namespace cleave
