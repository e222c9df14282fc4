#include "engine/codegen/halide/comparisons.h"

#include "engine/codegen/halide/nan_tests.h"

namespace cleave {
namespace {

using Halide::Bool;
using Halide::Expr;
using Halide::Int;
using Halide::Internal::Call;

Expr StrictCompare(Call::IntrinsicOp op, const Expr& a, const Expr& b) {
  return Call::make(Bool(), op, {a, b}, Call::PureIntrinsic);
}

// A coordinate that was made an integer of 64 bits; undefined for others. A
// vector has twice as many of it.
Expr BeforeWidening(const Expr& x) {
  const auto* cast = x.as<Halide::Internal::Cast>();
  return x.type() == Int(64) && cast != nullptr && cast->value.type() == Int(32)
             ? cast->value
             : Expr();
}

}  // namespace

Expr Bits(const Expr& a) {
  return Halide::reinterpret(Halide::UInt(a.type().bits()), a);
}

Expr Less(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) return a < b;
  return StrictCompare(Call::strict_lt, a, b);
}

// Integers by their bits: Halide's simplify subtracts the sides of ==, and ends
// with an error where that overflows a signed type: max(x, 2^63 - 1) == -1.
Expr Equal(const Expr& a, const Expr& b) {
  if (a.type().is_float()) return StrictCompare(Call::strict_eq, a, b);
  return a.type().is_int() ? Bits(a) == Bits(b) : a == b;
}

// Not strict_le: for x86 Halide 21 makes it !(b < a), which is true of NaN.
Expr LessEqual(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) return a <= b;
  return Less(a, b) || Equal(a, b);
}

Expr Comparison(Primitive primitive, const Expr& a, const Expr& b) {
  if (a.type().is_float() && Halide::Internal::graph_equal(a, b)) {
    if (primitive == Primitive::kNe) return NanTest(a);
    if (primitive == Primitive::kLt || primitive == Primitive::kGt) {
      return Halide::Internal::const_false();
    }
    return !NanTest(a);
  }
  const Expr narrow_a = BeforeWidening(a);
  const Expr narrow_b = BeforeWidening(b);
  if (narrow_a.defined() && narrow_b.defined()) {
    return Comparison(primitive, narrow_a, narrow_b);
  }
  switch (primitive) {
    case Primitive::kEq:
      return Equal(a, b);
    case Primitive::kNe:
      return !Equal(a, b);
    case Primitive::kLt:
      return Less(a, b);
    case Primitive::kLe:
      return LessEqual(a, b);
    case Primitive::kGt:
      return Less(b, a);
    default:
      return LessEqual(b, a);
  }
}

}  // namespace cleave
