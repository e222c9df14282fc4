#include "engine/codegen/halide/narrow_float.h"

#include <cstdint>

#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/named.h"

namespace cleave {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::reinterpret;
using Halide::UInt;
using Halide::Internal::Call;

Expr U16(uint32_t value) {
  return Halide::Internal::make_const(UInt(16), uint64_t{value});
}
Expr U32(uint32_t value) {
  return Halide::Internal::make_const(UInt(32), uint64_t{value});
}
Expr Product(const Expr& a, const Expr& b) {
  return Call::make(a.type(), Call::strict_mul, {a, b}, Call::PureIntrinsic);
}

// Whether the bit patterns of two narrow floats of one sign step apart from
// zero: x away from zero where |x| is to grow.
Expr NarrowBits(DType dtype, const Expr& x) {
  return dtype == DType::kF16 ? F32ToF16(x) : F32ToBF16(x);
}
Expr NarrowValue(DType dtype, const Expr& bits) {
  return dtype == DType::kF16 ? F16ToF32(bits) : BF16ToF32(bits);
}

// The exponent is moved by a product with 2^112, which is exact and makes
// normal numbers of the subnormal ones; infinities and NaN get theirs anew.
Expr FromF16(const Expr& bits) {
  const Expr wide = cast(UInt(32), bits);
  const Expr magnitude = (wide & U32(0x7fff)) << U32(13);
  const Expr scaled = reinterpret(
      UInt(32), Product(reinterpret(Float(32), magnitude),
                        Expr(5192296858534827628530496329220096.f)));
  const Expr special = magnitude | U32(0x7f800000);
  const Expr sign = (wide & U32(0x8000)) << U32(16);
  return reinterpret(
      Float(32),
      Choose(magnitude >= U32(0x7c00 << 13), special, scaled) | sign);
}

Expr ToF16(const Expr& value) {
  const Expr bits = reinterpret(UInt(32), value);
  const Expr magnitude = bits & U32(0x7fffffff);
  const Expr sign = (bits >> U32(16)) & U32(0x8000);
  // Normal results: the exponent moved by 112, half of the last place added,
  // less one where the last bit that stays is even.
  const Expr odd = (magnitude >> U32(13)) & U32(1);
  const Expr normal =
      (magnitude - U32(112u << 23) + U32(0xfff) + odd) >> U32(13);
  // Subnormal results: adding 1/2 puts their last place at that of 1/2.
  const Expr sum = Call::make(Float(32), Call::strict_add,
                              {reinterpret(Float(32), magnitude), Expr(0.5f)},
                              Call::PureIntrinsic);
  const Expr subnormal = reinterpret(UInt(32), sum) - U32(0x3f000000);
  const Expr nan = U32(0x7e00) | ((magnitude >> U32(13)) & U32(0x3ff));
  const Expr result =
      Choose(magnitude > U32(0x7f800000), nan,
             Choose(magnitude >= U32(0x477ff000), U32(0x7c00),
                    Choose(magnitude < U32(0x38800000), subnormal, normal)));
  return cast(UInt(16), result | sign);
}

Expr ToBF16(const Expr& value) {
  const Expr bits = reinterpret(UInt(32), value);
  const Expr odd = (bits >> U32(16)) & U32(1);
  const Expr rounded = (bits + U32(0x7fff) + odd) >> U32(16);
  const Expr nan = (bits >> U32(16)) | U32(0x40);
  return cast(UInt(16),
              Choose((bits & U32(0x7fffffff)) > U32(0x7f800000), nan, rounded));
}

}  // namespace

Expr F16ToF32(const Expr& bits) { return Named(bits, FromF16); }

Expr BF16ToF32(const Expr& bits) {
  return reinterpret(Float(32), cast(UInt(32), bits) << U32(16));
}

Expr F32ToF16(const Expr& value) { return Named(value, ToF16); }

Expr F32ToBF16(const Expr& value) { return Named(value, ToBF16); }

Expr ToF32ForNarrowing(const Expr& value) {
  if (value.type().bits() == 32) return value;
  // Truncated, then made odd where that was not exact. NaN has no order, and
  // its last bit may be set.
  const Expr rounded = cast(Float(32), value);
  const auto magnitude = [](const Expr& x) {
    return reinterpret(UInt(64), x) &
           Halide::Internal::make_const(UInt(64), ~(uint64_t{1} << 63));
  };
  const Expr back = magnitude(cast(Float(64), rounded));
  const Expr exact = magnitude(value);
  const Expr bits = reinterpret(UInt(32), rounded);
  const Expr truncated = Choose(back > exact, bits - U32(1), bits);
  return reinterpret(Float(32),
                     Choose(back == exact, bits, truncated | U32(1)));
}

Expr NextafterOfNarrow(DType dtype, const Expr& x, const Expr& y) {
  const Expr bits = NarrowBits(dtype, x);
  const Expr zero = Expr(0.f);
  const Expr below = LessElement(y, x);
  const Expr equal = !below && !LessElement(x, y);
  const Expr smallest = Choose(LessElement(y, zero), U16(0x8001), U16(0x0001));
  const Expr positive = LessElement(zero, x);
  const Expr away = Choose(positive, !below, below);
  const Expr is_zero = !positive && !LessElement(x, zero);
  const Expr stepped =
      Choose(is_zero, smallest, Choose(away, bits + U16(1), bits - U16(1)));
  return Choose(
      IsNanElement(dtype, x), x,
      Choose(IsNanElement(dtype, y) || equal, y, NarrowValue(dtype, stepped)));
}

}  // namespace cleave
