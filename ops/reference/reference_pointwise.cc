#include "ops/reference/reference_pointwise.h"

#include <cmath>
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/reference/arithmetic.h"
#include "ops/reference/float_functions.h"
#include "ops/reference/pointwise_kernels.h"
#include "ops/reference/real_functions.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Complex = std::complex<double>;

absl::Status NoKernel(Primitive primitive) {
  return absl::InternalError(
      absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
}

// ---- Floats.

// The neighbour of x towards y among the values of `dtype`, by bit patterns:
// those of one sign are ordered as the magnitudes are.
Tensor Nextafter(const Tensor& x, const Tensor& y) {
  const int bytes = ByteSize(x.dtype());
  const uint64_t sign_bit = uint64_t{1} << (8 * bytes - 1);
  Tensor result(x.dtype(), x.shape());
  BudgetPolls polls;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    const double from = x.GetDouble(i);
    const double to = y.GetDouble(i);
    if (std::isnan(from) || std::isnan(to) || from == to) {
      result.SetDouble(i, std::isnan(from) ? from : to);
      continue;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, x.data() + i * bytes, bytes);
    if (from == 0) {
      bits = (to < 0 ? sign_bit : 0) | 1;
    } else if ((from < to) == (from > 0)) {
      ++bits;
    } else {
      --bits;
    }
    std::memcpy(result.mutable_data() + i * bytes, &bits, bytes);
  }
  return result;
}

// a * b + c rounded once: the sum in double rounded to odd where the product is
// exact in it, the processor's or the C library's fma for f64.
double Fma(double a, double b, double c, DType dtype) {
  if (dtype == DType::kF64) return std::fma(a, b, c);
  const double product = a * b;
  double sum = product + c;
  if (!std::isfinite(sum)) return RoundToDType(sum, dtype);
  // The error of the sum, exactly (Knuth's TwoSum).
  const double c_part = sum - product;
  const double error = (product - (sum - c_part)) + (c - c_part);
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if (error != 0 && (bits & 1) == 0) {
    sum = std::nextafter(sum, std::copysign(HUGE_VAL, error));
  }
  return RoundToDType(sum, dtype);
}

absl::StatusOr<Tensor> EvalPolygamma(const Tensor& m, const Tensor& x) {
  Tensor result(x.dtype(), x.shape());
  mpfr_t order, value;
  mpfr_init2(order, 53);
  mpfr_init2(value, 96);
  absl::Status status;
  for (int64_t i = 0; i < x.size() && status.ok() && !BudgetEnded(); ++i) {
    mpfr_t argument;
    mpfr_init2(argument, 53);
    mpfr_set_d(order, m.GetDouble(i), MPFR_RNDN);
    mpfr_set_d(argument, x.GetDouble(i), MPFR_RNDN);
    status = RealPolygamma(value, order, argument);
    mpfr_clear(argument);
    result.SetDouble(i, RoundOnce(mpfr_get_ld(value, MPFR_RNDN), x.dtype()));
  }
  mpfr_clears(order, value, static_cast<mpfr_ptr>(nullptr));
  if (!status.ok()) return status;
  return result;
}

// A binary primitive of two doubles. One that is exact, or that IEEE 754
// rounds, is evaluated in double: that rounding and the one to a narrower dtype
// together are one. The others come in long double.
absl::StatusOr<Tensor> EvalFloatBinary(Primitive primitive, const Tensor& x,
                                       const Tensor& y) {
  Tensor result(x.dtype(), x.shape());
  BudgetPolls polls;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    const double a = x.GetDouble(i);
    const double b = y.GetDouble(i);
    double value = 0;
    switch (primitive) {
      case Primitive::kAdd:
        value = a + b;
        break;
      case Primitive::kSub:
        value = a - b;
        break;
      case Primitive::kMul:
        value = a * b;
        break;
      case Primitive::kDiv:
        value = a / b;
        break;
      case Primitive::kRem:
        value = std::fmod(a, b);
        break;
      case Primitive::kCopysign:
        value = std::copysign(a, b);
        break;
      case Primitive::kPow:
        value = RoundOnce(
            std::pow(static_cast<long double>(a), static_cast<long double>(b)),
            x.dtype());
        break;
      case Primitive::kAtan2:
        value = RoundOnce(std::atan2(static_cast<long double>(a),
                                     static_cast<long double>(b)),
                          x.dtype());
        break;
      default:
        return NoKernel(primitive);
    }
    result.SetDouble(i, value);
  }
  return result;
}

