// Arithmetics: the operations that a structured kernel needs on its elements,
// so that each kernel is written once for floats, integers, bools, complex
// numbers and reals. Internal to ops.
//
// An arithmetic has
//   Value, Storage      an element in memory, and the tensors of it
//   Acc                 a running sum or product, wider than Value
//   Load, Store         between Storage and vectors of Values
//   Make, Round         between Value and Acc; Round rounds once
//   Add, AddProduct, Multiply, MultiplyAdd   acc + v, acc + a b, acc v, acc a+b
//   Product             of a whole vector, with no overflow on the way
//   IsNaN, IsNegative, IsZero, Less, Lowest, Highest
//
// Operations that a primitive never asks of a dtype are left out: InferType
// rejected them.

#ifndef CLEAVE_OPS_REFERENCE_ARITHMETIC_H_
#define CLEAVE_OPS_REFERENCE_ARITHMETIC_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/check.h"
#include "ops/dtype.h"
#include "ops/reference/wide.h"
#include "ops/tensor.h"

namespace cleave {

using Extents = std::vector<int64_t>;

inline const Extents& ShapeOf(const Tensor& tensor) { return tensor.shape(); }
inline int64_t SizeOf(const Tensor& tensor) { return tensor.size(); }

// The product of mantissas with the exponents kept apart: no intermediate
// result overflows or underflows. 0 * inf and NaN give NaN.
inline double ScaledProduct(const std::vector<double>& values, DType dtype) {
  bool negative = false, zero = false, infinite = false;
  for (const double v : values) {
    if (std::isnan(v)) return v;
    negative ^= std::signbit(v);
    zero |= v == 0;
    infinite |= std::isinf(v);
  }
  if (zero && infinite) return std::numeric_limits<double>::quiet_NaN();
  if (zero) return negative ? -0.0 : 0.0;
  if (infinite) {
    const double inf = std::numeric_limits<double>::infinity();
    return negative ? -inf : inf;
  }
  Wide mantissa = 1;
  int64_t exponent = 0;
  for (const double v : values) {
    int e = 0;
    mantissa *= std::frexp(v, &e);
    exponent += e;
    // Each factor is at least 1/2 in magnitude.
    if (mantissa > -0.5 && mantissa < 0.5) {
      mantissa *= 2;
      --exponent;
    }
  }
  // Beyond these exponents every dtype overflows or underflows alike.
  if (exponent > 4000) exponent = 4000;
  if (exponent < -4000) exponent = -4000;
  for (; exponent > 0; --exponent) mantissa *= 2;
  for (; exponent < 0; ++exponent) mantissa /= 2;
  return RoundOnce(mantissa, dtype);
}

// Floats as doubles; sums in W: double for f16, bf16 and f32 (whose products
// it holds exactly), Wide for f64.
template <typename W>
struct FloatArithmetic {
  using Value = double;
  using Acc = W;
  using Storage = Tensor;
  DType dtype;

  std::vector<double> Load(const Tensor& tensor) const {
    std::vector<double> values(tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      values[i] = tensor.GetDouble(i);
    }
    return values;
  }
  Tensor Store(const Extents& shape, const std::vector<double>& values) const {
    Tensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetDouble(i, values[i]);
    return tensor;
  }
  Acc Make(double v) const { return v; }
  double Round(const Acc& acc) const { return RoundOnce(acc, dtype); }
  void Add(Acc& acc, double v) const { acc += v; }
  void AddProduct(Acc& acc, double a, double b) const {
    acc += static_cast<W>(a) * static_cast<W>(b);
  }
  void Multiply(Acc& acc, double v) const { acc *= v; }
  void MultiplyAdd(Acc& acc, double a, double b) const { acc = acc * a + b; }
  double Product(const std::vector<double>& values) const {
    return ScaledProduct(values, dtype);
  }
  double Zero() const { return 0; }
  double Lowest() const { return -std::numeric_limits<double>::infinity(); }
  double Highest() const { return std::numeric_limits<double>::infinity(); }
  bool IsNaN(double v) const { return std::isnan(v); }
  bool IsNegative(double v) const { return std::signbit(v); }
  bool IsZero(double v) const { return v == 0; }
  bool Less(double a, double b) const { return a < b; }
};

// Integers and bools as the 64 bits that they are extended to (u64 and key: its
// bits); arithmetic wraps to the dtype.
struct IntArithmetic {
  using Value = int64_t;
  using Acc = int64_t;
  using Storage = Tensor;
  DType dtype;

