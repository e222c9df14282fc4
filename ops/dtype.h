// Element types, their classes, and the two tables every stage needs:
// accumulation types and host promotion.
//
//   absl::StatusOr<DType> d = ParseDType("bf16");
//   IsFloat(*d);                        // true
//   AccumulationType(*d);               // DType::kF32

#ifndef CLEAVE_OPS_DTYPE_H_
#define CLEAVE_OPS_DTYPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

enum class DType : uint8_t {
#define DTYPE(enumerator, text, kind, bytes) enumerator,
#include "ops/dtype.def"
};

// The kind of a dtype's elements; every dtype has exactly one.
enum class DTypeKind : uint8_t { kBool, kInt, kFloat, kComplex, kKey };

// The classes of a rule's `where` clause: int, float < real < number; float,
// complex < inexact < number; bool; any.
enum class DTypeClass : uint8_t {
  kBool,
  kInt,
  kFloat,
  kComplex,
  kReal,
  kInexact,
  kNumber,
  kAny,
};

// All dtypes in the order of ops/dtype.def.
const std::vector<DType>& AllDTypes();

absl::string_view DTypeName(DType dtype);
DTypeKind KindOf(DType dtype);
// Bytes of one element.
int ByteSize(DType dtype);

inline bool IsBool(DType d) { return KindOf(d) == DTypeKind::kBool; }
inline bool IsInt(DType d) { return KindOf(d) == DTypeKind::kInt; }
inline bool IsFloat(DType d) { return KindOf(d) == DTypeKind::kFloat; }
inline bool IsComplex(DType d) { return KindOf(d) == DTypeKind::kComplex; }
bool IsSigned(DType dtype);

// Whether `dtype` belongs to `dtype_class`.
bool InClass(DType dtype, DTypeClass dtype_class);

// "f32" -> kF32; InvalidArgument for an unknown name.
absl::StatusOr<DType> ParseDType(absl::string_view name);
// "float" -> kFloat; InvalidArgument for an unknown name.
absl::StatusOr<DTypeClass> ParseDTypeClass(absl::string_view name);
absl::string_view DTypeClassName(DTypeClass dtype_class);

// The dtype sums of `dtype` are kept in: f16 and bf16 -> f32, f32 -> f32,
// f64 -> f64, c64 -> c64, c128 -> c128, bool and integers -> i64 (u64 stays).
DType AccumulationType(DType dtype);

// Bits of the significand with the hidden one (f32: 24), for floats.
int SignificandBits(DType dtype);

}  // namespace cleave

#endif  // CLEAVE_OPS_DTYPE_H_
