#include "engine/codegen/halide/element.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "engine/codegen/halide/comparisons.h"
#include "engine/codegen/halide/named.h"
#include "engine/codegen/halide/nan_tests.h"
#include "engine/codegen/halide/narrow_float.h"
#include "engine/codegen/halide/remainders.h"
#include "engine/codegen/library_function.h"
#include "ops/check.h"
#include "ops/reference/reference.h"

namespace cleave {
namespace {

using Halide::Bool;
using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Int;
using Halide::reinterpret;
using Halide::Type;
using Halide::UInt;
using Halide::Internal::Call;

Expr Strict(Call::IntrinsicOp op, const Expr& a, const Expr& b) {
  return Call::make(a.type(), op, {a, b}, Call::PureIntrinsic);
}

// A function of the C library, one call per lane.
Expr Library(const char* name, const Expr& a) {
  const std::string suffix = a.type().bits() == 32 ? "f" : "";
  return Call::make(a.type(), name + suffix, {a}, Call::PureExtern);
}
Expr Library(const char* name, const Expr& a, const Expr& b) {
  const std::string suffix = a.type().bits() == 32 ? "f" : "";
  return Call::make(a.type(), name + suffix, {a, b}, Call::PureExtern);
}

Expr SignMask(const Type& type) {
  return Halide::Internal::make_const(UInt(type.bits()),
                                      uint64_t{1} << (type.bits() - 1));
}
Expr MagnitudeMask(const Type& type) {
  return Halide::Internal::make_const(UInt(type.bits()),
                                      (uint64_t{1} << (type.bits() - 1)) - 1);
}
Expr IsNegative(const Expr& a) {
  if (a.type().is_uint()) return Halide::Internal::const_false();
  return reinterpret(Int(a.type().bits()), a) <
         Halide::Internal::make_zero(Int(a.type().bits()));
}
Expr Magnitude(const Expr& a) {
  return reinterpret(a.type(), Bits(a) & MagnitudeMask(a.type()));
}
// Halide takes both zeros for one, and merges them: the negative one is written
// as its bits.
Expr Number(const Type& type, double value) {
  if (value == 0 && std::signbit(value)) {
    return reinterpret(type, SignMask(type));
  }
  return Halide::Internal::make_const(type, value);
}
Expr Zero(const Type& type) { return Halide::Internal::make_zero(type); }

// Signed integers wrap: in Halide their overflow is undefined.
template <typename Operation>
Expr Wrapping(const Expr& a, const Expr& b, Operation operation) {
  if (!a.type().is_int()) return operation(a, b);
  return reinterpret(a.type(), operation(Bits(a), Bits(b)));
}

// The quotient or remainder of integers. A divisor of 0 was refused before, and
// is taken for 1 here; so is -1, by which the least number has no quotient.
Expr DivideIntegers(Primitive primitive, const Expr& a, const Expr& b) {
  const Type& type = a.type();
  const Expr zero = Zero(type);
  const bool is_floor = primitive != Primitive::kRem;
  if (Halide::Internal::is_positive_const(b)) {
    // Halide rounds towards minus infinity for a positive divisor.
    if (primitive == Primitive::kFloorDiv) return a / b;
    if (is_floor || type.is_uint()) return a % b;
    return Choose(a < zero && a % b != zero, a % b - b, a % b);
  }
  const Expr one = Halide::Internal::make_one(type);
  if (type.is_uint()) {
    const Expr divisor = Choose(b == zero, one, b);
    return primitive == Primitive::kFloorDiv
               ? Halide::div_round_to_zero(a, divisor)
               : Halide::mod_round_to_zero(a, divisor);
  }
  const Expr negates = b == Halide::Internal::make_const(type, -1);
  const Expr divisor = Choose(b == zero || negates, one, b);
  const Expr remainder = Halide::mod_round_to_zero(a, divisor);
  const Expr is_below =
      remainder != zero && (remainder < zero) != (divisor < zero);
  switch (primitive) {
    case Primitive::kFloorDiv: {
      const Expr quotient = Halide::div_round_to_zero(a, divisor);
      const Expr negated =
          Wrapping(zero, a, [](Expr x, Expr y) { return x - y; });
      return Choose(negates, negated,
                    Choose(is_below, quotient - one, quotient));
    }
    case Primitive::kFloorMod:
      return Choose(is_below, remainder + divisor, remainder);
    default:
      return remainder;
  }
}

Expr Divide(const Expr& a, const Expr& b) {
  // Halide refuses to divide by a constant 0, an extent say; a product with
  // infinity has the same bits.
  if (Halide::Internal::is_const_zero(b)) {
    const auto* constant = b.as<Halide::Internal::FloatImm>();
    const double zero = constant == nullptr ? 0.0 : constant->value;
    return Strict(Call::strict_mul, a,
                  Number(b.type(), std::copysign(HUGE_VAL, zero)));
  }
  return Strict(Call::strict_div, a, b);
}

// `value`, a number where `x` is. Otherwise it stays as it is: Halide's
// simplify takes a shared expression apart at each place where it stands, and
// of a function of a function of x there are thousands.
Expr Folded(const Expr& x, const Expr& value) {
  return Halide::Internal::is_const(x) ? Halide::Internal::simplify(value)
                                       : value;
}

// 1 / (1 + exp(-x)) from exp of what is not positive: nothing overflows, and
// the small results keep their precision.
Expr Sigmoid(const Expr& x) {
  const Type type = x.type();
  const Expr e =
      Library("exp", Folded(x, reinterpret(type, Bits(x) | SignMask(type))));
  const Expr one = Number(type, 1);
  const Expr denominator = Strict(Call::strict_add, one, e);
  return Divide(Choose(IsNegative(x), e, one), denominator);
}

// 2^k for |k| up to 1022, by its exponent.
Expr PowerOfTwo(const Expr& k) {
  const Expr biased = cast(UInt(64), cast(Int(64), k) + Expr(int64_t{1023}));
  return reinterpret(Float(64), biased << Expr(uint64_t{52}));
}

// Exact in f64 unless it overflows or underflows there, where f32 and the
// narrower types do so by far.
Expr Ldexp(DType dtype, const Expr& x, const Expr& exponent) {
  if (dtype == DType::kF64) {
    return Call::make(Float(64), "ldexp", {x, exponent}, Call::PureExtern);
  }
  const Expr k = Halide::clamp(exponent, -400, 400);
  return RoundElement(
      dtype, Strict(Call::strict_mul, cast(Float(64), x), PowerOfTwo(k)));
}

Expr Nextafter(const Expr& x, const Expr& y) {
  const Type type = x.type();
  const Expr bits = Bits(x);
  const Expr one = Halide::Internal::make_one(bits.type());
  const Expr smallest = Choose(Less(y, Zero(type)), SignMask(type) | one, one);
  const Expr away = Choose(Less(Zero(type), x), Less(x, y), Less(y, x));
  const Expr stepped = Choose(Equal(x, Zero(type)), smallest,
                              Choose(away, bits + one, bits - one));
  return Choose(
      NanTest(x), x,
      Choose(NanTest(y) || Equal(x, y), y, reinterpret(type, stepped)));
}

Expr Sign(const Expr& x) {
  const Type type = x.type();
  const Expr zero = Zero(type);
  if (!type.is_float()) {
    const Expr one = Halide::Internal::make_one(type);
    if (type.is_uint()) return Choose(x == zero, zero, one);
    return Choose(x < zero, Halide::Internal::make_const(type, -1),
                  Choose(x == zero, zero, one));
  }
  // A zero keeps its sign, and NaN is NaN.
  return Choose(Less(zero, x), Number(type, 1),
                Choose(Less(x, zero), Number(type, -1), x));
}

// x 2^count, for count below the width of the unsigned x: by one bit of the
// count after the other. Halide 21 does not come back from the bounds of
// x << b in a vector where b is a constant ramp, as an index is.
Expr ShiftLeft(const Expr& x, const Expr& count) {
  const Type type = x.type();
  if (Halide::Internal::is_const(count)) return x << count;
  Expr result = x;
  for (int bit = 1; bit < type.bits(); bit *= 2) {
    const Expr mask = Halide::Internal::make_const(type, bit);
    const Expr factor = Halide::Internal::make_const(type, uint64_t{1} << bit);
    result = Choose((count & mask) != Zero(type), result * factor, result);
  }
  return result;
}

Expr Shift(bool left, const Expr& x, const Expr& amount) {
  const Type type = x.type();
  const int bits = type.bits();
  const Expr beyond =
      amount < Zero(type) || amount >= Halide::Internal::make_const(type, bits);
  const Expr count =
      Folded(amount, cast(UInt(bits), amount) &
                         Halide::Internal::make_const(UInt(bits), bits - 1));
  if (left) {
    return Choose(beyond, Zero(type),
                  reinterpret(type, ShiftLeft(Bits(x), count)));
  }
  const Expr all =
      type.is_int() ? Choose(x < Zero(type),
                             Halide::Internal::make_const(type, -1), Zero(type))
                    : Zero(type);
  return Choose(beyond, all, x >> count);
}

// Truncates and saturates; NaN gives 0.
Expr FloatToInteger(const Expr& x, const Type& to) {
  const Type type = x.type();
  const int value_bits = to.bits() - (to.is_int() ? 1 : 0);
  double limit = 1;
  for (int i = 0; i < value_bits; ++i) limit *= 2;
  const Expr high = LessEqual(Number(type, limit), x);
  const Expr low = LessEqual(x, Number(type, to.is_int() ? -limit : 0));
  const Expr inside = Choose(high || low || NanTest(x), Zero(type), x);
  return Choose(high, to.max(), Choose(low, to.min(), cast(to, inside)));
}

Expr Convert(DType from, DType to, const Expr& x) {
  if (from == to) return x;
  if (IsBool(to)) {
    return IsBool(from) ? x : !Equal(x, Zero(x.type()));
  }
  if (IsBool(from)) return cast(ElementType(to), x);
  if (IsInt(to)) {
    return IsInt(from) ? cast(ElementType(to), x)
                       : FloatToInteger(x, ElementType(to));
  }
  if (IsInt(from) && ElementType(to).bits() == 32 && to != DType::kF32) {
    return RoundElement(to, cast(Float(64), x));
  }
  if (IsInt(from)) return cast(ElementType(to), x);
  return RoundElement(to, x);
}

// True if the result for numbers of a narrow float is one of its numbers.
bool StaysNarrow(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kCeil:
    case Primitive::kCopysign:
    case Primitive::kFloor:
    case Primitive::kMax:
    case Primitive::kMin:
    case Primitive::kNeg:
    case Primitive::kNograd:
    case Primitive::kRem:
    case Primitive::kRoundNearestEven:
    case Primitive::kSign:
      return true;
    default:
      return false;
  }
}

// The value where `dtype` has an element type of its own, else rounded.
Expr Narrow(Primitive primitive, DType dtype, const Expr& value) {
  if (!value.type().is_float() || StaysNarrow(primitive)) return value;
  return RoundElement(dtype, value);
}

Expr BoolOrBits(Primitive primitive, const Expr& a, const Expr& b) {
  if (a.type().is_bool()) {
    if (primitive == Primitive::kAnd) return a && b;
    if (primitive == Primitive::kOr) return a || b;
    return a != b;
  }
  if (primitive == Primitive::kAnd) return a & b;
  if (primitive == Primitive::kOr) return a | b;
  return a ^ b;
}

Expr Unary(Primitive primitive, DType dtype, const Expr& x) {
  const Type type = x.type();
  const bool is_float = type.is_float();
  switch (primitive) {
    case Primitive::kAbs:
      if (is_float) return Magnitude(x);
      if (type.is_uint()) return x;
      return Choose(x < Zero(type), Unary(Primitive::kNeg, dtype, x), x);
    case Primitive::kNeg:
      if (is_float) return reinterpret(type, Bits(x) ^ SignMask(type));
      return Wrapping(Zero(type), x, [](Expr a, Expr b) { return a - b; });
    case Primitive::kSign:
      return Sign(x);
    case Primitive::kNot:
      return type.is_bool() ? !x : ~x;
    case Primitive::kIsnan:
      return is_float ? NanTest(x) : Halide::Internal::const_false();
    case Primitive::kIsinf:
      if (!is_float) return Halide::Internal::const_false();
      return Equal(Magnitude(x),
                   Number(type, std::numeric_limits<double>::infinity()));
    case Primitive::kCeil:
      return Halide::ceil(x);
    case Primitive::kFloor:
      return Halide::floor(x);
    case Primitive::kRoundNearestEven:
      return Halide::round(x);
    case Primitive::kSqrt:
      return Halide::sqrt(x);
    case Primitive::kRsqrt:
      return Divide(Number(type, 1), Halide::sqrt(x));
    case Primitive::kSigmoid:
      return Sigmoid(x);
    case Primitive::kNograd:
      return x;
    default:
      return Library(LibraryFunction(primitive), x);
  }
}

Expr Binary(Primitive primitive, DType dtype, const Expr& a, const Expr& b) {
  switch (primitive) {
    case Primitive::kAdd:
      return AddElement(dtype, a, b);
    case Primitive::kSub:
      if (a.type().is_float()) return Strict(Call::strict_sub, a, b);
      return Wrapping(a, b, [](Expr x, Expr y) { return x - y; });
    case Primitive::kMul:
      return MulElement(dtype, a, b);
    case Primitive::kDiv:
      return Divide(a, b);
    case Primitive::kRem:
      if (a.type().is_float()) return Remainder(a, b);
      return DivideIntegers(primitive, a, b);
    case Primitive::kFloorDiv:
    case Primitive::kFloorMod:
      return DivideIntegers(primitive, a, b);
    case Primitive::kCopysign:
      return reinterpret(a.type(), (Bits(a) & MagnitudeMask(a.type())) |
                                       (Bits(b) & SignMask(b.type())));
    case Primitive::kNextafter:
      return Nextafter(a, b);
    case Primitive::kMax:
      return MaxElement(dtype, a, b);
    case Primitive::kMin:
      return MinElement(dtype, a, b);
    case Primitive::kAnd:
    case Primitive::kOr:
    case Primitive::kXor:
      return BoolOrBits(primitive, a, b);
    case Primitive::kShiftLeft:
    case Primitive::kShiftRight:
      return Shift(primitive == Primitive::kShiftLeft, a, b);
    default:
      return Library(LibraryFunction(primitive), a, b);
  }
}

}  // namespace

