#include "engine/bind/builtins.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/primitive.h"

namespace cleave {

std::optional<absl::string_view> DerivedFrom(absl::string_view op) {
  if (absl::ConsumePrefix(&op, kJvpCallPrefix) ||
      absl::ConsumePrefix(&op, kVjpCallPrefix) ||
      absl::ConsumePrefix(&op, kVmapCallPrefix)) {
    return op;
  }
  return std::nullopt;
}

bool IsBatchCall(absl::string_view op) {
  return absl::StartsWith(op, kVmapCallPrefix);
}

namespace {

// `conv(x, w, stride: 1): ..`.
Builtin Parse(absl::string_view name, absl::string_view signature) {
  Builtin builtin{name, signature, {}, {}};
  absl::string_view given = signature.substr(name.size() + 1);
  given = given.substr(0, given.find(')'));
  for (absl::string_view part :
       absl::StrSplit(given, ", ", absl::SkipEmpty())) {
    const size_t colon = part.find(':');
    if (colon == absl::string_view::npos) {
      builtin.operands.push_back(part);
    } else {
      builtin.attributes.push_back(
          {part.substr(0, colon),
           absl::StripLeadingAsciiWhitespace(part.substr(colon + 1))});
    }
  }
  return builtin;
}

}  // namespace

const Builtin::Attribute* Builtin::FindAttribute(
    absl::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

const std::vector<Builtin>& Builtins() {
  static const auto& builtins = *new std::vector<Builtin>{
#define BUILTIN(name, signature, function) Parse(name, signature),
#include "engine/bind/builtin.def"
  };
  return builtins;
}

const Builtin* FindBuiltin(absl::string_view name) {
  static const auto& by_name = *[] {
    auto* map = new absl::flat_hash_map<absl::string_view, const Builtin*>();
    for (const Builtin& builtin : Builtins()) {
      map->emplace(builtin.name, &builtin);
    }
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

bool IsBuiltin(absl::string_view name) {
  if (FindBuiltin(name) != nullptr) return true;
  const std::optional<Primitive> primitive = FindPrimitive(name);
  return primitive.has_value() &&
         ClassOf(*primitive) == PrimitiveClass::kPointwise;
}

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const Builtin& builtin : Builtins()) {
    names.emplace_back(builtin.name);
  }
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      names.emplace_back(PrimitiveName(primitive));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cleave
