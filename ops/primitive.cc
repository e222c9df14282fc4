#include "ops/primitive.h"

#include "absl/container/flat_hash_map.h"

namespace cleave {
namespace {

struct PrimitiveInfo {
  absl::string_view name;
  PrimitiveClass primitive_class;
  int operands;
  int results;
  DerivativeKind derivative;
};

constexpr PrimitiveInfo kInfo[] = {
#define PRIMITIVE(enumerator, text, primitive_class, operands, results, \
                  derivative)                                           \
  {text, PrimitiveClass::k##primitive_class, operands, results,         \
   DerivativeKind::k##derivative},
#include "ops/primitive.def"
};

const PrimitiveInfo& InfoOf(Primitive primitive) {
  return kInfo[static_cast<int>(primitive)];
}

}  // namespace

absl::string_view PrimitiveName(Primitive primitive) {
  return InfoOf(primitive).name;
}

std::optional<Primitive> FindPrimitive(absl::string_view name) {
  static const auto& by_name = *[] {
    auto* map = new absl::flat_hash_map<absl::string_view, Primitive>();
    for (int i = 0; i < kNumPrimitives; ++i) {
      map->emplace(kInfo[i].name, static_cast<Primitive>(i));
    }
    return map;
  }();
  const auto it = by_name.find(name);
  if (it == by_name.end()) return std::nullopt;
  return it->second;
}

PrimitiveClass ClassOf(Primitive primitive) {
  return InfoOf(primitive).primitive_class;
}

DerivativeKind DerivativeOf(Primitive primitive) {
  return InfoOf(primitive).derivative;
}

int OperandCount(Primitive primitive) { return InfoOf(primitive).operands; }

int ResultCount(Primitive primitive) { return InfoOf(primitive).results; }

}  // namespace cleave
