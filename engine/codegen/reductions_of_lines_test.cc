#include "engine/codegen/reductions_of_lines.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Compares what both graphs give for x, and returns the text of the new one.
std::string Checked(const std::string& text, const Tensor& x) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) return std::string(graph.status().message());
  const Graph rewritten = ReductionsOfLines(*graph, /*open_extents=*/false);
  const auto want = Interpret(*graph, {x});
  const auto got = Interpret(rewritten, {x});
  if (!want.ok() || !got.ok()) {
    ADD_FAILURE() << want.status() << got.status();
    return "";
  }
  for (size_t i = 0; i < want->size(); ++i) {
    EXPECT_EQ((*got)[i].ToString(), (*want)[i].ToString());
  }
  return PrintGraph(rewritten);
}

TEST(ReductionsOfLines, FindsTheFirstOfTheExtremes) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const Tensor x = Tensor::FromDoubles(
      DType::kF32, {6, 4},
      {1, 3,    3,   2,    -inf, -inf, -inf, -inf, inf, 1,   inf, 2,
       1, -0.0, 0.0, -0.0, 5,    nan,  7,    nan,  nan, nan, nan, nan});
  const std::string text = Checked(
      R"(graph (%x: f32[m, n]) -> (a: i64[m], b: i64[m]) {
  %1: i64[m] = argmax(%x, axes: [1])
  %2: i64[m] = argmin(%x, axes: [1])
  return a = %1, b = %2
})",
      x);
  EXPECT_THAT(text, Not(HasSubstr("argm")));
  EXPECT_THAT(text, HasSubstr("reduce_max"));
  EXPECT_THAT(text, HasSubstr("reduce_min"));
}

TEST(ReductionsOfLines, KeepsOtherAxes) {
  const Tensor x = Tensor::FromDoubles(DType::kF32, {2, 2}, {1, 3, 4, 2});
  const std::string text = Checked(
      R"(graph (%x: f32[m, n]) -> (a: i64[n], b: i64[], c: f32[m]) {
  %1: i64[n] = argmax(%x, axes: [0])
  %2: i64[] = argmin(%x, axes: [0, 1])
  %3: f32[m] = reduce_sum(%x, axes: [1])
  return a = %1, b = %2, c = %3
})",
      x);
  EXPECT_THAT(text, HasSubstr("argmax"));
  EXPECT_THAT(text, HasSubstr("argmin"));
  EXPECT_THAT(text, HasSubstr("reduce_sum"));
}

TEST(ReductionsOfLines, TakesShortLinesOfInputsApart) {
  const double nan = std::nan("");
  const Tensor x = Tensor::FromDoubles(DType::kF32, {3, 3},
                                       {1, 3, 4, 2, nan, 1, -0.0, 0, 0});
  const std::string text = Checked(
      R"(graph (%x: f32[m, 3]) -> (a: f32[m], b: f32[m], c: f32[m], d: f32[m]) {
  %1: f32[m] = reduce_sum(%x, axes: [1])
  %2: f32[m] = reduce_max(%x, axes: [1], tie: "even")
  %3: f32[m] = reduce_min(%x, axes: [1], tie: "even")
  %4: f32[m, 3] = exp(%x)
  %5: f32[m] = reduce_sum(%4, axes: [1])
  return a = %1, b = %2, c = %3, d = %5
})",
      x);
  EXPECT_THAT(text, Not(HasSubstr("reduce_max")));
  EXPECT_THAT(text, Not(HasSubstr("reduce_min")));
  // A computed value would be computed for each slice.
  EXPECT_THAT(text, HasSubstr("reduce_sum(%"));
}

