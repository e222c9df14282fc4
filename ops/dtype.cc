#include "ops/dtype.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cleave {
namespace {

struct DTypeInfo {
  DType dtype;
  const char* name;
  DTypeKind kind;
  int bytes;
};

constexpr DTypeInfo kInfo[] = {
#define DTYPE(enumerator, text, kind, bytes) \
  {DType::enumerator, text, DTypeKind::kind, bytes},
#include "ops/dtype.def"
};

struct ClassInfo {
  DTypeClass dtype_class;
  const char* name;
};

// In the order of DTypeClass.
constexpr ClassInfo kClasses[] = {
    {DTypeClass::kBool, "bool"},     {DTypeClass::kInt, "int"},
    {DTypeClass::kFloat, "float"},   {DTypeClass::kComplex, "complex"},
    {DTypeClass::kReal, "real"},     {DTypeClass::kInexact, "inexact"},
    {DTypeClass::kNumber, "number"}, {DTypeClass::kAny, "any"},
};

const DTypeInfo& InfoOf(DType dtype) {
  return kInfo[static_cast<size_t>(dtype)];
}

// "f32, f64, ...": what a message offers instead of an unknown name.
template <typename Table>
std::string Names(const Table& table) {
  return absl::StrJoin(table, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.name);
  });
}

}  // namespace

const std::vector<DType>& AllDTypes() {
  static const auto* const all = [] {
    auto* dtypes = new std::vector<DType>;
    for (const DTypeInfo& info : kInfo) dtypes->push_back(info.dtype);
    return dtypes;
  }();
  return *all;
}

absl::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }
DTypeKind KindOf(DType dtype) { return InfoOf(dtype).kind; }
int ByteSize(DType dtype) { return InfoOf(dtype).bytes; }

bool IsSigned(DType dtype) {
  switch (KindOf(dtype)) {
    case DTypeKind::kBool:
    case DTypeKind::kKey:
      return false;
    case DTypeKind::kInt:
      return DTypeName(dtype)[0] == 'i';
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      return true;
  }
  return false;
}

bool InClass(DType dtype, DTypeClass dtype_class) {
  const DTypeKind kind = KindOf(dtype);
  switch (dtype_class) {
    case DTypeClass::kBool:
      return kind == DTypeKind::kBool;
    case DTypeClass::kInt:
      return kind == DTypeKind::kInt;
    case DTypeClass::kFloat:
      return kind == DTypeKind::kFloat;
    case DTypeClass::kComplex:
      return kind == DTypeKind::kComplex;
    case DTypeClass::kReal:
      return kind == DTypeKind::kInt || kind == DTypeKind::kFloat;
    case DTypeClass::kInexact:
      return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
    case DTypeClass::kNumber:
      return kind == DTypeKind::kInt || kind == DTypeKind::kFloat ||
             kind == DTypeKind::kComplex;
    case DTypeClass::kAny:
      return true;
  }
  return false;
}

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (const DTypeInfo& info : kInfo) {
    if (name == info.name) return info.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown dtype `", name, "`; the dtypes are ", Names(kInfo)));
}

absl::StatusOr<DTypeClass> ParseDTypeClass(absl::string_view name) {
  for (const ClassInfo& info : kClasses) {
    if (name == info.name) return info.dtype_class;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown dtype class `", name, "`; the classes are ", Names(kClasses)));
}

absl::string_view DTypeClassName(DTypeClass dtype_class) {
  return kClasses[static_cast<size_t>(dtype_class)].name;
}

DType AccumulationType(DType dtype) {
  switch (KindOf(dtype)) {
    case DTypeKind::kBool:
      return DType::kI64;
    case DTypeKind::kInt:
      return dtype == DType::kU64 ? DType::kU64 : DType::kI64;
    case DTypeKind::kFloat:
      return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    case DTypeKind::kComplex:
    case DTypeKind::kKey:
      return dtype;
  }
  return dtype;
}

int SignificandBits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kF32:
      return 24;
    case DType::kF64:
      return 53;
    default:
      return 0;
  }
}

}  // namespace cleave
