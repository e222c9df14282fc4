#include "engine/runtime/all_finite.h"

namespace cleave::internal_kernel {
namespace {

template <typename Bits>
bool NoneHas(uint64_t exponent, const void* x, int64_t bytes) {
  const auto ones = static_cast<Bits>(exponent);
  const auto* const elements = static_cast<const Bits*>(x);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(Bits));
  bool any = false;
  for (int64_t i = 0; i < count; ++i) any |= (elements[i] & ones) == ones;
  return !any;
}

}  // namespace

uint64_t ExponentBits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x7c00;
    case DType::kBF16:
      return 0x7f80;
    case DType::kF32:
      return 0x7f800000;
    case DType::kF64:
      return 0x7ff0000000000000;
    default:
      return 0;
  }
}

bool AllFinite(DType dtype, const void* x, int64_t bytes) {
  const uint64_t exponent = ExponentBits(dtype);
  if (exponent == 0) return true;
  switch (ByteSize(dtype)) {
    case 2:
      return NoneHas<uint16_t>(exponent, x, bytes);
    case 4:
      return NoneHas<uint32_t>(exponent, x, bytes);
    default:
      return NoneHas<uint64_t>(exponent, x, bytes);
  }
}

}  // namespace cleave::internal_kernel