absl::StatusOr<Tensor> EvalFloat(Primitive primitive, DType dtype,
                                 absl::Span<const Tensor> operands) {
  const Tensor& x = operands[0];
  if (primitive == Primitive::kNextafter) return Nextafter(x, operands[1]);
  if (primitive == Primitive::kPolygamma) return EvalPolygamma(x, operands[1]);
  Tensor result(dtype, x.shape());
  if (primitive == Primitive::kFma) {
    BudgetPolls polls;
    for (int64_t i = 0; i < x.size(); ++i) {
      if (polls.Ended()) break;
      result.SetDouble(i, Fma(x.GetDouble(i), operands[1].GetDouble(i),
                              operands[2].GetDouble(i), dtype));
    }
    return result;
  }
  if (primitive == Primitive::kLdexp) {
    BudgetPolls polls;
    for (int64_t i = 0; i < x.size(); ++i) {
      if (polls.Ended()) break;
      // Beyond +-5000 every float dtype overflows or underflows alike.
      const int64_t exponent = operands[1].GetInt(i);
      const int clamped = static_cast<int>(
          exponent > 5000 ? 5000 : (exponent < -5000 ? -5000 : exponent));
      Wide value = x.GetDouble(i);
      const Wide factor = clamped < 0 ? 0.5 : 2;
      for (int e = std::abs(clamped); e > 0; --e) value *= factor;
      result.SetDouble(i, RoundOnce(value, dtype));
    }
    return result;
  }
  if (operands.size() == 2) return EvalFloatBinary(primitive, x, operands[1]);
  const FloatFunction function = FindFloatFunction(primitive);
  BudgetPolls polls;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    const double v = x.GetDouble(i);
    switch (primitive) {
      case Primitive::kAbs:
        result.SetDouble(i, std::fabs(v));
        break;
      case Primitive::kNeg:
        result.SetDouble(i, -v);
        break;
      case Primitive::kSqrt:
        // IEEE 754 rounds it; by way of long double it would be twice.
        result.SetDouble(i, std::sqrt(v));
        break;
      case Primitive::kIsnan:
        result.SetInt(i, std::isnan(v));
        break;
      case Primitive::kIsinf:
        result.SetInt(i, std::isinf(v));
        break;
      default:
        if (function == nullptr) return NoKernel(primitive);
        result.SetDouble(i, RoundOnce(function(v), x.dtype()));
    }
  }
  return result;
}

// ---- Integers and bools.

absl::Status DivisionByZero(Primitive primitive) {
  return absl::OutOfRangeError(absl::StrCat("`", PrimitiveName(primitive),
                                            "`: integer division by zero"));
}