Type StorageType(DType dtype) {
  if (IsBool(dtype)) return UInt(8);
  if (dtype == DType::kF16 || dtype == DType::kBF16) return UInt(16);
  return ElementType(dtype);
}

Type ElementType(DType dtype) {
  CLEAVE_CHECK(HasElements(dtype));
  if (IsBool(dtype)) return Bool();
  if (IsFloat(dtype)) return Float(dtype == DType::kF64 ? 64 : 32);
  const int bits = 8 * ByteSize(dtype);
  return IsSigned(dtype) ? Int(bits) : UInt(bits);
}

Expr LoadElement(DType dtype, const Expr& stored) {
  if (IsBool(dtype)) return stored != Halide::Internal::make_zero(UInt(8));
  if (dtype == DType::kF16) return F16ToF32(stored);
  if (dtype == DType::kBF16) return BF16ToF32(stored);
  return stored;
}

Expr StoreElement(DType dtype, const Expr& element) {
  if (IsBool(dtype)) return cast(UInt(8), element);
  if (dtype == DType::kF16) return F32ToF16(element);
  if (dtype == DType::kBF16) return F32ToBF16(element);
  return element;
}

Expr ConstantElement(const Attributes& attributes) {
  const auto values = EvalReference(Primitive::kConstant, attributes, {});
  CLEAVE_CHECK(values.ok());
  const Tensor& value = values->front();
  if (IsBool(value.dtype())) {
    return Halide::Internal::make_bool(value.GetInt(0) != 0);
  }
  if (IsFloat(value.dtype())) {
    return Number(ElementType(value.dtype()), value.GetDouble(0));
  }
  if (IsSigned(value.dtype())) {
    return Halide::Internal::make_const(ElementType(value.dtype()),
                                        value.GetInt(0));
  }
  return Halide::Internal::make_const(ElementType(value.dtype()),
                                      static_cast<uint64_t>(value.GetInt(0)));
}

