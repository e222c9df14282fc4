#include "engine/runtime/cumulative_sums.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/kernel_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave::internal_kernel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

absl::StatusOr<Tensor> SumsOf(const Tensor& x, int64_t axis, bool reverse,
                              bool serial = false) {
  Tensor y(x.dtype(), x.shape());
  KernelCallOptions options;
  options.serial = serial;
  KernelCall call(options);
  const absl::Status status = CumulativeSums(
      {x.dtype(), x.shape(), axis, reverse, x.data(), y.mutable_data()}, call);
  if (!status.ok()) return status;
  return y;
}

// One by one, as the definition says.
template <typename State, typename Get, typename Set>
void SumByDefinition(const Tensor& x, int64_t axis, bool reverse, Get get,
                     Set set) {
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.shape()[d];
  const int64_t length = x.shape()[axis];
  for (int64_t line = 0; line < x.size() / std::max<int64_t>(length, 1);
       ++line) {
    const int64_t first = line / inner * inner * length + line % inner;
    State sum = 0;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = first + (reverse ? length - 1 - t : t) * inner;
      sum += get(at);
      set(at, sum);
    }
  }
}

const std::vector<std::vector<int64_t>>& Shapes() {
  static const auto* const shapes = new std::vector<std::vector<int64_t>>{
      {0},    {1},    {7},        {4096},     {4097},   {12289},  {3, 0},
      {0, 3}, {5, 9}, {6, 10000}, {10000, 6}, {9, 600}, {3, 5, 4}};
  return *shapes;
}

TEST(CumulativeSums, SumsFloats) {
  std::mt19937 generator(20261126);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const double unit = dtype == DType::kF32 ? 0x1p-24 : 0x1p-53;
    for (const std::vector<int64_t>& shape : Shapes()) {
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        for (const bool reverse : {false, true}) {
          SCOPED_TRACE(absl::StrCat(DTypeName(dtype), " ", shape[0], " of ",
                                    shape.size(), " axes, axis ", axis,
                                    reverse ? ", reverse" : ""));
          Tensor x(dtype, shape);
          std::normal_distribution<double> normal;
          for (int64_t i = 0; i < x.size(); ++i) {
            x.SetDouble(i, normal(generator));
          }
          std::vector<double> sizes(x.size());
          SumByDefinition<double>(
              x, axis, reverse,
              [&](int64_t i) { return std::abs(x.GetDouble(i)); },
              [&](int64_t i, double sum) { sizes[i] = sum; });
          std::vector<long double> want(x.size());
          SumByDefinition<long double>(
              x, axis, reverse, [&](int64_t i) { return x.GetDouble(i); },
              [&](int64_t i, long double sum) { want[i] = sum; });
          ASSERT_OK_AND_ASSIGN(const Tensor y, SumsOf(x, axis, reverse));
          ASSERT_OK_AND_ASSIGN(const Tensor serial,
                               SumsOf(x, axis, reverse, true));
          EXPECT_EQ(std::memcmp(y.data(), serial.data(), y.byte_size()), 0);
          for (int64_t i = 0; i < y.size(); ++i) {
            ASSERT_LE(std::abs(static_cast<double>(y.GetDouble(i) - want[i])),
                      unit * (64 * sizes[i] + 1e-9))
                << "at " << i;
          }
        }
      }
    }
  }
}

TEST(CumulativeSums, WrapsIntegers) {
  std::mt19937_64 generator(20261126);
  for (const std::vector<int64_t>& shape : Shapes()) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      Tensor x(DType::kI64, shape);
      for (int64_t i = 0; i < x.size(); ++i) {
        x.SetInt(i, static_cast<int64_t>(generator()));
      }
      ASSERT_OK_AND_ASSIGN(const Tensor y,
                           SumsOf(x, static_cast<int64_t>(axis), false));
      SumByDefinition<uint64_t>(
          x, static_cast<int64_t>(axis), false,
          [&](int64_t i) { return static_cast<uint64_t>(x.GetInt(i)); },
          [&](int64_t i, uint64_t sum) {
            EXPECT_EQ(static_cast<uint64_t>(y.GetInt(i)), sum);
          });
    }
  }
}

// The order of a line decides whether it overflows.
TEST(CumulativeSums, OverflowsAsTheOrderSays) {
  for (const bool reverse : {false, true}) {
    Tensor x(DType::kF64, {9000});
    const auto place = [&](int64_t i) { return reverse ? 8999 - i : i; };
    x.SetDouble(place(0), -1.5e308);
    x.SetDouble(place(5000), 1e308);
    x.SetDouble(place(5001), 1e308);
    x.SetDouble(place(8500), kInf);
    x.SetDouble(place(8999), -kInf);
    ASSERT_OK_AND_ASSIGN(const Tensor y, SumsOf(x, 0, reverse));
    EXPECT_EQ(y.GetDouble(place(4999)), -1.5e308);
    EXPECT_DOUBLE_EQ(y.GetDouble(place(5001)), 0.5e308);
    EXPECT_EQ(y.GetDouble(place(8998)), kInf);
    EXPECT_TRUE(std::isnan(y.GetDouble(place(8999))));
  }
}

}  // namespace
}  // namespace cleave::internal_kernel
