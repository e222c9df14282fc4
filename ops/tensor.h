// Tensor: a concrete array in row-major order. Copies share the data; writers
// work on tensors that they just made. Data begins at a multiple of 64 bytes.

#ifndef CLEAVE_OPS_TENSOR_H_
#define CLEAVE_OPS_TENSOR_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  // Zeros (false; key 0). CHECKs that extents are >= 0 and within the limit:
  // callers with untrusted shapes use Create.
  Tensor(DType dtype, std::vector<int64_t> shape);
  // The same; InvalidArgument for a negative extent, ResourceExhausted beyond
  // the limit or where there is no memory.
  static absl::StatusOr<Tensor> Create(DType dtype, std::vector<int64_t> shape);
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
  // Each value rounded once to `dtype`; as many as the shape has elements.
  static Tensor FromDoubles(DType dtype, std::vector<int64_t> shape,
                            absl::Span<const double> values);
  static Tensor FromInts(DType dtype, std::vector<int64_t> shape,
                         absl::Span<const int64_t> values);
  static Tensor Scalar(DType dtype, double value);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  TensorType type() const;

  // Null if there are no elements.
  const std::byte* data() const { return data_.get(); }
  std::byte* mutable_data() { return data_.get(); }
  size_t byte_size() const { return byte_size_; }

  // Element `i` in row-major order, as a double (floats, integers, bool),
  // as an integer (integers, bool, key; u64 by its bits), as a complex number
  // (all but key).
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  std::complex<double> GetComplex(int64_t i) const;
  // Rounds to nearest even once; integers must be in range (CHECK). SetInt of
  // u64 takes the bits.
  void SetDouble(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);
  void SetComplex(int64_t i, std::complex<double> value);

  // Same dtype, shape and bits, where any NaN equals any NaN.
  friend bool SameValue(const Tensor& a, const Tensor& b);
  // `f32[2] [1, 2.5]`: values in shortest form that reads back.
  std::string ToString() const;

 private:
  Tensor(DType dtype, std::vector<int64_t> shape, int64_t size,
         std::shared_ptr<std::byte> data);
  static absl::StatusOr<Tensor> Allocated(DType dtype,
                                          std::vector<int64_t> shape,
                                          bool zeros);

  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t size_;
  size_t byte_size_;
  std::shared_ptr<std::byte> data_;
};

// Rounds a double to a float dtype, once, to nearest even; the result is the
// double that holds it.
double RoundToDType(double value, DType dtype);

}  // namespace cleave

#endif  // CLEAVE_OPS_TENSOR_H_