Expr NumberElement(DType dtype, double value) {
  if (IsBool(dtype)) return Halide::Internal::make_bool(value != 0);
  return Number(ElementType(dtype), value);
}

Expr LowestElement(DType dtype) {
  if (IsBool(dtype)) return Halide::Internal::const_false();
  if (!IsFloat(dtype)) return ElementType(dtype).min();
  return Number(ElementType(dtype), -std::numeric_limits<double>::infinity());
}

Expr HighestElement(DType dtype) {
  if (IsBool(dtype)) return Halide::Internal::const_true();
  if (!IsFloat(dtype)) return ElementType(dtype).max();
  return Number(ElementType(dtype), std::numeric_limits<double>::infinity());
}

Expr PointwiseElement(Primitive primitive, DType result,
                      absl::Span<const DType> operands,
                      const std::vector<Expr>& arguments) {
  const Expr& a = arguments[0];
  const DType dtype = operands[0];
  switch (primitive) {
    case Primitive::kConvert:
      return Convert(dtype, result, a);
    case Primitive::kBitcastConvert:
      if (IsBool(dtype) || IsBool(result)) return Convert(dtype, result, a);
      return LoadElement(
          result, reinterpret(StorageType(result), StoreElement(dtype, a)));
    case Primitive::kSelect:
      return Choose(a, arguments[1], arguments[2]);
    case Primitive::kFma:
      if (dtype != DType::kF32 && dtype != DType::kF64) {
        return FusedMultiplyAddOfNarrow(dtype, a, arguments[1], arguments[2]);
      }
      return FusedMultiplyAdd(a, arguments[1], arguments[2]);
    case Primitive::kLdexp:
      return Ldexp(dtype, a, arguments[1]);
    default:
      break;
  }
  if (IsComparison(primitive)) return Comparison(primitive, a, arguments[1]);
  if (arguments.size() == 1) {
    return Narrow(primitive, result, Unary(primitive, dtype, a));
  }
  if (primitive == Primitive::kNextafter && dtype != DType::kF32 &&
      dtype != DType::kF64) {
    return NextafterOfNarrow(dtype, a, arguments[1]);
  }
  return Narrow(primitive, result, Binary(primitive, dtype, a, arguments[1]));
}

