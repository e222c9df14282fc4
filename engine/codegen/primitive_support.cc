#include "engine/codegen/primitive_support.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/codegen/element_support.h"
#include "ops/dtype.h"

namespace cleave {
namespace {

// The kind of the groups that the primitive is in; nullopt: it computes
// nothing.
std::optional<GroupKind> KindOfGroup(Primitive primitive) {
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
    case PrimitiveClass::kProjection:
      return std::nullopt;
    case PrimitiveClass::kPointwise:
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kGather:
      return GroupKind::kPointwise;
    case PrimitiveClass::kWindow:
      return primitive == Primitive::kWindowsAdd ? GroupKind::kStructured
                                                 : GroupKind::kPointwise;
    case PrimitiveClass::kReduction:
      return GroupKind::kReduction;
    case PrimitiveClass::kContraction:
      return GroupKind::kContraction;
    case PrimitiveClass::kScan:
    case PrimitiveClass::kScatter:
      return GroupKind::kStructured;
    case PrimitiveClass::kSort:
      return GroupKind::kRuntime;
    case PrimitiveClass::kControl:
      return GroupKind::kLoop;
    case PrimitiveClass::kRandom:
      return IsDraw(primitive) ? GroupKind::kPointwise : GroupKind::kReference;
    default:
      return GroupKind::kReference;
  }
}

// A key is no number: what takes it has code for it.
bool HasNumbers(DType dtype) {
  return HasElements(dtype) && dtype != DType::kKey;
}

// Reasons against a pointwise primitive, each with its dtypes.
std::map<std::string, std::vector<std::string>> Reasons(Primitive primitive) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const DType dtype : AllDTypes()) {
    if (!HasNumbers(dtype)) continue;
    const std::vector<DType> operands(std::max(OperandCount(primitive), 1),
                                      dtype);
    const absl::Status status = CanLowerElement(primitive, dtype, operands);
    if (status.ok()) continue;
    // "`name`: why"
    const std::string text(status.message());
    reasons[text.substr(text.find(": ") + 2)].emplace_back(DTypeName(dtype));
  }
  return reasons;
}

}  // namespace

std::string DescribeSupport(Primitive primitive, Device device) {
  const std::optional<GroupKind> kind = KindOfGroup(primitive);
  if (!kind.has_value()) return "";
  if (*kind == GroupKind::kReference) return "reference kernel: no vector code";
  const absl::Status allowed = CanRunOn(device, *kind);
  if (!allowed.ok()) return absl::StrCat("cpu: ", allowed.message());
  if (*kind == GroupKind::kRuntime) return "kernel: the runtime's own";
  if (*kind == GroupKind::kLoop) return "kernels of its regions";
  std::string text = "kernel";
  if (ClassOf(primitive) != PrimitiveClass::kPointwise) return text;
  size_t all = 0;
  for (const DType dtype : AllDTypes()) all += HasNumbers(dtype);
  for (const auto& [why, dtypes] : Reasons(primitive)) {
    if (dtypes.size() == all) return absl::StrCat("reference kernel: ", why);
    absl::StrAppend(&text, "; reference kernel in ",
                    absl::StrJoin(dtypes, ", "), ": ", why);
  }
  return text;
}

}  // namespace cleave
