// The operations that the interpreter needs on a kind of tensor, floating or
// real: kernels, slices along axis 0 and their stack. Internal to engine/ir.

#ifndef CLEAVE_ENGINE_IR_INTERPRETER_VALUES_H_
#define CLEAVE_ENGINE_IR_INTERPRETER_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/host_kernel.h"
#include "engine/ir/region_function.h"
#include "ops/budget.h"
#include "ops/reference/real.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave::internal_interpreter {

inline std::vector<int64_t> WithoutAxis0(const std::vector<int64_t>& shape) {
  return std::vector<int64_t>(shape.begin() + 1, shape.end());
}

inline int64_t CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

// Floating point, by the reference kernels, and by those of the host.
struct ReferenceValues {
  using TensorT = Tensor;
  static constexpr bool kHasHostKernels = true;
  const HostKernels* host_kernels = nullptr;
  const RegionFunctions* regions = nullptr;

  // The function that computes a region in the interpreter's place, or null.
  const RegionFunction* FunctionOf(const Graph& region) const {
    if (regions == nullptr) return nullptr;
    const auto it = regions->find(&region);
    return it == regions->end() ? nullptr : &it->second;
  }

  static DType DTypeOf(const Tensor& t) { return t.dtype(); }
  static const std::vector<int64_t>& ShapeOf(const Tensor& t) {
    return t.shape();
  }
  static bool AsBool(const Tensor& t) { return t.GetInt(0) != 0; }

  absl::StatusOr<std::vector<Tensor>> Eval(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const Tensor> operands,
      absl::Span<const TensorType> declared) const {
    return EvalReference(primitive, attributes, operands, declared);
  }

  // t[index], for a tensor with at least one axis.
  Tensor Slice(const Tensor& t, int64_t index) const {
    Tensor slice(t.dtype(), WithoutAxis0(t.shape()));
    const size_t bytes = slice.byte_size();
    if (bytes > 0) {
      std::memcpy(slice.mutable_data(), t.data() + index * bytes, bytes);
    }
    return slice;
  }

  // A tensor whose slices are set one by one.
  absl::StatusOr<Tensor> Stack(DType dtype, std::vector<int64_t> shape) const {
    return Tensor::Create(dtype, std::move(shape));
  }
  void SetSlice(Tensor slice, int64_t index, Tensor* stack) const {
    const size_t bytes = slice.byte_size();
    if (bytes > 0) {
      std::memcpy(stack->mutable_data() + index * bytes, slice.data(), bytes);
    }
  }
};

// Tensors of numbers with `bits` of working precision: their floats are
// `Kind::Numbers`, their integers and bools a Tensor.
template <typename Kind>
struct NumberValues {
  using TensorT = typename Kind::TensorT;
  static constexpr bool kHasHostKernels = false;
  int bits;

  static DType DTypeOf(const TensorT& t) { return t.dtype; }
  static const std::vector<int64_t>& ShapeOf(const TensorT& t) {
    return t.shape;
  }
  static bool AsBool(const TensorT& t) { return t.discrete.GetInt(0) != 0; }

  absl::StatusOr<std::vector<TensorT>> Eval(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const TensorT> operands,
      absl::Span<const TensorType> declared) const {
    return Kind::Eval(primitive, attributes, operands, bits, declared);
  }

  TensorT Slice(const TensorT& t, int64_t index) const {
    TensorT slice;
    slice.dtype = t.dtype;
    slice.shape = WithoutAxis0(t.shape);
    if (IsFloat(t.dtype)) {
      const int64_t count = CountElements(slice.shape);
      const auto begin = (t.*Kind::kNumbers).begin() + index * count;
      (slice.*Kind::kNumbers).assign(begin, begin + count);
    } else {
      slice.discrete = ReferenceValues().Slice(t.discrete, index);
    }
    return slice;
  }

  absl::StatusOr<TensorT> Stack(DType dtype, std::vector<int64_t> shape) const {
    TensorT stack;
    stack.dtype = dtype;
    stack.shape = shape;
    if (IsFloat(dtype)) {
      CLEAVE_RETURN_IF_ERROR(
          CheckTensorBytes(CountElements(shape) * Kind::BytesOf(bits)));
    }
    // Checks the extents in either case.
    CLEAVE_ASSIGN_OR_RETURN(Tensor elements,
                            Tensor::Create(DType::kBool, shape));
    if (IsFloat(dtype)) {
      (stack.*Kind::kNumbers)
          .assign(elements.size(), typename Kind::Number(bits));
    } else {
      stack.discrete = Tensor(dtype, std::move(shape));
    }
    return stack;
  }
  void SetSlice(TensorT slice, int64_t index, TensorT* stack) const {
    if (IsFloat(slice.dtype)) {
      auto& numbers = slice.*Kind::kNumbers;
      const int64_t count = static_cast<int64_t>(numbers.size());
      std::move(numbers.begin(), numbers.end(),
                (stack->*Kind::kNumbers).begin() + index * count);
    } else {
      ReferenceValues().SetSlice(std::move(slice.discrete), index,
                                 &stack->discrete);
    }
  }
};

// The reals.
struct RealKind {
  using TensorT = RealTensor;
  using Number = Real;
  static constexpr std::vector<Real> RealTensor::*kNumbers = &RealTensor::reals;
  // The bytes of a number: 64, and its digits.
  static int64_t BytesOf(int bits) { return 64 + bits / 8; }
  static absl::StatusOr<std::vector<RealTensor>> Eval(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const RealTensor> operands, int bits,
      absl::Span<const TensorType> declared) {
    return EvalReal(primitive, attributes, operands, bits, declared);
  }
};
using RealValues = NumberValues<RealKind>;

}  // namespace cleave::internal_interpreter

#endif  // CLEAVE_ENGINE_IR_INTERPRETER_VALUES_H_