Expr Choose(const Expr& condition, const Expr& a, const Expr& b) {
  return Halide::mux(cast(Int(32), condition), {b, a});
}

namespace {

// A constant float's value; null for what is no constant.
const double* ConstantValue(const Expr& e) {
  const auto* constant = e.as<Halide::Internal::FloatImm>();
  return constant != nullptr ? &constant->value : nullptr;
}

// max (or min) of x and a constant, which is no NaN: one comparison. x where
// they are equal, but for a zero that must win over the other zero.
Expr LimitTo(bool max, const Expr& x, const Expr& limit, double value) {
  Expr beyond = max ? Less(x, limit) : Less(limit, x);
  if (value == 0 && std::signbit(value) != max) {
    beyond = beyond || Equal(x, limit);
  }
  return Choose(beyond, limit, x);
}

Expr Extreme(bool max, const Expr& a, const Expr& b) {
  for (const auto& [x, limit] : {std::make_pair(a, b), std::make_pair(b, a)}) {
    const double* value = ConstantValue(limit);
    if (value == nullptr || std::isnan(*value)) continue;
    return LimitTo(max, x, limit, *value);
  }
  // If both are zeros, max drops the negative one and min the other.
  return Named(a, [&](const Expr& x) {
    return Named(b, [&](const Expr& y) {
      const Expr wins = max ? Less(y, x) : Less(x, y);
      return Choose(
          wins || NanTest(x) || (Equal(x, y) && IsNegative(max ? y : x)), x, y);
    });
  });
}

}  // namespace

