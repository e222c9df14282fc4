#include "ops/tensor.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A format of 16 bits: a sign, an exponent, and fraction bits.
struct Format16 {
  int fraction_bits;
  int max_exponent;  // finite values are below 2^max_exponent
  int min_quantum;   // the least subnormal is 2^min_quantum
};
constexpr Format16 kHalf = {10, 16, -24};
constexpr Format16 kBrain = {7, 128, -133};

Format16 Format16Of(DType dtype) {
  return dtype == DType::kF16 ? kHalf : kBrain;
}

// Straight from the double: by way of f32 it would round twice, wrongly where
// the first rounding makes a tie.
double Round16(double value, const Format16& format) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent - 1), 2^exponent)
  const int quantum =
      std::max(exponent - 1 - format.fraction_bits, format.min_quantum);
  // The scaled value is exact: it has at most 53 bits, and where it is
  // subnormal, far below 1/2, it rounds to zero in any case.
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::abs(rounded) >= std::ldexp(1.0, format.max_exponent)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

uint16_t Encode16(double value, const Format16& format) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int exponent_mask = 0x7fff >> format.fraction_bits;
  const uint16_t infinity =
      static_cast<uint16_t>(exponent_mask << format.fraction_bits);
  if (std::isnan(value)) {
    return sign | infinity |
           static_cast<uint16_t>(1 << (format.fraction_bits - 1));
  }
  const double rounded = std::abs(Round16(value, format));
  if (std::isinf(rounded)) return sign | infinity;
  if (rounded == 0) return sign;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const int quantum =
      std::max(exponent - 1 - format.fraction_bits, format.min_quantum);
  const int steps = static_cast<int>(std::ldexp(rounded, -quantum));
  // Normal numbers have the hidden bit among their steps; adding (rather than
  // joining) carries it into the exponent.
  const int biased = quantum - format.min_quantum;
  return sign | static_cast<uint16_t>((biased << format.fraction_bits) + steps);
}

double Decode16(uint16_t bits, const Format16& format) {
  const int fraction_mask = (1 << format.fraction_bits) - 1;
  const int exponent_mask = 0x7fff >> format.fraction_bits;
  const int fraction = bits & fraction_mask;
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  double magnitude = 0;
  if (exponent == exponent_mask) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, format.min_quantum);
  } else {
    magnitude = std::ldexp(fraction + (1 << format.fraction_bits),
                           format.min_quantum + exponent - 1);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// The parts of a complex dtype.
DType PartOf(DType dtype) {
  return dtype == DType::kC64 ? DType::kF32 : DType::kF64;
}

double LoadFloat(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return Decode16(Load<uint16_t>(at), Format16Of(dtype));
    case DType::kF32:
      return Load<float>(at);
    default:
      return Load<double>(at);
  }
}

void StoreFloat(std::byte* at, DType dtype, double value) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return Store(at, Encode16(value, Format16Of(dtype)));
    case DType::kF32:
      return Store(at, static_cast<float>(value));
    default:
      return Store(at, value);
  }
}

absl::StatusOr<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tensor's extent is negative: [", absl::StrJoin(shape, ", "), "]"));
    }
    empty |= extent == 0;
  }
  if (empty) return 0;
  for (int64_t extent : shape) {
    if (extent > kMaxTensorElements / size) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a tensor of shape [", absl::StrJoin(shape, ", "),
                       "] has more than ", kMaxTensorElements, " elements"));
    }
    size *= extent;
  }
  return size;
}

// Whether the budget has room for such a tensor.
absl::Status CheckBytesOf(DType dtype, const std::vector<int64_t>& shape) {
  const absl::StatusOr<int64_t> size = CountElements(shape);
  if (!size.ok()) return size.status();
  return CheckTensorBytes(*size * ByteSize(dtype));
}

constexpr size_t kAlignment = 64;

// Gives the memory of a tensor back.
struct Release {
  void* memory;
  HeldBytes held;

  void operator()(std::byte*) const { std::free(memory); }
};

// Null where the system has no memory. Large zeros come from the system as
// they are, so that no pass over them is needed.
std::shared_ptr<std::byte> AllocateData(size_t bytes, bool zeros) {
  HeldBytes held = HoldTensorBytes(static_cast<int64_t>(bytes));
  const size_t room = bytes + kAlignment;
  void* const memory = zeros ? std::calloc(room, 1) : std::malloc(room);
  if (memory == nullptr) return nullptr;
  void* data = memory;
  size_t left = room;
  std::align(kAlignment, bytes, data, left);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                    Release{memory, std::move(held)});
}