// x^n by squaring, wrapping; a negative n truncates 1 / x^-n.
absl::StatusOr<int64_t> IntPow(const IntArithmetic& a, int64_t x, int64_t n) {
  if (a.IsNegative(n)) {
    if (x == 0) return DivisionByZero(Primitive::kPow);
    if (x == 1) return 1;
    if (x == -1) return n % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t exponent = static_cast<uint64_t>(n);
  int64_t result = 1;
  for (int64_t power = x; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = IntArithmetic::WrappingMul(result, power);
    power = IntArithmetic::WrappingMul(power, power);
  }
  return result;
}

// Quotient and remainder of non-zero divisors; `floor` rounds the quotient
// down, else it truncates. The one overflow, lowest / -1, wraps.
struct Division {
  int64_t quotient;
  int64_t remainder;
};
Division Divide(const IntArithmetic& a, int64_t x, int64_t y, bool floor) {
  if (a.is_unsigned()) {
    const uint64_t p = static_cast<uint64_t>(x);
    const uint64_t q = static_cast<uint64_t>(y);
    return {static_cast<int64_t>(p / q), static_cast<int64_t>(p % q)};
  }
  if (y == -1) return {IntArithmetic::WrappingMul(x, -1), 0};
  Division d{x / y, x % y};
  if (floor && d.remainder != 0 && (d.remainder < 0) != (y < 0)) {
    d.quotient -= 1;
    d.remainder += y;
  }
  return d;
}

// Amounts outside of the width shift everything out.
int64_t Shift(const IntArithmetic& a, bool left, int64_t x, int64_t amount) {
  const int64_t width = 8 * ByteSize(a.dtype);
  const bool beyond = amount < 0 || amount >= width;
  if (left) {
    return beyond ? 0
                  : static_cast<int64_t>(static_cast<uint64_t>(x) << amount);
  }
  if (a.IsNegative(x)) return beyond ? -1 : x >> amount;
  return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) >> amount);
}

absl::StatusOr<int64_t> IntUnary(const IntArithmetic& a, Primitive primitive,
                                 int64_t x) {
  switch (primitive) {
    case Primitive::kAbs:
      return a.IsNegative(x) ? IntArithmetic::WrappingMul(x, -1) : x;
    case Primitive::kNeg:
      return IntArithmetic::WrappingMul(x, -1);
    case Primitive::kSign:
      return a.IsNegative(x) ? -1 : x != 0;
    case Primitive::kNot:
      return a.dtype == DType::kBool ? x == 0 : ~x;
    default:
      return NoKernel(primitive);
  }
}

absl::StatusOr<int64_t> IntBinary(const IntArithmetic& a, Primitive primitive,
                                  int64_t x, int64_t y) {
  switch (primitive) {
    case Primitive::kAdd:
      return IntArithmetic::WrappingAdd(x, y);
    case Primitive::kSub:
      return IntArithmetic::WrappingAdd(x, IntArithmetic::WrappingMul(y, -1));
    case Primitive::kMul:
      return IntArithmetic::WrappingMul(x, y);
    case Primitive::kFloorDiv:
      if (y == 0) return DivisionByZero(primitive);
      return Divide(a, x, y, true).quotient;
    case Primitive::kFloorMod:
      if (y == 0) return DivisionByZero(primitive);
      return Divide(a, x, y, true).remainder;
    case Primitive::kRem:
      if (y == 0) return DivisionByZero(primitive);
      return Divide(a, x, y, false).remainder;
    case Primitive::kPow:
      return IntPow(a, x, y);
    case Primitive::kAnd:
      return x & y;
    case Primitive::kOr:
      return x | y;
    case Primitive::kXor:
      return x ^ y;
    case Primitive::kShiftLeft:
      return Shift(a, true, x, y);
    case Primitive::kShiftRight:
      return Shift(a, false, x, y);
    default:
      return NoKernel(primitive);
  }
}

absl::StatusOr<Tensor> EvalInt(Primitive primitive, DType dtype,
                               absl::Span<const Tensor> operands) {
  // No integer is NaN or infinite.
  if (primitive == Primitive::kIsnan || primitive == Primitive::kIsinf) {
    return Tensor(dtype, operands[0].shape());
  }
  const IntArithmetic a{operands[0].dtype()};
  std::vector<int64_t> x = a.Load(operands[0]);
  std::vector<int64_t> y;
  if (operands.size() > 1) y = a.Load(operands[1]);
  BudgetPolls polls;
  for (size_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    if (operands.size() > 1) {
      CLEAVE_ASSIGN_OR_RETURN(x[i], IntBinary(a, primitive, x[i], y[i]));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(x[i], IntUnary(a, primitive, x[i]));
    }
  }
  return a.Store(operands[0].shape(), x);
}

