#include "engine/codegen/sums_of_loops.h"

#include <string>

#include "engine/codegen/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Checked(const std::string& text) {
  return CheckPass(text, SumsOfLoops);
}

// Gradients of a weight and of a bias beside a carry that stays, backwards.
TEST(SumsOfLoops, AreProductsOfWhatIsStacked) {
  const std::string text = Checked(
      R"(graph (%w: f32[4, 3], %b: f32[3], %h: f32[2, 3], %x: f32[5, 2, 4], %d: f32[5, 2, 3]) -> (w: f32[4, 3], b: f32[3], h: f32[2, 3]) {
  %1: f32[4, 3], f32[3], f32[2, 3] = scan(%w, %b, %h, %x, %d, body: graph (%w: f32[4, 3], %b: f32[3], %h: f32[2, 3], %x: f32[2, 4], %d: f32[2, 3]) -> (w: f32[4, 3], b: f32[3], h: f32[2, 3]) {
    %1: f32[2, 3] = sub(%h, %d)
    %2: f32[4, 3] = dot_general(%x, %1, batch_a: [], batch_b: [], contract_a: [0], contract_b: [0])
    %3: f32[4, 3] = add(%w, %2)
    %4: f32[3] = reduce_sum(%1, axes: [0])
    %5: f32[3] = add(%4, %b)
    return w = %3, b = %5, h = %1
  }, carries: 3, consts: 0, length: 5, reverse: true)
  %2: f32[4, 3] = result(%1, index: 0)
  %3: f32[3] = result(%1, index: 1)
  %4: f32[2, 3] = result(%1, index: 2)
  return w = %2, b = %3, h = %4
})");
  EXPECT_THAT(text, HasSubstr("carries: 1"));
  EXPECT_THAT(text, HasSubstr("contract_a: [0, 1], contract_b: [0, 1]"));
  EXPECT_THAT(text, HasSubstr("reduce_sum(%3, axes: [0, 1])"));
  EXPECT_THAT(text, Not(HasSubstr("    %2: f32[4, 3] = dot_general")));
}

// The only result; what is summed is sliced.
TEST(SumsOfLoops, LeaveNoCarry) {
  const std::string text = Checked(
      R"(graph (%w: f32[4], %x: f32[5, 2, 4]) -> (w: f32[4]) {
  %1: f32[4] = scan(%w, %x, body: graph (%w: f32[4], %x: f32[2, 4]) -> (w: f32[4]) {
    %1: f32[4] = reduce_sum(%x, axes: [0])
    %2: f32[4] = add(%w, %1)
    return w = %2
  }, carries: 1, consts: 0, length: 5, reverse: false)
  return w = %1
})");
  EXPECT_THAT(text, HasSubstr("reduce_sum(%x, axes: [0, 1])"));
}

// Sums that steps read, of what all steps share, or of more elements than the
// carry has.
TEST(SumsOfLoops, LeaveOthers) {
  for (const char* body : {R"(    %1: f32[2] = reduce_sum(%x, axes: [0])
    %2: f32[2] = add(%w, %1)
    %3: f32[2] = mul(%w, %2)
    return w = %2, h = %3
)",
                           R"(    %1: f32[2] = reduce_sum(%c, axes: [0])
    %2: f32[2] = add(%w, %1)
    return w = %2, h = %h
)",
                           R"(    %1: f32[3, 2] = neg(%x)
    %2: f32[2] = reduce_sum(%1, axes: [0])
    %3: f32[2] = add(%w, %2)
    return w = %3, h = %h
)"}) {
    const std::string text =
        std::string(
            R"(graph (%c: f32[3, 2], %w: f32[2], %h: f32[2], %x: f32[5, 3, 2]) -> (w: f32[2], h: f32[2]) {
  %1: f32[2], f32[2] = scan(%c, %w, %h, %x, body: graph (%c: f32[3, 2], %w: f32[2], %h: f32[2], %x: f32[3, 2]) -> (w: f32[2], h: f32[2]) {
)") + body +
        R"(  }, carries: 2, consts: 1, length: 5, reverse: false)
  %2: f32[2] = result(%1, index: 0)
  %3: f32[2] = result(%1, index: 1)
  return w = %2, h = %3
}
)";
    EXPECT_EQ(Checked(text), text);
  }
}

}  // namespace
}  // namespace cleave
