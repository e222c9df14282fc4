#include "engine/codegen/scatters_at_known_places.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Graph Parsed(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) ADD_FAILURE() << graph.status();
  return *std::move(graph);
}

// Numbers with signed zeros, infinities of both signs and NaN among them.
Tensor Numbers(const TensorType& type, int64_t first) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor x(type.dtype, shape);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t n = (i + first) * 7 % 23;
    if (!IsFloat(type.dtype)) {
      x.SetInt(i, n);
    } else {
      x.SetDouble(i, n == 3    ? -0.0
                     : n == 11 ? kInf
                     : n == 12 ? -kInf
                               : static_cast<double>(n) / 3 - 2);
    }
  }
  return x;
}

// The text of the graph without the scatter, whose results have the same bits.
std::string Checked(const std::string& text) {
  return CheckPass(text, ScattersAtKnownPlaces, Numbers);
}

// Places 0, 0, 1, 1, 2, 3, 3 of 5: up to two updates, and none.
constexpr char kHalves[] = R"(graph (%u: DTYPE[7, 3]) -> (y: DTYPE[5, 3]) {
  %1: i64[7] = iota(size: 7)
  %2: i64[] = constant(dtype: i64, value: 4.0)
  %3: i64[7] = broadcast_in_dim(%2, axes: [], shape: [7])
  %4: i64[7] = mul(%1, %3)
  %5: i64[] = constant(dtype: i64, value: 7.0)
  %6: i64[7] = broadcast_in_dim(%5, axes: [], shape: [7])
  %7: i64[7] = floor_div(%4, %6)
  %8: i64[7, 1] = reshape(%7, shape: [7, 1])
  %9: DTYPE[] = constant(dtype: DTYPE, value: 0.0)
  %10: DTYPE[5, 3] = broadcast_in_dim(%9, axes: [], shape: [5, 3])
  %11: DTYPE[5, 3] = scatter(%10, %8, %u, axes: [0], batch: 0, mode: "add")
  return y = %11
})";

TEST(ScattersAtKnownPlaces, AddUpdatesInTheirOrder) {
  for (const char* dtype : {"f32", "f64", "i32"}) {
    const std::string text =
        Checked(absl::StrReplaceAll(kHalves, {{"DTYPE", dtype}}));
    EXPECT_THAT(text, HasSubstr("mode: \"min\""));
    EXPECT_THAT(text, Not(HasSubstr("mode: \"add\"")));
  }
}

// Places i * i % 5 of 16 updates: up to seven of one.
TEST(ScattersAtKnownPlaces, RoundSumsOfManyOnce) {
  const std::string text = Checked(
      R"(graph (%u: f32[16]) -> (y: f32[5]) {
  %1: i64[16] = iota(size: 16)
  %2: i64[16] = mul(%1, %1)
  %3: i64[] = constant(dtype: i64, value: 5.0)
  %4: i64[16] = broadcast_in_dim(%3, axes: [], shape: [16])
  %5: i64[16] = floor_mod(%2, %4)
  %6: i64[16, 1] = reshape(%5, shape: [16, 1])
  %7: f32[] = constant(dtype: f32, value: 0.0)
  %8: f32[5] = broadcast_in_dim(%7, axes: [], shape: [5])
  %9: f32[5] = scatter(%8, %6, %u, axes: [0], batch: 0, mode: "add")
  return y = %9
})");
  EXPECT_THAT(text, HasSubstr("f64[5] = add("));
}

// Sums of narrow floats are rounded once.
TEST(ScattersAtKnownPlaces, LeaveNarrowFloats) {
  EXPECT_THAT(Checked(absl::StrReplaceAll(kHalves, {{"DTYPE", "f16"}})),
              HasSubstr("mode: \"add\""));
}

// Updates of two axes that are products of weights and of elements which stand
// in another order, along an axis in the middle.
TEST(ScattersAtKnownPlaces, ComputeUpdatesWhereTheyAreRead) {
  const std::string text = Checked(
      R"(graph (%w: f32[4, 2], %c: f32[2, 3, 4]) -> (y: f32[2, 5, 3]) {
  %1: i64[4] = iota(size: 4)
  %2: i64[2] = iota(size: 2)
  %3: i64[4, 2] = broadcast_in_dim(%1, axes: [0], shape: [4, 2])
  %4: i64[4, 2] = broadcast_in_dim(%2, axes: [1], shape: [4, 2])
  %5: i64[4, 2] = add(%3, %4)
  %6: i64[4, 2, 1] = reshape(%5, shape: [4, 2, 1])
  %7: f32[4, 2, 3] = transpose(%c, axes: [2, 0, 1])
  %8: f32[4, 2, 2, 3] = broadcast_in_dim(%7, axes: [0, 2, 3], shape: [4, 2, 2, 3])
  %9: f32[4, 2, 2, 3] = broadcast_in_dim(%w, axes: [0, 1], shape: [4, 2, 2, 3])
  %10: f32[4, 2, 2, 3] = mul(%8, %9)
  %11: f32[] = constant(dtype: f32, value: 0.0)
  %12: f32[2, 5, 3] = broadcast_in_dim(%11, axes: [], shape: [2, 5, 3])
  %13: f32[2, 5, 3] = scatter(%12, %6, %10, axes: [1], batch: 0, mode: "add")
  return y = %13
})");
  EXPECT_THAT(text, Not(HasSubstr("mode: \"add\"")));
  EXPECT_THAT(text, Not(HasSubstr("f32[4, 2, 2, 3] = mul(")));
  EXPECT_THAT(text, HasSubstr("f32[5, 2, 3] = mul("));
}

// A place out of range, one that most updates have, and places that an input
// decides.
TEST(ScattersAtKnownPlaces, LeaveOthers) {
  for (const char* text : {R"(graph (%u: f32[7]) -> (y: f32[3]) {
  %1: i64[7] = iota(size: 7)
  %2: i64[7, 1] = reshape(%1, shape: [7, 1])
  %3: f32[] = constant(dtype: f32, value: 0.0)
  %4: f32[3] = broadcast_in_dim(%3, axes: [], shape: [3])
  %5: f32[3] = scatter(%4, %2, %u, axes: [0], batch: 0, mode: "add")
  return y = %5
}
)",
                           R"(graph (%u: f32[9]) -> (y: f32[3]) {
  %1: i64[] = constant(dtype: i64, value: 1.0)
  %2: i64[9, 1] = broadcast_in_dim(%1, axes: [], shape: [9, 1])
  %3: f32[] = constant(dtype: f32, value: 0.0)
  %4: f32[3] = broadcast_in_dim(%3, axes: [], shape: [3])
  %5: f32[3] = scatter(%4, %2, %u, axes: [0], batch: 0, mode: "add")
  return y = %5
}
)",
                           R"(graph (%i: i64[2, 1], %u: f32[2]) -> (y: f32[3]) {
  %1: f32[] = constant(dtype: f32, value: 0.0)
  %2: f32[3] = broadcast_in_dim(%1, axes: [], shape: [3])
  %3: f32[3] = scatter(%2, %i, %u, axes: [0], batch: 0, mode: "add")
  return y = %3
}
)"}) {
    EXPECT_EQ(PrintGraph(ScattersAtKnownPlaces(Parsed(text))), text);
  }
}

}  // namespace
}  // namespace cleave
