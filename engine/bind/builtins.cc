#include "engine/bind/builtins.h"

#include <algorithm>

#include "absl/strings/match.h"
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

const std::vector<Builtin>& Builtins() {
  static const auto& builtins = *new std::vector<Builtin>{
#define BUILTIN(name, signature) {name, signature},
#include "engine/bind/builtin.def"
  };
  return builtins;
}

bool IsBuiltin(absl::string_view name) {
  for (const Builtin& builtin : Builtins()) {
    if (builtin.name == name) return true;
  }
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
