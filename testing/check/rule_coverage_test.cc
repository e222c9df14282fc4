// Which lines and branches of small rules the checked calls reach.

#include "testing/check/rule_coverage.h"

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/check/check_testing.h"
#include "testing/golden_file.h"

namespace cleave {
namespace {

using ::testing::IsEmpty;

CheckReport Covered(const std::shared_ptr<const RuleSet>& rules,
                    const std::string& ops = "*", int threads = 1) {
  CheckOptions options;
  options.ops = ops;
  options.sources = {"test.rules"};
  options.coverage = true;
  options.threads = threads;
  return rules == nullptr ? CheckReport() : CheckedRules(rules, options);
}

constexpr char kTwoOps[] = R"(language 1

def shifted(x, by) = if by == 0 then x else x + by

/// x.
op still(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..]
{
  shifted(x, 0)
}

/// x + 1.
op moved(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
{
  shifted(x, 1)
}
)";

TEST(RuleCoverage, Golden) {
  TestGoldenFile("testing/check/testdata/coverage.golden",
                 [](absl::string_view text) {
                   const CheckReport report =
                       Covered(LoadText("test.rules", std::string(text)));
                   return CoverageText(report.coverage);
                 });
}

// A branch that another op's check reaches counts: a def has no check of its
// own.
TEST(RuleCoverage, JoinsWhatOpsReachOfADef) {
  const auto rules = LoadText("test.rules", kTwoOps);
  const CheckReport report = Covered(rules);
  ASSERT_EQ(report.coverage.size(), 3u);
  EXPECT_EQ(report.coverage[0].item, "def shifted");
  EXPECT_EQ(report.coverage[0].branches, 2);
  EXPECT_EQ(report.coverage[0].covered_branches, 2);
  for (const RuleCoverage& item : report.coverage) {
    EXPECT_EQ(item.covered_lines, item.lines) << item.item;
    EXPECT_GT(item.lines, 0) << item.item;
  }
}

// Where one op is checked alone, defs are not asked: others may reach them.
TEST(RuleCoverage, LeavesDefsOutWhereNotAllOpsAreChecked) {
  const CheckReport report = Covered(LoadText("test.rules", kTwoOps), "still");
  ASSERT_EQ(report.coverage.size(), 1u);
  EXPECT_EQ(report.coverage[0].item, "still");
}

// Bodies that were compiled before, here by another check, count all the same.
TEST(RuleCoverage, CountsWhatIsCompiledAlready) {
  const auto rules = LoadText("test.rules", kTwoOps);
  const std::string first = CoverageText(Covered(rules).coverage);
  EXPECT_EQ(CoverageText(Covered(rules).coverage), first);
  EXPECT_EQ(CoverageText(Covered(rules, "*", 2).coverage), first);
}

TEST(RuleCoverage, IsThereOnlyWhereItIsAskedFor) {
  CheckOptions options;
  options.sources = {"test.rules"};
  const auto rules = LoadText("test.rules", kTwoOps);
  ASSERT_NE(rules, nullptr);
  const CheckReport report = CheckedRules(rules, options);
  EXPECT_THAT(report.coverage, IsEmpty());
  EXPECT_FALSE(nlohmann::json::parse(report.ToJson()).contains("coverage"));
}

// A line of an op that an override replaces is not in force.
TEST(RuleCoverage, LeavesReplacedLinesOut) {
  const CheckReport report = Covered(LoadText("test.rules", R"(language 1

/// 2 x.
op twice(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = 2 * x[s..]
{
  x + x
  jvp x = dx + dx
}

override twice
{
  jvp x = 2 * dx
}
)"));
  ASSERT_EQ(report.coverage.size(), 2u);
  EXPECT_EQ(report.coverage[0].item, "twice");
  EXPECT_EQ(report.coverage[0].lines, 2);  // the spec and the result
  EXPECT_EQ(report.coverage[0].covered_lines, 2);
  EXPECT_EQ(report.coverage[1].item, "override twice");
  EXPECT_EQ(report.coverage[1].lines, 1);
  EXPECT_EQ(report.coverage[1].covered_lines, 1);
}

TEST(RuleCoverage, IsInTheJson) {
  const CheckReport report = Covered(LoadText("test.rules", R"(language 1

/// x.
op seldom(x: T[n]) -> T[n]
  where T: float
{
  if n == 4000 then x + 1 else x
}
)"));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  ASSERT_EQ(json["coverage"].size(), 1u);
  const nlohmann::json& item = json["coverage"][0];
  EXPECT_EQ(item["item"], "seldom");
  EXPECT_EQ(item["place"], "test.rules:4");
  EXPECT_EQ(item["branches"], 2);
  EXPECT_EQ(item["covered_branches"], 1);
  ASSERT_EQ(item["uncovered"].size(), 1u);
  EXPECT_EQ(item["uncovered"][0]["place"], "test.rules:7:21");
  EXPECT_EQ(item["uncovered"][0]["text"], "x + 1");
  EXPECT_EQ(item["uncovered"][0]["kind"], "branch");
}

}  // namespace
}  // namespace cleave
