#include "ops/primitive.h"

#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/check.h"

namespace cleave {
namespace {

struct PrimitiveInfo {
  absl::string_view name;
  PrimitiveClass primitive_class;
  absl::string_view operands;
  absl::string_view attributes;
  int results;
  DerivativeKind derivative;
};

constexpr PrimitiveInfo kInfo[] = {
#define PRIMITIVE(enumerator, text, primitive_class, operands, attributes, \
                  results, derivative)                                     \
  {text,    PrimitiveClass::k##primitive_class, operands, attributes,      \
   results, DerivativeKind::k##derivative},
#include "ops/primitive.def"
};

const PrimitiveInfo& InfoOf(Primitive primitive) {
  // Ids of ops beyond the primitives stand for calls.
  CLEAVE_CHECK(static_cast<size_t>(primitive) < std::size(kInfo))
      << "no primitive";
  return kInfo[static_cast<size_t>(primitive)];
}

std::vector<absl::string_view> SplitList(absl::string_view text) {
  return absl::StrSplit(text, ", ", absl::SkipEmpty());
}

// `axis: int`, `tie: str = even`, `max: dim?`.
PrimitiveAttribute ParseAttribute(absl::string_view text) {
  PrimitiveAttribute attribute;
  const size_t colon = text.find(": ");
  attribute.name = text.substr(0, colon);
  attribute.type = text.substr(colon + 2);
  const size_t equals = attribute.type.find(" = ");
  if (equals != attribute.type.npos) {
    attribute.fallback = attribute.type.substr(equals + 3);
    attribute.type = attribute.type.substr(0, equals);
  }
  attribute.may_lack = absl::ConsumeSuffix(&attribute.type, "?");
  return attribute;
}

// The dtypes of `bool|int` and `f32|f64`.
uint32_t ParseDTypes(absl::string_view text) {
  uint32_t bits = 0;
  for (const absl::string_view part : absl::StrSplit(text, '|')) {
    const absl::StatusOr<DType> one = ParseDType(part);
    const absl::StatusOr<DTypeClass> several = ParseDTypeClass(part);
    CLEAVE_CHECK(one.ok() || several.ok()) << part;
    for (const DType dtype : AllDTypes()) {
      if (one.ok() ? dtype == *one : InClass(dtype, *several)) {
        bits |= uint32_t{1} << static_cast<int>(dtype);
      }
    }
  }
  return bits;
}

PrimitiveOperand ParseOperand(absl::string_view text) {
  PrimitiveOperand operand;
  const size_t colon = text.find(": ");
  operand.name = text.substr(0, colon);
  if (colon == text.npos) return operand;
  operand.dtypes = text.substr(colon + 2);
  operand.dtype_bits = ParseDTypes(operand.dtypes);
  return operand;
}

// The signatures, read from the list once.
struct Signature {
  std::vector<PrimitiveOperand> operands;
  int operand_count = 0;
  std::vector<PrimitiveAttribute> attributes;
};

const Signature& SignatureOf(Primitive primitive) {
  static const auto& signatures = *[] {
    auto* all = new std::vector<Signature>(kNumPrimitives);
    for (int i = 0; i < kNumPrimitives; ++i) {
      Signature& signature = (*all)[i];
      for (absl::string_view operand : SplitList(kInfo[i].operands)) {
        signature.operands.push_back(ParseOperand(operand));
      }
      const bool any = absl::EndsWith(kInfo[i].operands, "..");
      signature.operand_count =
          any ? -1 : static_cast<int>(signature.operands.size());
      for (absl::string_view attribute : SplitList(kInfo[i].attributes)) {
        signature.attributes.push_back(ParseAttribute(attribute));
      }
    }
    return all;
  }();
  return signatures[static_cast<int>(primitive)];
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

const std::vector<PrimitiveOperand>& OperandsOf(Primitive primitive) {
  return SignatureOf(primitive).operands;
}

const std::vector<PrimitiveAttribute>& AttributesOf(Primitive primitive) {
  return SignatureOf(primitive).attributes;
}

const PrimitiveAttribute* FindAttribute(Primitive primitive,
                                        absl::string_view name) {
  for (const PrimitiveAttribute& attribute : AttributesOf(primitive)) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

int OperandCount(Primitive primitive) {
  return SignatureOf(primitive).operand_count;
}

int ResultCount(Primitive primitive) { return InfoOf(primitive).results; }

}  // namespace cleave