TEST(ReductionsOfLines, TakesWindowsApart) {
  const double nan = std::nan("");
  const Tensor x = Tensor::FromDoubles(
      DType::kF32, {4, 4},
      {1, 3, 3, 3, 2, 0, nan, 3, nan, 1, 7, nan, 4, 8, -0.0, nan});
  const std::string text = Checked(
      R"(graph (%x: f32[4, 4]) -> (a: i64[2, 2], b: i64[2, 2], c: f32[2, 2]) {
  %1: f32[2, 2, 2, 2] = reshape(%x, shape: [2, 2, 2, 2])
  %2: f32[2, 2, 2, 2] = transpose(%1, axes: [0, 2, 1, 3])
  %3: i64[2, 2] = argmax(%2, axes: [2, 3])
  %4: i64[2, 2] = argmin(%2, axes: [2, 3])
  %5: f32[2, 2] = reduce_max(%1, axes: [1, 3], tie: "first")
  return a = %3, b = %4, c = %5
})",
      x);
  EXPECT_THAT(text, Not(HasSubstr("argm")));
  EXPECT_THAT(text, Not(HasSubstr("reduce")));
}

// Elements that are read by indices, with weights, as an interpolation does.
TEST(ReductionsOfLines, TakesGatheredElementsApart) {
  const Tensor x = Tensor::FromDoubles(DType::kF32, {2, 3}, {1, 3, 4, 2, 5, 1});
  const std::string text = Checked(
      R"(graph (%x: f32[2, 3]) -> (y: f32[4, 2], z: f32[4, 2]) {
  %1: i64[4] = iota(size: 4)
  %2: i64[2] = iota(size: 2)
  %3: i64[4, 2] = broadcast_in_dim(%1, axes: [0], shape: [4, 2])
  %4: i64[4, 2] = broadcast_in_dim(%2, axes: [1], shape: [4, 2])
  %5: i64[4, 2] = add(%3, %4)
  %6: i64[4, 2, 1] = reshape(%5, shape: [4, 2, 1])
  %7: f32[] = constant(dtype: f32, value: 7.0)
  %8: f32[4, 2, 2] = gather(%x, %6, %7, axes: [1], batch: 0, mode: "fill")
  %9: f32[4, 2] = convert(%5, dtype: f32)
  %10: f32[4, 2, 2] = broadcast_in_dim(%9, axes: [0, 1], shape: [4, 2, 2])
  %11: f32[4, 2, 2] = mul(%8, %10)
  %12: f32[4, 2] = reduce_sum(%11, axes: [1])
  %13: f32[4, 2] = reduce_sum(%8, axes: [2])
  return y = %12, z = %13
})",
      x);
  EXPECT_THAT(text, HasSubstr("f32[4, 1, 2] = mul("));
  EXPECT_THAT(text, Not(HasSubstr("reduce_sum(%11")));
  // Its axis is none of the indices'.
  EXPECT_THAT(text, HasSubstr("reduce_sum("));
}

TEST(ReductionsOfLines, TakesManyRowsInBlocks) {
  Tensor x(DType::kF32, {4096, 3});
  for (int64_t i = 0; i < x.size(); ++i) {
    x.SetDouble(i, static_cast<double>(i % 17) - 8);  // sums are exact
  }
  const std::string text = Checked(
      R"(graph (%x: f32[4096, 3]) -> (a: f32[3], b: f32[3]) {
  %1: f32[3] = reduce_sum(%x, axes: [0])
  %2: f32[3] = reduce_max(%x, axes: [0], tie: "even")
  return a = %1, b = %2
})",
      x);
  EXPECT_THAT(text, HasSubstr("f32[8, 16, 32, 3] = reshape(%x"));
  EXPECT_THAT(text, HasSubstr("f32[8, 32, 3] = reduce_sum("));
  EXPECT_THAT(text, HasSubstr("f32[8, 32, 3] = reduce_max("));
}

// Bytes of a row would be read by other kernels than now: a value that is
// computed on the way stays on its way.
TEST(ReductionsOfLines, LeavesRowsThatAreComputed) {
  const std::string text = Checked(
      R"(graph (%x: f32[4096, 3]) -> (a: f32[3]) {
  %1: f32[4096, 3] = neg(%x)
  %2: f32[3] = reduce_sum(%1, axes: [0])
  return a = %2
})",
      Tensor(DType::kF32, {4096, 3}));
  EXPECT_THAT(text, Not(HasSubstr("reshape")));
}

}  // namespace
}  // namespace cleave
