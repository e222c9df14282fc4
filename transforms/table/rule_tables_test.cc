#include "transforms/table/rule_tables.h"

#include <memory>
#include <string>

#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kRules[] = R"(language 1

/// A square, and its derivative by the rules' own `jvp`.
op square(x: T[S..]) -> T[S..]
  where T: float
{
  x * x
}

op slope(x: T[S..]) -> T[S..]
  where T: float
{
  jvp square(x)(1)
}

jvp mul(a, b) = da * b + a * db

fn f(x: f32[n]) -> f32[n] = square(x)
fn g(x: f32[n]) -> f32[n] = slope(x)
)";

class RuleTablesTest : public ::testing::Test {
 protected:
  LoadResult Load(const LoadOptions& options) {
    return LoadRules({{"test.rules", kRules}}, context_, options);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
};

TEST_F(RuleTablesTest, HasATableForEachChoiceOfOptions) {
  const LoadResult loaded = Load(WithTransforms());
  ASSERT_NE(loaded.rules, nullptr) << loaded.diagnostics[0];
  ASSERT_OK_AND_ASSIGN(RuleTable * table, TableOf(*loaded.rules));
  EXPECT_EQ(*TableOf(*loaded.rules), table);
  TransformOptions recompute;
  recompute.recompute_loops = true;
  ASSERT_OK_AND_ASSIGN(RuleTable * other, TableOf(*loaded.rules, recompute));
  EXPECT_NE(other, table);
  EXPECT_EQ(*TableOf(*loaded.rules, recompute), other);
  EXPECT_TRUE(other->options().recompute_loops);
}

TEST_F(RuleTablesTest, ExtendedRulesHaveTheirOwn) {
  const LoadResult base = Load(WithTransforms());
  ASSERT_NE(base.rules, nullptr) << base.diagnostics[0];
  const LoadResult extended =
      ExtendRules(base.rules, {"more.rules", "language 1\n"});
  ASSERT_NE(extended.rules, nullptr);
  ASSERT_OK_AND_ASSIGN(RuleTable * table, TableOf(*base.rules));
  ASSERT_OK_AND_ASSIGN(RuleTable * other, TableOf(*extended.rules));
  EXPECT_NE(other, table);
  EXPECT_EQ(&other->rules(), extended.rules.get());
}

TEST_F(RuleTablesTest, TransformsAndBodiesShareTheTable) {
  const LoadResult loaded = Load(WithTransforms());
  ASSERT_NE(loaded.rules, nullptr) << loaded.diagnostics[0];
  ASSERT_OK_AND_ASSIGN(RuleTable * table, TableOf(*loaded.rules));
  ASSERT_OK_AND_ASSIGN(const Graph f, loaded.rules->Function("f"));
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(f, {true}, *loaded.rules));
  const int64_t size = table->size();
  EXPECT_GT(size, 0);
  // The slope's body is the tangent of the same call.
  ASSERT_OK_AND_ASSIGN(const Graph g, loaded.rules->Function("g"));
  ASSERT_THAT(Expand(g, *loaded.rules), IsOk());
  EXPECT_EQ(table->size(), size);
}

TEST_F(RuleTablesTest, RefusesRulesWithoutTransforms) {
  const LoadResult loaded = LoadRules(
      {{"test.rules", "language 1\n\nfn f(x: f32[n]) -> f32[n] = x + x\n"}},
      context_);
  ASSERT_NE(loaded.rules, nullptr) << loaded.diagnostics[0];
  ASSERT_OK_AND_ASSIGN(const Graph f, loaded.rules->Function("f"));
  EXPECT_THAT(Vjp(f, {true}, *loaded.rules),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without transforms")));
}

}  // namespace
}  // namespace cleave