template <typename Number>
absl::Status DoesNotFit(Number value, DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat(value, " is out of range of ", DTypeName(dtype)));
}

// The shortest decimal that reads back to the same number of `dtype`.
std::string ShortestFloat(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  std::to_chars_result end{};
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      // Six digits tell any two values of 16 bits apart; fewer often do.
      for (int digits = 1; digits <= 6; ++digits) {
        end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                            std::chars_format::general, digits);
        double back = 0;
        std::from_chars(buffer, end.ptr, back);
        if (RoundToDType(back, dtype) == value) break;
      }
      break;
    case DType::kF32:
      end = std::to_chars(buffer, buffer + sizeof(buffer),
                          static_cast<float>(value));
      break;
    default:
      end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  }
  return std::string(buffer, end.ptr);
}

}  // namespace

double RoundToDType(double value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return Round16(value, Format16Of(dtype));
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF64:
      return value;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

Tensor::Tensor() : Tensor(DType::kF32, {0}) {}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : Tensor([&] {
        auto tensor = Allocated(dtype, std::move(shape), /*zeros=*/true);
        if (tensor.ok()) return *std::move(tensor);
        Tensor invalid(dtype, {0}, 0, nullptr);
        invalid.Refuse(std::move(tensor).status());
        return invalid;
      }()) {}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, int64_t size,
               std::shared_ptr<std::byte> data)
    : dtype_(dtype),
      element_bytes_(static_cast<uint8_t>(ByteSize(dtype))),
      shape_(std::move(shape)),
      size_(size),
      data_(std::move(data)) {}

Tensor Tensor::Invalid(absl::Status status) {
  Tensor result;
  result.Refuse(status.ok()
                    ? absl::InvalidArgumentError("a tensor that is a mistake")
                    : std::move(status));
  return result;
}

void Tensor::Refuse(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::StatusOr<Tensor> Tensor::Allocated(DType dtype,
                                         std::vector<int64_t> shape,
                                         bool zeros) {
  const auto size = CountElements(shape);
  if (!size.ok()) return size.status();
  const size_t bytes =
      static_cast<size_t>(*size) * static_cast<size_t>(ByteSize(dtype));
  std::shared_ptr<std::byte> data;
  if (bytes > 0) {
    data = AllocateData(bytes, zeros);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a tensor of ", bytes, " bytes"));
    }
  }
  return Tensor(dtype, std::move(shape), *size, std::move(data));
}

absl::StatusOr<Tensor> Tensor::Create(DType dtype, std::vector<int64_t> shape) {
  CLEAVE_RETURN_IF_ERROR(CheckBytesOf(dtype, shape));
  return Allocated(dtype, std::move(shape), /*zeros=*/true);
}

absl::StatusOr<Tensor> Tensor::CreateUninitialized(DType dtype,
                                                   std::vector<int64_t> shape) {
  CLEAVE_RETURN_IF_ERROR(CheckBytesOf(dtype, shape));
  return Allocated(dtype, std::move(shape), /*zeros=*/false);
}

absl::StatusOr<Tensor> Tensor::FromMemory(DType dtype,
                                          std::vector<int64_t> shape,
                                          std::shared_ptr<std::byte> data) {
  const auto size = CountElements(shape);
  if (!size.ok()) return size.status();
  if (*size == 0) return Tensor(dtype, std::move(shape), 0, nullptr);
  if (reinterpret_cast<uintptr_t>(data.get()) % kAlignment != 0 ||
      data == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory of a tensor must begin at a multiple of ",
                     kAlignment, " bytes"));
  }
  return Tensor(dtype, std::move(shape), *size, std::move(data));
}

// Zeros, if `count` values fill them.
Tensor Tensor::ForValues(DType dtype, std::vector<int64_t> shape,
                         size_t count) {
  Tensor result(dtype, std::move(shape));
  if (result.valid() && static_cast<int64_t>(count) != result.size()) {
    result.Refuse(absl::InvalidArgumentError(
        absl::StrCat(count, " values for ", result.type().ToString())));
  }
  return result;
}

