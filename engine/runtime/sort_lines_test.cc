#include "engine/runtime/sort_lines.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
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
