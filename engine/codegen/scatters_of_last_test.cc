#include "engine/codegen/scatters_of_last.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/codegen/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRows[] =
    R"(graph (%x: f32[4, 2], %i: i64[5, 1], %u: f32[5, 2]) -> (y: f32[4, 2]) {
  %1: i64[] = constant(dtype: i64, value: -1.0)
  %2: i64[4] = broadcast_in_dim(%1, axes: [], shape: [4])
  %3: i64[5] = iota(size: 5)
  %4: i64[4] = scatter(%2, %i, %3, axes: [0], batch: 0, mode: "max")
  %5: i64[] = constant(dtype: i64, value: 0.0)
  %6: i64[4] = broadcast_in_dim(%5, axes: [], shape: [4])
  %7: bool[4] = ge(%4, %6)
  %8: f32[] = constant(dtype: f32, value: 0.0)
  %9: i64[4, 1] = reshape(%4, shape: [4, 1])
  %10: f32[4, 2] = gather(%u, %9, %8, axes: [0], batch: 0, mode: "fill")
  %11: bool[4, 2] = broadcast_in_dim(%7, axes: [0], shape: [4, 2])
  %12: f32[4, 2] = select(%11, %10, %x)
  return y = %12
}
)";

constexpr char kBatch[] =
    R"(graph (%x: bool[3, 4], %i: i64[3, 5, 1], %u: bool[3, 5]) -> (y: bool[3, 4]) {
  %1: i64[] = constant(dtype: i64, value: -7.0)
  %2: i64[3, 4] = broadcast_in_dim(%1, axes: [], shape: [3, 4])
  %3: i64[5] = iota(size: 5)
  %4: i64[3, 5] = broadcast_in_dim(%3, axes: [1], shape: [3, 5])
  %5: i64[3, 4] = scatter(%2, %i, %4, axes: [1], batch: 1, mode: "max")
  %6: i64[] = constant(dtype: i64, value: 0.0)
  %7: i64[3, 4] = broadcast_in_dim(%6, axes: [], shape: [3, 4])
  %8: bool[3, 4] = ge(%5, %7)
  %9: bool[] = constant(dtype: bool, value: false)
  %10: i64[3, 4, 1] = reshape(%5, shape: [3, 4, 1])
  %11: bool[3, 4] = gather(%u, %10, %9, axes: [1], batch: 1, mode: "fill")
  %12: bool[3, 4] = select(%8, %11, %x)
  return y = %12
}
)";

// Indices meet some places twice; -1 and 4 are none. Bools and numbers differ
// from element to element.
Tensor Filled(const TensorType& type, int64_t input) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor x(type.dtype, shape);
  for (int64_t k = 0; k < x.size(); ++k) {
    if (type.dtype == DType::kI64) {
      x.SetInt(k, k * 5 % 6 - 1);
    } else if (type.dtype == DType::kBool) {
      x.SetInt(k, input == 0 ? k % 3 == 0 : k % 2);
    } else {
      x.SetDouble(k, input == 0 ? -0.5 * k : 1.0 + k);
    }
  }
  return x;
}

TEST(ScattersOfLast, SetRows) {
  EXPECT_THAT(
      CheckPass(kRows, ScattersOfLast, Filled),
      HasSubstr("scatter(%x, %i, %u, axes: [0], batch: 0, mode: \"set\")"));
}

TEST(ScattersOfLast, SetElementsOfABatch) {
  EXPECT_THAT(
      CheckPass(kBatch, ScattersOfLast, Filled),
      HasSubstr("scatter(%x, %i, %u, axes: [1], batch: 1, mode: \"set\")"));
}

// Each change makes another choice of it: of the first update, of one that the
// fill takes part in, of other numbers than the updates', of other places, of
// other rows, by another bound.
TEST(ScattersOfLast, LeaveOthers) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"max\"", "\"min\""},
      {"value: -1.0)", "value: 2.0)"},
      {"%3: i64[5] = iota(size: 5)", "%3: i64[5] = reshape(%i, shape: [5])"},
      {"select(%11, %10, %x)", "select(%11, %x, %10)"},
      {"%9: i64[4, 1] = reshape(%4", "%9: i64[4, 1] = reshape(%6"},
      {"%7: bool[4] = ge(", "%7: bool[4] = gt("},
  };
  for (const auto& [from, to] : changes) {
    std::string text = kRows;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_THAT(CheckPass(text, ScattersOfLast, Filled), Not(HasSubstr("set")))
        << text;
  }
}

}  // namespace
}  // namespace cleave
