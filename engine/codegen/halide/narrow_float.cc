#include "engine/codegen/halide/narrow_float.h"

#include <cstdint>

#include "engine/codegen/halide/comparisons.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/named.h"

namespace cleave {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::UInt;
using Halide::Internal::Call;
using Halide::Internal::IRMutator;
using Halide::Internal::Select;

Expr U16(uint32_t value) {
  return Halide::Internal::make_const(UInt(16), uint64_t{value});
}
Expr U32(uint32_t value, int lanes = 1) {
  return Halide::Internal::make_const(UInt(32, lanes), uint64_t{value});
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

constexpr char kF16ToF32[] = "cleave_f16_to_f32";
constexpr char kF32ToF16[] = "cleave_f32_to_f16";

// The exponent is moved by a product with 2^112, which is exact and makes
// normal numbers of the subnormal ones; infinities and NaN get theirs anew.
// `bits` may be a vector.
Expr FromF16(const Expr& bits) {
  const int lanes = bits.type().lanes();
  const auto u32 = [lanes](uint32_t v) { return U32(v, lanes); };
  const Expr wide = cast(UInt(32, lanes), bits);
  const Expr magnitude = (wide & u32(0x7fff)) << u32(13);
  const Expr two_to_112 = reinterpret(Float(32, lanes), u32(0x77800000));
  const Expr scaled = reinterpret(
      UInt(32, lanes),
      Product(reinterpret(Float(32, lanes), magnitude), two_to_112));
  const Expr quiet =
      Select::make(magnitude > u32(0x7c00 << 13), u32(0x00400000), u32(0));
  const Expr special = magnitude | u32(0x7f800000) | quiet;
  const Expr sign = (wide & u32(0x8000)) << u32(16);
  return reinterpret(
      Float(32, lanes),
      Select::make(magnitude >= u32(0x7c00 << 13), special, scaled) | sign);
}

// `value` may be a vector.
Expr ToF16(const Expr& value) {
  const int lanes = value.type().lanes();
  const auto u32 = [lanes](uint32_t v) { return U32(v, lanes); };
  const Expr bits = reinterpret(UInt(32, lanes), value);
  const Expr magnitude = bits & u32(0x7fffffff);
  const Expr sign = (bits >> u32(16)) & u32(0x8000);
  // Normal results: the exponent moved by 112, half of the last place added,
  // less one where the last bit that stays is even.
  const Expr odd = (magnitude >> u32(13)) & u32(1);
  const Expr normal =
      (magnitude - u32(112u << 23) + u32(0xfff) + odd) >> u32(13);
  // Subnormal results: adding 1/2 puts their last place at that of 1/2.
  const Expr half = reinterpret(Float(32, lanes), u32(0x3f000000));
  const Expr sum = Call::make(Float(32, lanes), Call::strict_add,
                              {reinterpret(Float(32, lanes), magnitude), half},
                              Call::PureIntrinsic);
  const Expr subnormal = reinterpret(UInt(32, lanes), sum) - u32(0x3f000000);
  const Expr nan = u32(0x7e00) | ((magnitude >> u32(13)) & u32(0x3ff));
  const Expr result = Select::make(
      magnitude > u32(0x7f800000), nan,
      Select::make(
          magnitude >= u32(0x477ff000), u32(0x7c00),
          Select::make(magnitude < u32(0x38800000), subnormal, normal)));
  return cast(UInt(16, lanes), result | sign);
}

class LowersF16 : public IRMutator {
 public:
  explicit LowersF16(bool by_instruction) : by_instruction_(by_instruction) {}

 protected:
  using IRMutator::visit;
  Expr visit(const Call* op) override {
    if (op->name == kF16ToF32) {
      const Expr bits = mutate(op->args[0]);
      if (!by_instruction_) return Named(bits, FromF16);
      return cast(op->type, reinterpret(Float(16, op->type.lanes()), bits));
    }
    if (op->name == kF32ToF16) {
      const Expr value = mutate(op->args[0]);
      if (!by_instruction_) return Named(value, ToF16);
      return reinterpret(op->type, cast(Float(16, op->type.lanes()), value));
    }
    return IRMutator::visit(op);
  }

 private:
  const bool by_instruction_;
};

Expr ToBF16(const Expr& value) {
  const Expr bits = reinterpret(UInt(32), value);
  const Expr odd = (bits >> U32(16)) & U32(1);
  const Expr rounded = (bits + U32(0x7fff) + odd) >> U32(16);
  const Expr nan = (bits >> U32(16)) | U32(0x40);
  return cast(UInt(16),
              Choose((bits & U32(0x7fffffff)) > U32(0x7f800000), nan, rounded));
}

}  // namespace

Expr F16ToF32(const Expr& bits) {
  return Call::make(Float(32), kF16ToF32, {bits}, Call::PureExtern);
}

Expr BF16ToF32(const Expr& bits) {
  return reinterpret(Float(32), cast(UInt(32), bits) << U32(16));
}

Expr F32ToF16(const Expr& value) {
  return Call::make(UInt(16), kF32ToF16, {value}, Call::PureExtern);
}

Expr F32ToBF16(const Expr& value) { return Named(value, ToBF16); }

void LowerF16Conversions(Halide::Pipeline& pipeline,
                         const Halide::Target& target) {
  const bool by_instruction =
      target.has_feature(Halide::Target::F16C) && !target.has_gpu_feature();
  pipeline.add_custom_lowering_pass(new LowersF16(by_instruction));
}

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

// The product is exact in f64, and its sum with c is rounded to odd there: to
// the neighbour towards what is lost (the error of a sum is Knuth's) unless the
// last bit is set. Roundings of that to f32 to odd, and to the narrow type, are
// then one (Boldo and Melquiond, 2008).
Expr FusedMultiplyAddOfNarrow(DType dtype, const Expr& a, const Expr& b,
                              const Expr& c) {
  const auto strict = [](Call::IntrinsicOp op, const Expr& x, const Expr& y) {
    return Call::make(Float(64), op, {x, y}, Call::PureIntrinsic);
  };
  const auto plus = [&](const Expr& x, const Expr& y) {
    return strict(Call::strict_add, x, y);
  };
  const auto minus = [&](const Expr& x, const Expr& y) {
    return strict(Call::strict_sub, x, y);
  };
  const Expr product =
      strict(Call::strict_mul, cast(Float(64), a), cast(Float(64), b));
  return Named(product, [&](const Expr& p) {
    const Expr wide = cast(Float(64), c);
    return Named(plus(p, wide), [&](const Expr& sum) {
      const Expr of_c = minus(sum, p);
      const Expr lost = plus(minus(p, minus(sum, of_c)), minus(wide, of_c));
      return Named(lost, [&](const Expr& error) {
        const Expr bits = reinterpret(Int(64), sum);
        const Expr zero = Expr(0.0);
        const Expr one = Expr(int64_t{1});
        const Expr grows = Less(error, zero) == Less(sum, zero);
        const Expr inexact = Less(error, zero) || Less(zero, error);
        const Expr odd = Choose(inexact && (bits & one) == Expr(int64_t{0}),
                                Choose(grows, bits + one, bits - one), bits);
        return RoundElement(dtype, reinterpret(Float(64), odd));
      });
    });
  });
}

Expr NextafterOfNarrow(DType dtype, const Expr& x, const Expr& y) {
  const Expr bits = NarrowBits(dtype, x);
  const Expr zero = Expr(0.f);
  const Expr below = Less(y, x);
  const Expr equal = !below && !Less(x, y);
  const Expr smallest = Choose(Less(y, zero), U16(0x8001), U16(0x0001));
  const Expr positive = Less(zero, x);
  const Expr away = Choose(positive, !below, below);
  const Expr is_zero = !positive && !Less(x, zero);
  const Expr stepped =
      Choose(is_zero, smallest, Choose(away, bits + U16(1), bits - U16(1)));
  return Choose(
      IsNanElement(dtype, x), x,
      Choose(IsNanElement(dtype, y) || equal, y, NarrowValue(dtype, stepped)));
}

}  // namespace cleave
