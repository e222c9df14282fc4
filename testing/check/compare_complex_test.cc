#include "testing/check/compare_complex.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/status_macros.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr int64_t kPoints = 200;

// The tangents of `value` of x, where `slope` makes the tangent of x, %dx,
// that of the value, %y.
absl::StatusOr<ComplexTangents> Compare(const std::string& value,
                                        const std::string& slope) {
  const auto context = std::make_shared<Context>();
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph primal,
      ParseGraph(absl::StrCat("graph (%x: c128[n]) -> (y: c128[n]) {\n", value,
                              "\n  return y = %y\n}\n"),
                 context));
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph jvp,
      ParseGraph(
          absl::StrCat("graph (%x: c128[n], %dx: c128[n]) -> (y: "
                       "c128[n], dy: c128[n]) {\n",
                       value, "\n", slope, "\n  return y = %y, dy = %dy\n}\n"),
          context));
  std::mt19937_64 random(1);
  const Tensor x = ComplexPoints(kPoints, random);
  const Tensor dx = ComplexPoints(kPoints, random);
  return CompareComplexTangents(primal, jvp, {x}, 0, dx);
}

TEST(CompareComplexTangents, RightSlopeAgrees) {
  ASSERT_OK_AND_ASSIGN(
      const ComplexTangents found,
      Compare("  %y: c128[n] = exp(%x)", "  %dy: c128[n] = mul(%y, %dx)"));
  EXPECT_FALSE(found.failure.has_value());
  EXPECT_EQ(found.samples, kPoints);
}

TEST(CompareComplexTangents, WrongSlopeDiffers) {
  ASSERT_OK_AND_ASSIGN(
      const ComplexTangents found,
      Compare("  %y: c128[n] = exp(%x)", "  %dy: c128[n] = mul(%x, %dx)"));
  EXPECT_TRUE(found.failure.has_value());
}

// The root jumps at the negative numbers, where no difference settles.
TEST(CompareComplexTangents, BranchCutsAreLeftOut) {
  ASSERT_OK_AND_ASSIGN(
      const ComplexTangents found,
      Compare("  %1: c128[n] = mul(%x, %x)\n  %y: c128[n] = sqrt(%1)",
              "  %2: c128[n] = div(%x, %y)\n"
              "  %dy: c128[n] = mul(%2, %dx)"));
  EXPECT_FALSE(found.failure.has_value());
  EXPECT_GE(found.samples, kPoints * 9 / 10);
}

}  // namespace
}  // namespace cleave