Tensor Tensor::FromDoubles(DType dtype, std::vector<int64_t> shape,
                           absl::Span<const double> values) {
  Tensor result = ForValues(dtype, std::move(shape), values.size());
  if (!result.valid()) return result;
  for (int64_t i = 0; i < result.size(); ++i) result.SetDouble(i, values[i]);
  return result;
}

Tensor Tensor::FromInts(DType dtype, std::vector<int64_t> shape,
                        absl::Span<const int64_t> values) {
  Tensor result = ForValues(dtype, std::move(shape), values.size());
  if (!result.valid()) return result;
  for (int64_t i = 0; i < result.size(); ++i) result.SetInt(i, values[i]);
  return result;
}

Tensor Tensor::Scalar(DType dtype, double value) {
  return FromDoubles(dtype, {}, {value});
}

TensorType Tensor::type() const {
  return {dtype_, Shape(shape_.begin(), shape_.end())};
}

absl::Status Tensor::CheckAt(int64_t i) const {
  if (!valid()) return status_;
  if (At(i) != nullptr) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("there is no element ", i, " of ", type().ToString()));
}

absl::StatusOr<double> Tensor::DoubleAt(int64_t i) const {
  CLEAVE_RETURN_IF_ERROR(CheckAt(i));
  if (IsComplex(dtype_) || dtype_ == DType::kKey) {
    return absl::InvalidArgumentError(
        absl::StrCat(DTypeName(dtype_), " is no real number"));
  }
  return GetDouble(i);
}

absl::StatusOr<int64_t> Tensor::IntAt(int64_t i) const {
  CLEAVE_RETURN_IF_ERROR(CheckAt(i));
  if (InClass(dtype_, DTypeClass::kInexact)) {
    return absl::InvalidArgumentError(
        absl::StrCat(DTypeName(dtype_), " is no integer"));
  }
  return GetInt(i);
}

absl::StatusOr<std::complex<double>> Tensor::ComplexAt(int64_t i) const {
  CLEAVE_RETURN_IF_ERROR(CheckAt(i));
  if (dtype_ == DType::kKey) {
    return absl::InvalidArgumentError("key is no complex number");
  }
  return GetComplex(i);
}

