#include "engine/codegen/reductions_across_rows.h"

#include <string>

#include "engine/codegen/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

std::string Checked(const std::string& text) {
  return CheckPass(text, ReductionsAcrossRows);
}

TEST(ReductionsAcrossRows, GoAlongRows) {
  const std::string text = Checked(
      R"(graph (%x: f32[4, 9], %z: f32[5, 9], %g: f32[4, 5]) -> (y: f32[4, 9]) {
  %3: f32[4, 9, 5] = broadcast_in_dim(%x, axes: [0, 1], shape: [4, 9, 5])
  %4: f32[9, 5] = transpose(%z, axes: [1, 0])
  %5: f32[4, 9, 5] = broadcast_in_dim(%4, axes: [1, 2], shape: [4, 9, 5])
  %6: f32[4, 9, 5] = sub(%3, %5)
  %7: f32[4, 9, 5] = broadcast_in_dim(%g, axes: [0, 2], shape: [4, 9, 5])
  %8: f32[4, 9, 5] = mul(%6, %7)
  %9: f32[4, 9] = reduce_sum(%8, axes: [2])
  return y = %9
})");
  EXPECT_THAT(text, HasSubstr("f32[4, 5, 9] = mul("));
  EXPECT_THAT(text, HasSubstr("axes: [1])"));
}

// Rows along the reduced axis, along neither, and too short ones; what is read
// by others, too.
TEST(ReductionsAcrossRows, LeaveOthers) {
  for (const char* text :
       {R"(graph (%x: f32[9, 4]) -> (y: f32[9]) {
  %1: f32[9, 4] = exp(%x)
  %2: f32[9] = reduce_sum(%1, axes: [1])
  return y = %2
}
)",
        R"(graph (%x: f32[4, 9, 5]) -> (y: f32[9, 5]) {
  %1: f32[9, 5, 4] = transpose(%x, axes: [1, 2, 0])
  %2: f32[9, 5] = reduce_sum(%1, axes: [2])
  return y = %2
}
)",
        R"(graph (%x: f32[9, 4], %z: f32[4, 9]) -> (y: f32[9], e: f32[9, 4]) {
  %1: f32[9, 4] = transpose(%z, axes: [1, 0])
  %2: f32[9, 4] = add(%x, %1)
  %3: f32[9] = reduce_sum(%2, axes: [1])
  return y = %3, e = %2
}
)"}) {
    EXPECT_EQ(Checked(text), text);
  }
}

}  // namespace
}  // namespace cleave