Expr MaxElement(DType dtype, const Expr& a, const Expr& b) {
  if (a.type().is_bool()) return a || b;
  if (!a.type().is_float()) return Halide::max(a, b);
  return Extreme(true, a, b);
}

Expr MinElement(DType dtype, const Expr& a, const Expr& b) {
  if (a.type().is_bool()) return a && b;
  if (!a.type().is_float()) return Halide::min(a, b);
  return Extreme(false, a, b);
}

Expr AddElement(DType dtype, const Expr& a, const Expr& b) {
  if (a.type().is_bool()) return a || b;
  if (a.type().is_float()) return Strict(Call::strict_add, a, b);
  return Wrapping(a, b, [](Expr x, Expr y) { return x + y; });
}

Expr MulElement(DType dtype, const Expr& a, const Expr& b) {
  if (a.type().is_bool()) return a && b;
  if (a.type().is_float()) return Strict(Call::strict_mul, a, b);
  return Wrapping(a, b, [](Expr x, Expr y) { return x * y; });
}

Expr IsNanElement(DType dtype, const Expr& a) {
  return a.type().is_float() ? NanTest(a) : Halide::Internal::const_false();
}

Expr FusedMultiplyAdd(const Expr& a, const Expr& b, const Expr& c) {
  const char* name = a.type().bits() == 32 ? "llvm.fma.f32" : "llvm.fma.f64";
  return Call::make(a.type(), name, {a, b, c}, Call::PureExtern);
}

Expr RoundElement(DType dtype, const Expr& value) {
  switch (dtype) {
    case DType::kF16:
      return F16ToF32(F32ToF16(ToF32ForNarrowing(value)));
    case DType::kBF16:
      return BF16ToF32(F32ToBF16(ToF32ForNarrowing(value)));
    case DType::kF32:
      return cast(Float(32), value);
    default:
      return cast(Float(64), value);
  }
}

}  // namespace cleave