double Tensor::GetDouble(int64_t i) const {
  const std::byte* at = At(i);
  if (ABSL_PREDICT_FALSE(at == nullptr || IsComplex(dtype_))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (IsFloat(dtype_)) return LoadFloat(at, dtype_);
  if (dtype_ == DType::kU64) {
    return static_cast<double>(Load<uint64_t>(at));
  }
  return static_cast<double>(GetInt(i));
}

int64_t Tensor::GetInt(int64_t i) const {
  const std::byte* at = At(i);
  if (ABSL_PREDICT_FALSE(at == nullptr)) return 0;
  switch (dtype_) {
    case DType::kBool:
    case DType::kU8:
      return Load<uint8_t>(at);
    case DType::kU16:
      return Load<uint16_t>(at);
    case DType::kU32:
      return Load<uint32_t>(at);
    case DType::kI8:
      return Load<int8_t>(at);
    case DType::kI16:
      return Load<int16_t>(at);
    case DType::kI32:
      return Load<int32_t>(at);
    case DType::kU64:
    case DType::kI64:
    case DType::kKey:
      return Load<int64_t>(at);
    default:
      return 0;
  }
}

std::complex<double> Tensor::GetComplex(int64_t i) const {
  if (!IsComplex(dtype_)) return GetDouble(i);
  const std::byte* at = At(i);
  if (ABSL_PREDICT_FALSE(at == nullptr)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const DType part = PartOf(dtype_);
  return {LoadFloat(at, part), LoadFloat(at + ByteSize(part), part)};
}

template <typename T>
void Tensor::StoreInt(std::byte* at, int64_t value) {
  if (static_cast<int64_t>(static_cast<T>(value)) != value) {
    return Refuse(DoesNotFit(value, dtype_));
  }
  Store(at, static_cast<T>(value));
}

void Tensor::SetDouble(int64_t i, double value) {
  std::byte* at = MutableAt(i);
  if (ABSL_PREDICT_FALSE(at == nullptr)) return Refuse(CheckAt(i));
  if (IsFloat(dtype_)) return StoreFloat(at, dtype_, value);
  if (IsComplex(dtype_)) return SetComplex(i, value);
  const double rounded = std::nearbyint(value);
  if (dtype_ == DType::kU64) {
    if (!(rounded >= 0 && rounded < std::ldexp(1.0, 64))) {
      return Refuse(DoesNotFit(value, dtype_));
    }
    return Store(at, static_cast<uint64_t>(rounded));
  }
  if (!(std::abs(rounded) < std::ldexp(1.0, 63) ||
        rounded == -std::ldexp(1.0, 63))) {  // NaN, too
    return Refuse(DoesNotFit(value, dtype_));
  }
  SetInt(i, static_cast<int64_t>(rounded));
}

void Tensor::SetInt(int64_t i, int64_t value) {
  std::byte* at = MutableAt(i);
  if (ABSL_PREDICT_FALSE(at == nullptr)) return Refuse(CheckAt(i));
  switch (dtype_) {
    case DType::kBool:
      if (value != 0 && value != 1) return Refuse(DoesNotFit(value, dtype_));
      return Store(at, static_cast<uint8_t>(value));
    case DType::kU8:
      return StoreInt<uint8_t>(at, value);
    case DType::kU16:
      return StoreInt<uint16_t>(at, value);
    case DType::kU32:
      return StoreInt<uint32_t>(at, value);
    case DType::kI8:
      return StoreInt<int8_t>(at, value);
    case DType::kI16:
      return StoreInt<int16_t>(at, value);
    case DType::kI32:
      return StoreInt<int32_t>(at, value);
    case DType::kU64:
    case DType::kI64:
    case DType::kKey:
      return Store(at, value);
    default:
      return Refuse(absl::InvalidArgumentError(
          absl::StrCat(DTypeName(dtype_), " is written by SetDouble")));
  }
}

void Tensor::SetComplex(int64_t i, std::complex<double> value) {
  if (!IsComplex(dtype_)) {
    if (value.imag() == 0) return SetDouble(i, value.real());
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat(DTypeName(dtype_), " holds no complex numbers")));
  }
  std::byte* at = MutableAt(i);
  if (ABSL_PREDICT_FALSE(at == nullptr)) return Refuse(CheckAt(i));
  const DType part = PartOf(dtype_);
  StoreFloat(at, part, value.real());
  StoreFloat(at + ByteSize(part), part, value.imag());
}

bool SameValue(const Tensor& a, const Tensor& b) {
  if (!a.valid() || !b.valid()) return false;
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const bool inexact = InClass(a.dtype(), DTypeClass::kInexact);
  const DType part = IsComplex(a.dtype()) ? PartOf(a.dtype()) : a.dtype();
  const size_t step = static_cast<size_t>(ByteSize(part));
  for (size_t at = 0; at < a.byte_size(); at += step) {
    const std::byte* x = a.data() + at;
    const std::byte* y = b.data() + at;
    if (std::memcmp(x, y, step) == 0) continue;
    const bool both_nan = inexact && std::isnan(LoadFloat(x, part)) &&
                          std::isnan(LoadFloat(y, part));
    if (!both_nan) return false;
  }
  return true;
}

std::string Tensor::ToString() const {
  if (!valid()) return absl::StrCat("<invalid: ", status_.message(), ">");
  std::vector<std::string> values;
  for (int64_t i = 0; i < size_; ++i) values.push_back(ElementToString(i));
  return absl::StrCat(type().ToString(), " [", absl::StrJoin(values, ", "),
                      "]");
}

std::string Tensor::ElementToString(int64_t i) const {
  switch (KindOf(dtype_)) {
    case DTypeKind::kBool:
      return GetInt(i) != 0 ? "true" : "false";
    case DTypeKind::kInt:
    case DTypeKind::kKey:
      return IsSigned(dtype_) ? absl::StrCat(GetInt(i))
                              : absl::StrCat(static_cast<uint64_t>(GetInt(i)));
    case DTypeKind::kFloat:
      return ShortestFloat(GetDouble(i), dtype_);
    case DTypeKind::kComplex:
      break;
  }
  const std::complex<double> z = GetComplex(i);
  const DType part = PartOf(dtype_);
  return absl::StrCat("(", ShortestFloat(z.real(), part), ", ",
                      ShortestFloat(z.imag(), part), ")");
}

}  // namespace cleave
