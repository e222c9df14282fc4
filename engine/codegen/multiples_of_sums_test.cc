#include "engine/codegen/multiples_of_sums.h"

#include <cstdint>
#include <string>

#include "engine/codegen/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// The sum of the last column is 0, not -0.
Tensor WithZeros(const TensorType& type, int64_t /*input*/) {
  Tensor x(type.dtype, {3, 4});
  for (int i = 0; i < 12; ++i) x.SetDouble(i, i % 4 == 3 ? 0 : 0.1 * i - 0.37);
  return x;
}

TEST(MultiplesOfSums, HaveTheBitsOfTheSums) {
  const std::string text = CheckPass(
      R"(graph (%x: f32[3, 4]) -> (a: f32[4], b: f32[3], c: f32[]) {
  %1: f32[3, 4] = add(%x, %x)
  %2: f32[3, 4] = neg(%1)
  %3: f32[4] = reduce_sum(%2, axes: [0])
  %4: f32[3] = reduce_sum(%1, axes: [1])
  %5: f32[3, 4] = neg(%2)
  %6: f32[] = reduce_sum(%5, axes: [0, 1])
  return a = %3, b = %4, c = %6
}
)",
      MultiplesOfSums, WithZeros);
  EXPECT_THAT(text, HasSubstr("f32[4] = reduce_sum(%x, axes: [0])"));
  EXPECT_THAT(text, HasSubstr("f32[3] = reduce_sum(%x, axes: [1])"));
  EXPECT_THAT(text, HasSubstr("f32[] = reduce_sum(%x, axes: [0, 1])"));
}

// Doubled integers wrap, the largest of negated values is another one, and a
// sum of two values is none of one.
TEST(MultiplesOfSums, LeaveOthers) {
  for (const char* text : {R"(graph (%x: i32[3]) -> (y: i32[]) {
  %1: i32[3] = add(%x, %x)
  %2: i32[] = reduce_sum(%1, axes: [0])
  return y = %2
}
)",
                           R"(graph (%x: f32[3]) -> (y: f32[]) {
  %1: f32[3] = neg(%x)
  %2: f32[] = reduce_max(%1, axes: [0], tie: "even")
  return y = %2
}
)",
                           R"(graph (%x: f32[3], %z: f32[3]) -> (y: f32[]) {
  %1: f32[3] = add(%x, %z)
  %2: f32[] = reduce_sum(%1, axes: [0])
  return y = %2
}
)"}) {
    EXPECT_EQ(CheckPass(text, MultiplesOfSums), text);
  }
}

}  // namespace
}  // namespace cleave
