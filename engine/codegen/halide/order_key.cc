// Keys of floats: integers in the floats' order (element.h).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/nan_tests.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::Type;

// Numbers in sign and magnitude, as integers in their order, and back.
Expr WithOrderedBits(const Expr& bits) {
  const int width = bits.type().bits();
  const Expr magnitude = Halide::Internal::make_const(
      Halide::UInt(width), (uint64_t{1} << (width - 1)) - 1);
  return bits ^ ((bits >> (width - 1)) & reinterpret(bits.type(), magnitude));
}

}  // namespace

Expr OrderKey(bool max, const Expr& a) {
  const Type type = Int(a.type().bits());
  // The compiler of OpenCL does not know the bits of a number that is f64.
  const std::optional<double> number = Halide::Internal::as_const_float(a);
  if (number.has_value() && !std::isnan(*number)) {
    const auto as_float = static_cast<float>(*number);
    int64_t bits = 0;
    if (a.type().bits() == 32) {
      int32_t narrow = 0;
      std::memcpy(&narrow, &as_float, sizeof narrow);
      bits = narrow;
    } else {
      std::memcpy(&bits, &*number, sizeof bits);
    }
    return WithOrderedBits(Halide::Internal::make_const(type, bits));
  }
  const Expr key = WithOrderedBits(reinterpret(type, a));
  return Choose(NanTest(a), max ? type.max() : type.min(), key);
}

Expr OfOrderKey(const Expr& key) {
  return reinterpret(Float(key.type().bits()), WithOrderedBits(key));
}

}  // namespace cleave
