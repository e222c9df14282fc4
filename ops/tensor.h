// Tensor: a concrete array in row-major order. Copies share the data; writers
// work on tensors that they just made. Data begins at a multiple of 64 bytes.
//
//   Tensor x = Tensor::FromDoubles(DType::kF32, {2}, {1, 2.5});
//   x.ToString();                           // f32[2] [1, 2.5]
//   absl::StatusOr<double> y = x.DoubleAt(1);
//
// A mistake makes an invalid Tensor, which carries the status: a shape that is
// refused, as many values as do not fit, a number that the dtype does not hold.
// All that takes tensors refuses it with that status.

#ifndef CLEAVE_OPS_TENSOR_H_
#define CLEAVE_OPS_TENSOR_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/dtype.h"
#include "ops/tensor_type.h"

namespace cleave {

// Elements one tensor may have; beyond it allocation is refused.
inline constexpr int64_t kMaxTensorElements = int64_t{1} << 32;

class Tensor {
 public:
  // An empty f32 tensor of shape [0].
  Tensor();
  // Zeros (false; key 0). Invalid where Create, below, has no value; it is of
  // shape [0] then.
  Tensor(DType dtype, std::vector<int64_t> shape);
  // The same; InvalidArgument for a negative extent, ResourceExhausted beyond
  // the limit or where there is no memory.
  static absl::StatusOr<Tensor> Create(DType dtype, std::vector<int64_t> shape);
  // The invalid Tensor that a mistake makes. `status` is not OK.
  static Tensor Invalid(absl::Status status);
  // The same but for the zeros: the caller writes each element through
  // mutable_data() before anything reads the tensor, or drops it.
  static absl::StatusOr<Tensor> CreateUninitialized(DType dtype,
                                                    std::vector<int64_t> shape);
  // The elements, in row-major order, in memory that `data` keeps alive and
  // nobody writes from here on; bools are 0 or 1. InvalidArgument where it does
  // not begin at a multiple of 64 bytes, or the shape is refused by Create.
  static absl::StatusOr<Tensor> FromMemory(DType dtype,
                                           std::vector<int64_t> shape,
                                           std::shared_ptr<std::byte> data);
  // Each value rounded once to `dtype`. Invalid unless there are as many as the
  // shape has elements, and `dtype` holds them.
  static Tensor FromDoubles(DType dtype, std::vector<int64_t> shape,
                            absl::Span<const double> values);
  static Tensor FromInts(DType dtype, std::vector<int64_t> shape,
                         absl::Span<const int64_t> values);
  static Tensor Scalar(DType dtype, double value);

  // False for what a mistake made, whose status() is the first one.
  bool valid() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  TensorType type() const;

  // Null if there are no elements.
  const std::byte* data() const { return data_.get(); }
  std::byte* mutable_data() { return data_.get(); }
  size_t byte_size() const {
    return static_cast<size_t>(size_) * element_bytes_;
  }

  // Element `i` in row-major order, as a double (floats, integers, bool), as an
  // integer (integers, bool, key; u64 by its bits), as a complex number (all
  // but key). OutOfRange for an element that is not there, InvalidArgument for
  // another dtype, and status() of an invalid tensor.
  absl::StatusOr<double> DoubleAt(int64_t i) const;
  absl::StatusOr<int64_t> IntAt(int64_t i) const;
  absl::StatusOr<std::complex<double>> ComplexAt(int64_t i) const;
  // The same for those who know that it is there, and of such a dtype: NaN, and
  // 0 for an integer, where it is not.
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  std::complex<double> GetComplex(int64_t i) const;
  // Rounds to nearest even once. SetInt of u64 takes the bits. A number that
  // the dtype does not hold, or an element that is not there, leaves the
  // elements as they are and makes this handle invalid.
  void SetDouble(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);
  void SetComplex(int64_t i, std::complex<double> value);

  // Same dtype, shape and bits, where any NaN equals any NaN. False for invalid
  // tensors.
  friend bool SameValue(const Tensor& a, const Tensor& b);
  // `f32[2] [1, 2.5]`: values in shortest form that reads back. `<invalid: ..>`
  // with the message of a mistake.
  std::string ToString() const;
  // One of these values: "2.5", "true", "(1, 0)".
  std::string ElementToString(int64_t i) const;

 private:
  Tensor(DType dtype, std::vector<int64_t> shape, int64_t size,
         std::shared_ptr<std::byte> data);
  static Tensor ForValues(DType dtype, std::vector<int64_t> shape,
                          size_t count);
  static absl::StatusOr<Tensor> Allocated(DType dtype,
                                          std::vector<int64_t> shape,
                                          bool zeros);

  // The element's bytes; null where it is not there.
  const std::byte* At(int64_t i) const {
    return i >= 0 && i < size_ && data_ != nullptr
               ? data_.get() + i * element_bytes_
               : nullptr;
  }
  std::byte* MutableAt(int64_t i) { return const_cast<std::byte*>(At(i)); }
  absl::Status CheckAt(int64_t i) const;
  // The first mistake stays.
  void Refuse(absl::Status status);
  // `value` in the integer type T, where it fits.
  template <typename T>
  void StoreInt(std::byte* at, int64_t value);

  DType dtype_;
  uint8_t element_bytes_;
  std::vector<int64_t> shape_;
  int64_t size_;
  absl::Status status_;
  std::shared_ptr<std::byte> data_;
};

// Rounds a double to a float dtype, once, to nearest even; the result is the
// double that holds it. NaN for other dtypes.
double RoundToDType(double value, DType dtype);

}  // namespace cleave

#endif  // CLEAVE_OPS_TENSOR_H_