// ---- Complex numbers.

absl::StatusOr<Complex> ComplexUnary(Primitive primitive, const Complex& z) {
  switch (primitive) {
    case Primitive::kNeg:
      return -z;
    case Primitive::kExp:
      return std::exp(z);
    case Primitive::kLog:
      return std::log(z);
    case Primitive::kSqrt:
      return std::sqrt(z);
    case Primitive::kRsqrt:
      return 1.0 / std::sqrt(z);
    case Primitive::kSin:
      return std::sin(z);
    case Primitive::kCos:
      return std::cos(z);
    case Primitive::kTan:
      return std::tan(z);
    case Primitive::kAsin:
      return std::asin(z);
    case Primitive::kAcos:
      return std::acos(z);
    case Primitive::kAtan:
      return std::atan(z);
    case Primitive::kSinh:
      return std::sinh(z);
    case Primitive::kCosh:
      return std::cosh(z);
    case Primitive::kTanh:
      return std::tanh(z);
    case Primitive::kAsinh:
      return std::asinh(z);
    case Primitive::kAcosh:
      return std::acosh(z);
    case Primitive::kAtanh:
      return std::atanh(z);
    default:
      return NoKernel(primitive);
  }
}

absl::StatusOr<Complex> ComplexBinary(Primitive primitive, const Complex& z,
                                      const Complex& w) {
  switch (primitive) {
    case Primitive::kAdd:
      return z + w;
    case Primitive::kSub:
      return z - w;
    case Primitive::kMul:
      return z * w;
    case Primitive::kDiv:
      return z / w;
    case Primitive::kPow:
      // z^0 is 1 of any z: the library's 0^0 is NaN.
      return w == Complex(0) ? Complex(1) : std::pow(z, w);
    default:
      return NoKernel(primitive);
  }
}

absl::StatusOr<Tensor> EvalComplex(Primitive primitive, DType dtype,
                                   absl::Span<const Tensor> operands) {
  const Tensor& x = operands[0];
  Tensor result(dtype, x.shape());
  BudgetPolls polls;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    const Complex z = x.GetComplex(i);
    switch (primitive) {
      case Primitive::kReal:
        result.SetDouble(i, z.real());
        continue;
      case Primitive::kImag:
        result.SetDouble(i, z.imag());
        continue;
      case Primitive::kAbs:
        result.SetDouble(i, std::hypot(z.real(), z.imag()));
        continue;
      case Primitive::kIsnan:
        result.SetInt(i, std::isnan(z.real()) || std::isnan(z.imag()));
        continue;
      case Primitive::kIsinf:
        result.SetInt(i, std::isinf(z.real()) || std::isinf(z.imag()));
        continue;
      default:
        break;
    }
    if (operands.size() == 1) {
      CLEAVE_ASSIGN_OR_RETURN(const Complex value, ComplexUnary(primitive, z));
      result.SetComplex(i, value);
      continue;
    }
    const Complex w = operands[1].GetComplex(i);
    if (IsComparison(primitive)) {
      result.SetInt(i, (z == w) == (primitive == Primitive::kEq));
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(const Complex value,
                            ComplexBinary(primitive, z, w));
    result.SetComplex(i, value);
  }
  return result;
}

// ---- Conversions.

// Truncates and saturates; NaN gives 0. The limits are powers of two, exact in
// double.
int64_t ToInteger(double v, DType dtype) {
  if (std::isnan(v)) return 0;
  const IntArithmetic a{dtype};
  const int bits = 8 * ByteSize(dtype) - (a.is_unsigned() ? 0 : 1);
  const double limit = std::ldexp(1.0, bits);
  if (v >= limit) return a.Highest();
  if (v <= (a.is_unsigned() ? 0 : -limit)) return a.Lowest();
  return a.is_unsigned() ? static_cast<int64_t>(static_cast<uint64_t>(v))
                         : static_cast<int64_t>(v);
}

}  // namespace

