#include "engine/codegen/rare_sides.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// The sides of the selections of y = .., with functions %f1 = exp(%x) to
// %f4 = exp(%f3) and %u = log(%x), of 16 operations each.
std::vector<RareSide> SidesOf(const std::string& rest) {
  const auto graph = ParseGraph(
      absl::StrCat("graph (%x: f32[n], %c: bool[n]) -> (y: f32[n]) {\n"
                   "  %f1: f32[n] = exp(%x)\n"
                   "  %f2: f32[n] = exp(%f1)\n"
                   "  %f3: f32[n] = exp(%f2)\n"
                   "  %f4: f32[n] = exp(%f3)\n"
                   "  %u: f32[n] = log(%x)\n",
                   rest, "  return y = %y\n}\n"),
      std::make_shared<Context>());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  const std::vector<RareSide> all = RareSides(*graph);
  std::vector<RareSide> sides;
  for (uint32_t id = 0; id < graph->size(); ++id) {
    if (graph->node(Value{id}).op == ToOpId(Primitive::kSelect)) {
      sides.push_back(all[id]);
    } else {
      EXPECT_EQ(all[id], RareSide::kNone);
    }
  }
  return sides;
}

TEST(RareSides, AreTheDearOnes) {
  EXPECT_THAT(SidesOf("  %y: f32[n] = select(%c, %f4, %u)\n"),
              testing::ElementsAre(RareSide::kFirst));
  EXPECT_THAT(SidesOf("  %y: f32[n] = select(%c, %u, %f4)\n"),
              testing::ElementsAre(RareSide::kSecond));
  EXPECT_THAT(SidesOf("  %a: f32[n] = exp(%x)\n"
                      "  %y: f32[n] = select(%c, %u, %a)\n"),
              testing::ElementsAre(RareSide::kNone));
}

TEST(RareSides, AreBesideZerosInReductions) {
  const auto masked = [](const std::string& of) {
    return SidesOf(
        absl::StrCat("  %z: f32[] = constant(dtype: f32, value: 0.0)\n"
                     "  %o: f32[n] = broadcast_in_dim(%z, axes: [], "
                     "shape: [n])\n"
                     "  %s: f32[] = reduce_sum(%x, axes: [0])\n"
                     "  %m: f32[n] = broadcast_in_dim(%s, axes: [], "
                     "shape: [n])\n"
                     "  %a: f32[n] = tanh(",
                     of,
                     ")\n"
                     "  %y: f32[n] = select(%c, %o, %a)\n"));
  };
  EXPECT_THAT(masked("%m"), testing::ElementsAre(RareSide::kSecond));
  EXPECT_THAT(masked("%x"), testing::ElementsAre(RareSide::kNone))
      << "nothing is reduced";
}

TEST(RareSides, AreNotBehindGuards) {
  EXPECT_THAT(SidesOf("  %y: f32[n] = select(%c, %f4, %x)\n"),
              testing::ElementsAre(RareSide::kNone));
  EXPECT_THAT(SidesOf("  %a: f32[n] = neg(%x)\n"
                      "  %y: f32[n] = select(%c, %a, %f4)\n"),
              testing::ElementsAre(RareSide::kNone));
}

// All that is computed in any case is no reason to branch.
TEST(RareSides, CountWhatNothingElseReads) {
  EXPECT_THAT(SidesOf("  %a: f32[n] = select(%c, %f4, %u)\n"
                      "  %y: f32[n] = add(%a, %f4)\n"),
              testing::ElementsAre(RareSide::kNone));
  // Two functions are left to the side.
  EXPECT_THAT(SidesOf("  %a: f32[n] = select(%c, %f4, %u)\n"
                      "  %y: f32[n] = add(%a, %f2)\n"),
              testing::ElementsAre(RareSide::kNone));
  EXPECT_THAT(SidesOf("  %a: f32[n] = select(%c, %f4, %u)\n"
                      "  %y: f32[n] = add(%a, %f1)\n"),
              testing::ElementsAre(RareSide::kFirst));
}

TEST(RareSides, CountDoublesTwice) {
  EXPECT_THAT(SidesOf("  %a: f64[n] = convert(%x, dtype: f64)\n"
                      "  %b: f64[n] = exp(%a)\n"
                      "  %d: f64[n] = exp(%b)\n"
                      "  %e: f32[n] = convert(%d, dtype: f32)\n"
                      "  %y: f32[n] = select(%c, %e, %u)\n"),
              testing::ElementsAre(RareSide::kFirst));
}

TEST(RareSides, AreSeldomComputed) {
  const auto graph =
      ParseGraph(R"(graph (%x: f32[n], %c: bool[n]) -> (y: f32[n]) {
  %shared: f32[n] = exp(%x)
  %a: f32[n] = log(%shared)
  %b: f32[n] = exp(%a)
  %d: f32[n] = exp(%b)
  %u: f32[n] = exp(%shared)
  %y: f32[n] = select(%c, %d, %u)
  return y = %y
}
)",
                 std::make_shared<Context>());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  EXPECT_THAT(OnRareSides(*graph),
              testing::ElementsAre(false, false, false, true, true, true, false,
                                   false));
}

}  // namespace
}  // namespace cleave
