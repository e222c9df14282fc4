#include "engine/codegen/factors_down_columns.h"

#include <string>

#include "engine/codegen/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

std::string Checked(const std::string& text) {
  return CheckPass(text, FactorsDownColumns);
}

TEST(FactorsDownColumns, AreStoredTransposed) {
  const std::string text = Checked(
      R"(graph (%g: f32[300, 200], %x: f32[300, 32]) -> (y: f32[200, 32]) {
  %1: f32[300, 200, 32] = broadcast_in_dim(%g, axes: [0, 1], shape: [300, 200, 32])
  %2: f32[300, 200, 32] = broadcast_in_dim(%x, axes: [0, 2], shape: [300, 200, 32])
  %3: f32[300, 200, 32] = mul(%1, %2)
  %4: f32[200, 32] = reduce_sum(%3, axes: [0])
  return y = %4
})");
  EXPECT_THAT(text, HasSubstr("f32[200, 300] = transpose(%g, axes: [1, 0])"));
  EXPECT_THAT(text, HasSubstr("f32[200, 300] = convert("));
}

// As they are given by a transpose, which is kept.
TEST(FactorsDownColumns, OfATransposeAreStored) {
  const std::string text = Checked(
      R"(graph (%g: f32[300, 200], %x: f32[300, 32]) -> (y: f32[200, 32]) {
  %1: f32[200, 300] = transpose(%g, axes: [1, 0])
  %2: f32[200, 300, 32] = broadcast_in_dim(%1, axes: [0, 1], shape: [200, 300, 32])
  %3: f32[200, 300, 32] = broadcast_in_dim(%x, axes: [1, 2], shape: [200, 300, 32])
  %4: f32[200, 300, 32] = mul(%2, %3)
  %5: f32[200, 32] = reduce_sum(%4, axes: [1])
  return y = %5
})");
  EXPECT_THAT(text, HasSubstr("f32[200, 300] = convert("));
}

// Along a row; few of them; short rows of what is reduced; a value that is dear
// to compute twice.
TEST(FactorsDownColumns, LeaveOthers) {
  for (const char* text :
       {R"(graph (%g: f32[300, 200], %x: f32[200, 32]) -> (y: f32[300, 32]) {
  %1: f32[300, 200, 32] = broadcast_in_dim(%g, axes: [0, 1], shape: [300, 200, 32])
  %2: f32[300, 200, 32] = broadcast_in_dim(%x, axes: [1, 2], shape: [300, 200, 32])
  %3: f32[300, 200, 32] = mul(%1, %2)
  %4: f32[300, 32] = reduce_sum(%3, axes: [1])
  return y = %4
}
)",
        R"(graph (%g: f32[30, 20], %x: f32[30, 32]) -> (y: f32[20, 32]) {
  %1: f32[30, 20, 32] = broadcast_in_dim(%g, axes: [0, 1], shape: [30, 20, 32])
  %2: f32[30, 20, 32] = broadcast_in_dim(%x, axes: [0, 2], shape: [30, 20, 32])
  %3: f32[30, 20, 32] = mul(%1, %2)
  %4: f32[20, 32] = reduce_sum(%3, axes: [0])
  return y = %4
}
)",
        R"(graph (%g: f32[300, 200], %x: f32[300, 8]) -> (y: f32[200, 8]) {
  %1: f32[300, 200, 8] = broadcast_in_dim(%g, axes: [0, 1], shape: [300, 200, 8])
  %2: f32[300, 200, 8] = broadcast_in_dim(%x, axes: [0, 2], shape: [300, 200, 8])
  %3: f32[300, 200, 8] = mul(%1, %2)
  %4: f32[200, 8] = reduce_sum(%3, axes: [0])
  return y = %4
}
)",
        R"(graph (%g: f32[300, 200], %x: f32[300, 32]) -> (y: f32[200, 32]) {
  %1: f32[300, 200, 32] = broadcast_in_dim(%g, axes: [0, 1], shape: [300, 200, 32])
  %2: f32[300, 200, 32] = broadcast_in_dim(%x, axes: [0, 2], shape: [300, 200, 32])
  %3: f32[300, 200, 32] = mul(%1, %2)
  %4: f32[300, 200, 32] = exp(%3)
  %5: f32[200, 32] = reduce_sum(%4, axes: [0])
  return y = %5
}
)"}) {
    EXPECT_EQ(Checked(text), text);
  }
}

}  // namespace
}  // namespace cleave
