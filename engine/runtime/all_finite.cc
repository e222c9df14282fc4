#include "engine/runtime/all_finite.h"

namespace cleave::internal_kernel {
namespace {

// An exponent of ones.
template <typename Bits>
bool NoneHas(Bits exponent, const void* x, int64_t bytes) {
  const auto* const elements = static_cast<const Bits*>(x);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(Bits));
  bool any = false;
  for (int64_t i = 0; i < count; ++i) {
    any |= (elements[i] & exponent) == exponent;
  }
  return !any;
}

}  // namespace

bool AllFinite(DType dtype, const void* x, int64_t bytes) {
  switch (dtype) {
    case DType::kF16:
      return NoneHas<uint16_t>(0x7c00, x, bytes);
    case DType::kBF16:
      return NoneHas<uint16_t>(0x7f80, x, bytes);
    case DType::kF32:
      return NoneHas<uint32_t>(0x7f800000, x, bytes);
    case DType::kF64:
      return NoneHas<uint64_t>(0x7ff0000000000000, x, bytes);
    default:
      return true;
  }
}

}  // namespace cleave::internal_kernel
