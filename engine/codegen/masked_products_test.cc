#include "engine/codegen/masked_products.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_replace.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Weights by the places of a matrix, and what they add up, with others beside.
constexpr char kMasked[] =
    R"(graph (%x: T[4, 4], %z: T[4, 3]) -> (y: T[4, 3], u: T[4, 3]) {
  %1: i64[4] = iota(size: 4)
  %2: i64[4, 4] = broadcast_in_dim(%1, axes: [0], shape: [4, 4])
  %3: i64[4, 4] = broadcast_in_dim(%1, axes: [1], shape: [4, 4])
  %4: bool[4, 4] = COMPARED
  %5: T[] = constant(dtype: T, value: 0.0)
  %6: T[4, 4] = broadcast_in_dim(%5, axes: [], shape: [4, 4])
  %7: T[4, 4] = select(%4, %x, %6)
  %8: T[4, 4] = neg(%7)
  %9: T[4, 4] = transpose(%8, axes: [1, 0])
  %10: T[4, 3] = dot_general(%9, %z, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %11: T[4, 3] = dot_general(%x, %z, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %10, u = %11
}
)";

std::string Marked(const std::string& dtype, const std::string& compared) {
  return CheckPass(
      absl::StrReplaceAll(kMasked, {{"T[", dtype + "["},
                                    {"dtype: T", "dtype: " + dtype},
                                    {"COMPARED", compared}}),
      MarkZeros);
}

TEST(MarkZeros, TellsOfMasks) {
  const std::string text = Marked("f32", "le(%3, %2)");
  EXPECT_THAT(text,
              HasSubstr("dot_general(%9, %z, batch_a: [], batch_b: [], "
                        "contract_a: [1], contract_b: [0], zeros: true)"));
  EXPECT_THAT(text, HasSubstr("dot_general(%x, %z, batch_a: [], batch_b: [], "
                              "contract_a: [1], contract_b: [0])"));
  EXPECT_THAT(Marked("f64", "le(%3, %2)"), HasSubstr("zeros"));
}

// Zeros that floats decide are anywhere, and halves are widened before.
TEST(MarkZeros, LeavesOthers) {
  EXPECT_THAT(Marked("f32", "lt(%x, %x)"), Not(HasSubstr("zeros")));
  EXPECT_THAT(Marked("f16", "le(%3, %2)"), Not(HasSubstr("zeros")));
}

// The product of a text, and the mask by which it is wanted.
struct Found {
  std::optional<Wanted> wanted;
  std::string mask;
};
Found WantedIn(const std::string& text) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  for (uint32_t id = 0; id < graph->size(); ++id) {
    if (graph->node(Value{id}).op != ToOpId(Primitive::kDotGeneral)) continue;
    const auto wanted = WantedWhere(*graph, Value{id});
    std::string mask;
    for (const NamedValue& input : graph->inputs()) {
      if (wanted && wanted->mask == input.value) mask = input.name;
    }
    return {wanted, mask};
  }
  return {};
}

constexpr char kScores[] =
    R"(graph (%a: f32[n, 8], %b: f32[8, m], %c: bool[n, m], %s: f32[n, m]) -> (OUTPUTS: f32[n, m]) {
  %1: f32[n, m] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %2: f32[n, m] = mul(%1, %s)
  %3: f32[n, m] = SELECTED
  return RETURNED
}
)";

Found Selected(const std::string& selected, const std::string& outputs = "y",
               const std::string& returned = "y = %3") {
  return WantedIn(absl::StrReplaceAll(
      kScores,
      {{"OUTPUTS", outputs}, {"SELECTED", selected}, {"RETURNED", returned}}));
}

TEST(WantedWhere, FindsTheMaskBehind) {
  const Found first = Selected("select(%c, %2, %s)");
  ASSERT_TRUE(first.wanted.has_value());
  EXPECT_EQ(first.mask, "c");
  EXPECT_TRUE(first.wanted->where);
  const Found second = Selected("select(%c, %s, %2)");
  ASSERT_TRUE(second.wanted.has_value());
  EXPECT_FALSE(second.wanted->where);
}

TEST(WantedWhere, WantsAllThatIsReadElsewhere) {
  EXPECT_FALSE(Selected("add(%2, %s)").wanted);
  // Both sides, the sum beside its product, and a result.
  EXPECT_FALSE(Selected("select(%c, %2, %2)").wanted);
  EXPECT_FALSE(Selected("select(%c, %2, %1)").wanted);
  EXPECT_FALSE(
      Selected("select(%c, %2, %s)", "y: f32[n, m], z", "y = %3, z = %2")
          .wanted);
}

// A mask that floats decide is no matter of blocks.
TEST(WantedWhere, TakesNoMaskOfFloats) {
  const std::string text =
      absl::StrReplaceAll(kScores, {{"OUTPUTS", "y"},
                                    {"  %3: f32[n, m] = SELECTED",
                                     "  %3: bool[n, m] = lt(%s, %s)\n"
                                     "  %4: f32[n, m] = select(%3, %2, %s)"},
                                    {"RETURNED", "y = %4"}});
  EXPECT_FALSE(WantedIn(text).wanted);
}

}  // namespace
}  // namespace cleave