Tensor ConvertTensor(const Tensor& x, DType dtype) {
  Tensor result(dtype, x.shape());
  const bool from_int = IsInt(x.dtype()) || IsBool(x.dtype());
  const IntArithmetic from{x.dtype()};
  const std::vector<int64_t> ints =
      from_int ? from.Load(x) : std::vector<int64_t>();
  if (from_int && IsInt(dtype)) {
    return IntArithmetic{dtype}.Store(x.shape(), ints);
  }
  std::vector<int64_t> to_ints(IsInt(dtype) ? x.size() : 0);
  BudgetPolls polls;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (polls.Ended()) break;
    if (IsBool(dtype)) {
      result.SetInt(i, from_int ? ints[i] != 0 : x.GetDouble(i) != 0);
    } else if (from_int) {
      const Wide exact = from.is_unsigned()
                             ? static_cast<Wide>(static_cast<uint64_t>(ints[i]))
                             : static_cast<Wide>(ints[i]);
      if (IsComplex(dtype)) {
        const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
        result.SetComplex(i, RoundOnce(exact, part));
      } else {
        result.SetDouble(i, RoundOnce(exact, dtype));
      }
    } else if (IsInt(dtype)) {
      to_ints[i] = ToInteger(x.GetDouble(i), dtype);
    } else if (IsComplex(dtype)) {
      result.SetComplex(i, x.GetComplex(i));
    } else {
      result.SetDouble(i, x.GetDouble(i));
    }
  }
  if (IsInt(dtype)) return IntArithmetic{dtype}.Store(x.shape(), to_ints);
  return result;
}

absl::StatusOr<Tensor> EvalPointwise(Primitive primitive, DType dtype,
                                     absl::Span<const Tensor> operands) {
  const Tensor& x = operands[0];
  switch (primitive) {
    case Primitive::kNograd:
      return x;
    case Primitive::kConvert:
      return ConvertTensor(x, dtype);
    case Primitive::kBitcastConvert: {
      Tensor result(dtype, x.shape());
      if (x.byte_size() > 0) {
        std::memcpy(result.mutable_data(), x.data(), x.byte_size());
      }
      return result;
    }
    case Primitive::kSelect:
      return Pick(MapOfSelect(x), x.shape(), operands.subspan(1));
    case Primitive::kComplex: {
      Tensor result(dtype, x.shape());
      BudgetPolls polls;
      for (int64_t i = 0; i < x.size(); ++i) {
        if (polls.Ended()) break;
        result.SetComplex(i, {x.GetDouble(i), operands[1].GetDouble(i)});
      }
      return result;
    }
    default:
      break;
  }
  const bool max = primitive == Primitive::kMax;
  if (max || primitive == Primitive::kMin ||
      (IsComparison(primitive) && !IsComplex(x.dtype()))) {
    return WithArithmetic(
        x.dtype(), [&](const auto& a) -> absl::StatusOr<Tensor> {
          if constexpr (kIsOrdered<std::decay_t<decltype(a)>>) {
            const auto p = a.Load(x);
            const auto q = a.Load(operands[1]);
            if (IsComparison(primitive)) {
              return CompareKernel(a, primitive, x.shape(), p, q);
            }
            return a.Store(x.shape(), MaxMinKernel(a, max, p, q));
          }
          return NoKernel(primitive);
        });
  }
  switch (KindOf(x.dtype())) {
    case DTypeKind::kFloat:
      return EvalFloat(primitive, dtype, operands);
    case DTypeKind::kComplex:
      return EvalComplex(primitive, dtype, operands);
    default:
      return EvalInt(primitive, dtype, operands);
  }
}

}  // namespace cleave
