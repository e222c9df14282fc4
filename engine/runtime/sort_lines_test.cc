#include "engine/runtime/sort_lines.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/kernel_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/reference.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave::internal_kernel {
namespace {

// Numbers of few values, so that many are equal, and NaN and both zeros where
// the dtype has them.
Tensor Numbers(DType dtype, const std::vector<int64_t>& shape,
               std::mt19937& generator) {
  Tensor tensor(dtype, shape);
  const bool few = generator() % 2 == 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto drawn = static_cast<int64_t>(generator());
    if (!IsFloat(dtype)) {
      // All bits of an integer.
      if (few || IsBool(dtype)) {
        tensor.SetInt(i, drawn % 2);
        continue;
      }
      for (int b = 0; b < ByteSize(dtype); ++b) {
        tensor.mutable_data()[i * ByteSize(dtype) + b] =
            static_cast<std::byte>(generator());
      }
    } else if (drawn % 11 == 0) {
      tensor.SetDouble(i, std::nan(""));
    } else if (drawn % 11 < 3) {
      tensor.SetDouble(i, drawn % 2 == 0 ? 0.0 : -0.0);
    } else if (drawn % 37 == 0) {
      const double infinity = std::numeric_limits<double>::infinity();
      tensor.SetDouble(i, drawn % 2 == 0 ? infinity : -infinity);
    } else {
      tensor.SetDouble(i, (static_cast<double>(drawn % 2001) - 1000) *
                              (few ? 1 : std::pow(2.0, drawn % 60 - 30)));
    }
  }
  return tensor;
}

TEST(SortLines, SortsAsTheReferenceDoes) {
  std::mt19937 generator(20261126);
  // Both sides of where digits take over, and an axis on each side.
  const std::vector<std::vector<int64_t>> shapes = {
      {1},    {0},    {95},     {96},     {97},
      {1000}, {3, 0}, {7, 130}, {130, 7}, {2, 200, 3}};
  for (const DType dtype : AllDTypes()) {
    if (IsComplex(dtype) || dtype == DType::kKey) continue;
    for (const std::vector<int64_t>& shape : shapes) {
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        for (const bool descending : {false, true}) {
          SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", shape[0], " of ",
                                    shape.size(), " axes, axis ", axis,
                                    descending ? ", descending" : ""));
          const Tensor x = Numbers(dtype, shape, generator);
          ASSERT_OK_AND_ASSIGN(
              const std::vector<Tensor> want,
              EvalReference(Primitive::kSort,
                            {{"axis", static_cast<int64_t>(axis)},
                             {"descending", descending}},
                            {x}));
          Tensor values(dtype, shape);
          Tensor indices(DType::kI64, shape);
          KernelCall call;
          ASSERT_OK(
              SortLines({dtype, shape, static_cast<int64_t>(axis), descending,
                         x.data(), values.mutable_data(),
                         reinterpret_cast<int64_t*>(indices.mutable_data())},
                        call));
          EXPECT_EQ(
              std::memcmp(values.data(), want[0].data(), values.byte_size()),
              0);
          EXPECT_EQ(
              std::memcmp(indices.data(), want[1].data(), indices.byte_size()),
              0);
        }
      }
    }
  }
}

// The elements of `tensor` along an axis, below the limit or not below it.
std::vector<std::string> Along(const Tensor& tensor, int64_t axis,
                               int64_t limit, bool below) {
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < tensor.rank(); ++d) inner *= tensor.shape()[d];
  const auto bytes = static_cast<size_t>(ByteSize(tensor.dtype()));
  std::vector<std::string> elements;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if ((i / inner % tensor.shape()[axis] < limit) != below) continue;
    elements.emplace_back(
        reinterpret_cast<const char*>(tensor.data()) + i * bytes, bytes);
  }
  return elements;
}

TEST(SortLines, SortsTheFirstOfALineOnly) {
  std::mt19937 generator(20261127);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kU64,
                            DType::kF64, DType::kBool}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{1000}, {3, 333}, {99, 4}, {2, 7}}) {
      for (const int64_t limit : {0, 1, 2, 16, 31, 63, 64, 65, 100, 400}) {
        for (const bool descending : {false, true}) {
          const int64_t axis = shape[0] == 99 ? 0 : shape.size() - 1;
          SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", limit, " of ",
                                    shape[axis],
                                    descending ? ", descending" : ""));
          const Tensor x = Numbers(dtype, shape, generator);
          ASSERT_OK_AND_ASSIGN(
              const std::vector<Tensor> want,
              EvalReference(Primitive::kSort,
                            {{"axis", axis}, {"descending", descending}}, {x}));
          Tensor values(dtype, shape);
          Tensor indices(DType::kI64, shape);
          const Tensor no_values(dtype, shape);
          const Tensor no_indices(DType::kI64, shape);
          KernelCall call;
          ASSERT_OK(SortLines(
              {dtype, shape, axis, descending, x.data(), values.mutable_data(),
               reinterpret_cast<int64_t*>(indices.mutable_data()), limit},
              call));
          EXPECT_EQ(Along(values, axis, limit, true),
                    Along(want[0], axis, limit, true));
          EXPECT_EQ(Along(indices, axis, limit, true),
                    Along(want[1], axis, limit, true));
          EXPECT_EQ(Along(values, axis, limit, false),
                    Along(no_values, axis, limit, false));
          EXPECT_EQ(Along(indices, axis, limit, false),
                    Along(no_indices, axis, limit, false));
        }
      }
    }
  }
}

TEST(SortLines, SaysWhenThereIsNoMemory) {
  class Refusing : public Allocator {
   public:
    void* Allocate(size_t, size_t) override { return nullptr; }
    void Free(void*, size_t) override {}
  };
  Refusing allocator;
  KernelCallOptions options;
  options.allocator = &allocator;
  KernelCall call(options);
  const std::vector<int64_t> shape = {3};
  const float x[] = {3, 1, 2};
  float values[3];
  const absl::Status status =
      SortLines({DType::kF32, shape, 0, false, x, values, nullptr}, call);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace cleave::internal_kernel