  // Keeps the low bits of the dtype and extends its sign.
  int64_t Wrap(uint64_t bits) const {
    switch (dtype) {
      case DType::kBool:
        return bits != 0;
      case DType::kU8:
        return static_cast<uint8_t>(bits);
      case DType::kU16:
        return static_cast<uint16_t>(bits);
      case DType::kU32:
        return static_cast<uint32_t>(bits);
      case DType::kI8:
        return static_cast<int8_t>(bits);
      case DType::kI16:
        return static_cast<int16_t>(bits);
      case DType::kI32:
        return static_cast<int32_t>(bits);
      default:
        return static_cast<int64_t>(bits);
    }
  }
  std::vector<int64_t> Load(const Tensor& tensor) const {
    std::vector<int64_t> values(tensor.size());
    const int bytes = ByteSize(dtype);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, tensor.data() + i * bytes, bytes);
      values[i] = Wrap(bits);
    }
    return values;
  }
  Tensor Store(const Extents& shape, const std::vector<int64_t>& values) const {
    Tensor tensor(dtype, shape);
    const int bytes = ByteSize(dtype);
    std::byte* data = tensor.mutable_data();
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const int64_t v = Wrap(static_cast<uint64_t>(values[i]));
      std::memcpy(data + i * bytes, &v, bytes);
    }
    return tensor;
  }
  static int64_t WrappingAdd(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) +
                                static_cast<uint64_t>(b));
  }
  static int64_t WrappingMul(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) *
                                static_cast<uint64_t>(b));
  }
  Acc Make(int64_t v) const { return v; }
  int64_t Round(Acc acc) const { return Wrap(static_cast<uint64_t>(acc)); }
  void Add(Acc& acc, int64_t v) const { acc = WrappingAdd(acc, v); }
  void AddProduct(Acc& acc, int64_t a, int64_t b) const {
    acc = WrappingAdd(acc, WrappingMul(a, b));
  }
  void Multiply(Acc& acc, int64_t v) const { acc = WrappingMul(acc, v); }
  void MultiplyAdd(Acc& acc, int64_t a, int64_t b) const {
    acc = WrappingAdd(WrappingMul(acc, a), b);
  }
  int64_t Product(const std::vector<int64_t>& values) const {
    int64_t product = 1;
    for (const int64_t v : values) product = WrappingMul(product, v);
    return Round(product);
  }
  bool is_unsigned() const { return !IsSigned(dtype); }
  int64_t Zero() const { return 0; }
  int64_t Lowest() const {
    if (is_unsigned()) return 0;
    return Wrap(uint64_t{1} << (8 * ByteSize(dtype) - 1));
  }
  int64_t Highest() const {
    if (is_unsigned()) return Wrap(~uint64_t{0});
    return Wrap((uint64_t{1} << (8 * ByteSize(dtype) - 1)) - 1);
  }
  bool IsNaN(int64_t) const { return false; }
  bool IsNegative(int64_t v) const { return !is_unsigned() && v < 0; }
  bool IsZero(int64_t v) const { return v == 0; }
  bool Less(int64_t a, int64_t b) const {
    return is_unsigned() ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b)
                         : a < b;
  }
};

// c64 with sums in double, c128 with sums in Wide; products by the textbook
// formula.
template <typename W>
struct ComplexArithmetic {
  using Value = std::complex<double>;
  struct Acc {
    W re;
    W im;
  };
  using Storage = Tensor;
  DType dtype;

  std::vector<Value> Load(const Tensor& tensor) const {
    std::vector<Value> values(tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      values[i] = tensor.GetComplex(i);
    }
    return values;
  }
  Tensor Store(const Extents& shape, const std::vector<Value>& values) const {
    Tensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetComplex(i, values[i]);
    return tensor;
  }
  Acc Make(const Value& v) const { return {v.real(), v.imag()}; }
  Value Round(const Acc& acc) const {
    const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
    return {RoundOnce(acc.re, part), RoundOnce(acc.im, part)};
  }
  void Add(Acc& acc, const Value& v) const {
    acc.re += v.real();
    acc.im += v.imag();
  }
  void AddProduct(Acc& acc, const Value& a, const Value& b) const {
    Acc product = Make(a);
    Multiply(product, b);
    acc.re += product.re;
    acc.im += product.im;
  }
  void Multiply(Acc& acc, const Value& v) const {
    const W re = acc.re * v.real() - acc.im * v.imag();
    acc.im = acc.re * v.imag() + acc.im * v.real();
    acc.re = re;
  }
  void MultiplyAdd(Acc& acc, const Value& a, const Value& b) const {
    Multiply(acc, a);
    Add(acc, b);
  }
  Value Product(const std::vector<Value>& values) const {
    Acc product = Make(1);
    for (const Value& v : values) Multiply(product, v);
    return Round(product);
  }
  Value Zero() const { return 0; }
  bool IsZero(const Value& v) const { return v.real() == 0 && v.imag() == 0; }
};

// Whether an arithmetic orders its values.
template <typename A>
inline constexpr bool kIsOrdered =
    !std::is_same_v<typename A::Value, std::complex<double>>;

// The greater (the lesser) of two; NaN wins; max(-0, 0) = 0, min(0, -0) = -0.
template <typename A>
const typename A::Value& MaxOf(const A& arithmetic, const typename A::Value& a,
                               const typename A::Value& b) {
  if (arithmetic.IsNaN(a)) return a;
  if (arithmetic.IsNaN(b)) return b;
  if (arithmetic.Less(a, b)) return b;
  if (arithmetic.Less(b, a)) return a;
  return arithmetic.IsNegative(a) ? b : a;
}
template <typename A>
const typename A::Value& MinOf(const A& arithmetic, const typename A::Value& a,
                               const typename A::Value& b) {
  if (arithmetic.IsNaN(a)) return a;
  if (arithmetic.IsNaN(b)) return b;
  if (arithmetic.Less(a, b)) return a;
  if (arithmetic.Less(b, a)) return b;
  return arithmetic.IsNegative(a) ? a : b;
}

// Calls `function` with the arithmetic of `dtype`.
template <typename Function>
auto WithArithmetic(DType dtype, Function&& function) {
  switch (KindOf(dtype)) {
    case DTypeKind::kFloat:
      if (dtype == DType::kF64) return function(FloatArithmetic<Wide>{dtype});
      return function(FloatArithmetic<double>{dtype});
    case DTypeKind::kComplex:
      if (dtype == DType::kC64) {
        return function(ComplexArithmetic<double>{dtype});
      }
      return function(ComplexArithmetic<Wide>{dtype});
    default:
      return function(IntArithmetic{dtype});
  }
}

// Integer tensors that kernels make and read beside their elements.
inline std::vector<int64_t> LoadInts(const Tensor& tensor) {
  return IntArithmetic{tensor.dtype()}.Load(tensor);
}
inline Tensor IntsTensor(const Extents& shape,
                         const std::vector<int64_t>& values) {
  return IntArithmetic{DType::kI64}.Store(shape, values);
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_ARITHMETIC_H_
