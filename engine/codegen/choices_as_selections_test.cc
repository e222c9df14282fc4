#include "engine/codegen/choices_as_selections.h"

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
using ::testing::Not;

constexpr char kChoice[] =
    R"(graph (%p: bool[], %x: f32[3], %i: i32[3]) -> (a: f32[3], b: i32[3]) {
  %1: f32[3], i32[3] = cond(%p, %x, %i, else: graph (%x: f32[3], %i: i32[3]) -> (y0: f32[3], y1: i32[3]) {
    %1: f32[3] = exp(%x)
    return y0 = %1, y1 = %i
  }, then: graph (%x: f32[3], %i: i32[3]) -> (y0: f32[3], y1: i32[3]) {
    %1: i32[] = constant(dtype: i32, value: 3.0)
    %2: i32[3] = broadcast_in_dim(%1, axes: [], shape: [3])
    %3: i32[3] = floor_div(%i, %2)
    return y0 = %x, y1 = %3
  })
  %2: f32[3] = result(%1, index: 0)
  %3: i32[3] = result(%1, index: 1)
  return a = %2, b = %3
}
)";

// A condition, and numbers that are not 0.
Tensor Filled(const TensorType& type, bool taken) {
  if (type.rank() == 0) {
    Tensor condition(type.dtype, {});
    condition.SetInt(0, taken);
    return condition;
  }
  Tensor x(type.dtype, {3});
  for (int k = 0; k < 3; ++k) x.SetDouble(k, 7 * k - 3);
  return x;
}

TEST(ChoicesAsSelections, HaveTheResultsOfTheBranch) {
  for (const bool taken : {false, true}) {
    const std::string text =
        CheckPass(kChoice, ChoicesAsSelections,
                  [&](const TensorType& type, int64_t /*input*/) {
                    return Filled(type, taken);
                  });
    EXPECT_THAT(text, HasSubstr("select"));
    EXPECT_THAT(text, Not(HasSubstr("cond")));
  }
}

// A divisor that is computed may be 0 where the branch is not taken.
TEST(ChoicesAsSelections, LeaveBranchesThatMayFail) {
  std::string text = kChoice;
  text.replace(text.find("floor_div(%i, %2)"), 17, "floor_div(%2, %i)");
  EXPECT_THAT(CheckPass(text, ChoicesAsSelections,
                        [](const TensorType& type, int64_t /*input*/) {
                          return Filled(type, true);
                        }),
              HasSubstr("cond"));
}

}  // namespace
}  // namespace cleave
