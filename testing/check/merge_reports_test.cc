// The reports of shards, merged, are the report of the whole.

#include "testing/check/merge_reports.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/check/check_testing.h"
#include "testing/json_node.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// One op of each kind of verdict; branches of a def that one op takes, that
// another takes, that both take, and that none does.
constexpr char kRules[] = R"(language 1

def chosen(x, by) =
  if by == 0 then x
  else if by == 1 then x + 1
  else if by == 2 then x + 2
  else x + by

op still(x: T[S..]) -> T[S..]
  where T: float
  error shape "too many axes" if len(S) > 40
  spec y[s..] = x[s..] * 1
{
  chosen(x, 0)
}

op moved(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
{
  chosen(x, 1)
}

op wrong(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 3
{
  chosen(x, 2)
}

op same(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = abs(x[s..])
{
  abs(x)
}

op unspecified(x: f32[n]) -> f32[n] = x * 2

rewrite neg_neg: -(-x) => x
)";

CheckOptions Options() {
  CheckOptions options;
  options.sources = {"test.rules"};
  options.coverage = true;
  return options;
}

// The times are the machine's.
CheckReport WithoutSeconds(CheckReport report) {
  for (OpReport& op : report.ops) op.seconds = 0;
  return report;
}

// The report of a shard, as a file has it.
std::string TextOf(const std::shared_ptr<const RuleSet>& rules, int shard,
                   int shards) {
  CheckOptions options = Options();
  options.shard = shard;
  options.shards = shards;
  CheckReport report = WithoutSeconds(CheckedRules(rules, options));
  report.shard = RunShard();
  report.shard->number = shard;
  report.shard->shards = shards;
  return report.ToJson();
}

absl::StatusOr<CheckReport> Read(const std::string& text) {
  const auto json = ParseJson(text, "a.json");
  EXPECT_OK(json);
  return ReadCheckReport(JsonNode{*json, "a.json: "});
}

absl::StatusOr<CheckReport> Merge(const std::vector<std::string>& texts) {
  std::vector<NamedReport> shards;
  for (const std::string& text : texts) {
    const absl::StatusOr<CheckReport> report = Read(text);
    if (!report.ok()) return report.status();
    shards.push_back({absl::StrCat(shards.size(), ".json"), *report});
  }
  return MergeCheckReports(std::move(shards));
}

TEST(MergeReports, OfAllShardsAreTheReportOfTheWhole) {
  const std::shared_ptr<const RuleSet> rules = LoadText("test.rules", kRules);
  ASSERT_NE(rules, nullptr);
  const CheckReport whole = WithoutSeconds(CheckedRules(rules, Options()));
  // There are verdicts and branches to lose.
  EXPECT_EQ(whole.Count(VerdictKind::kDisagrees), 1) << whole.ToString();
  EXPECT_EQ(whole.Count(VerdictKind::kNotIndependent), 2) << whole.ToString();
  EXPECT_EQ(whole.ops.size(), 6u);
  for (const int shards : {1, 2, 3, 11}) {
    std::vector<std::string> texts;
    for (int shard = shards; shard >= 1; --shard) {
      texts.push_back(TextOf(rules, shard, shards));
    }
    ASSERT_OK_AND_ASSIGN(const CheckReport merged, Merge(texts));
    EXPECT_EQ(merged.ToJson(), whole.ToJson()) << shards;
    EXPECT_EQ(merged.ToString(), whole.ToString()) << shards;
    EXPECT_EQ(CoverageText(merged.coverage), CoverageText(whole.coverage));
  }
}

TEST(MergeReports, ShardsHaveEachOpOnce) {
  const std::shared_ptr<const RuleSet> rules = LoadText("test.rules", kRules);
  ASSERT_NE(rules, nullptr);
  std::vector<size_t> sizes;
  for (int shard = 1; shard <= 4; ++shard) {
    CheckOptions options = Options();
    options.shard = shard;
    options.shards = 4;
    const auto ops = OpsToCheck(*rules, options);
    ASSERT_OK(ops);
    sizes.push_back(ops->size());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2, 1, 1}));
  for (const auto& [shard, shards] :
       {std::pair(0, 3), std::pair(4, 3), std::pair(1, 0)}) {
    CheckOptions options = Options();
    options.shard = shard;
    options.shards = shards;
    EXPECT_THAT(CheckRules(rules, options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("there is no shard")));
  }
}

// A small report without a check behind it.
CheckReport Small(int shard) {
  CheckReport report;
  OpReport op;
  op.op = absl::StrCat("op", shard);
  op.place = "a.rules:1";
  op.certified = Certified{"own", "2026-11-23"};
  Verdict& form = op.layers[Layer::kForm];
  form.kind = VerdictKind::kAgrees;
  form.strength = Strength::kProved;
  Counterexample example;
  example.call = "op(x: f32[1])";
  example.ulp = std::numeric_limits<double>::infinity();
  example.bound = 4;
  op.layers[Layer::kReals] = Verdict::Disagrees(std::move(example));
  op.layers[Layer::kReals].worst_ulp = std::numeric_limits<double>::infinity();
  op.layers[Layer::kEdges] = Verdict::Inconclusive("out of time");
  op.layers[Layer::kTypes] = Verdict::NotChecked("why \xff");
  report.ops.push_back(op);
  report.shard = RunShard();
  report.shard->number = shard;
  report.shard->shards = 2;
  return report;
}

// The parts of a sweep, from wherever they come, are one row, behind the rules.
TEST(MergeReports, PartsOfASweepAreOneRow) {
  std::vector<NamedReport> shards;
  for (int shard = 1; shard <= 2; ++shard) {
    CheckReport report;
    for (const std::string& name :
         {absl::StrCat("op", shard),
          absl::StrCat("sweep op f32 0", shard, "/64"),
          absl::StrCat("sweep op f32 0", shard + 2, "/64")}) {
      OpReport op;
      op.op = name;
      Verdict& verdict = op.layers[Layer::kRounding];
      verdict.kind = VerdictKind::kAgrees;
      verdict.strength = Strength::kExhaustive;
      verdict.samples = 500;
      verdict.worst_ulp = shard;
      report.ops.push_back(std::move(op));
    }
    report.shard = RunShard();
    report.shard->number = shard;
    report.shard->shards = 2;
    shards.push_back({absl::StrCat(shard, ".json"), std::move(report)});
  }
  ASSERT_OK_AND_ASSIGN(const CheckReport merged,
                       MergeCheckReports(std::move(shards)));
  std::vector<std::string> names;
  for (const OpReport& op : merged.ops) names.push_back(op.op);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "op1", "op2", "sweep op f32 01/64", "sweep op f32 02/64",
                       "sweep op f32 03/64", "sweep op f32 04/64"}));
  const std::string text = merged.ToString();
  EXPECT_THAT(text, HasSubstr("\nsweep op f32 (4 of 64)"));
  EXPECT_THAT(text, HasSubstr("agrees 2000 2 ulp\n"));
  EXPECT_THAT(text, HasSubstr("checked 2 rules, 4 parts of sweeps, seed 1"));
}

TEST(MergeReports, ReadWhatWasWritten) {
  const std::string text = Small(1).ToJson();
  ASSERT_OK_AND_ASSIGN(const CheckReport read, Read(text));
  EXPECT_EQ(read.ToJson(), text);
}

TEST(MergeReports, ReadingNamesThePlaceOfWhatIsWrong) {
  const std::string text = Small(1).ToJson();
  for (const auto& [before, after, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\"seed\": 1", "\"seed\": -1", "/seed: not an integer"},
           {"\"agrees\"", "\"agree\"",
            "/ops/op1/layers/L0/verdict: there is no verdict `agree`"},
           {"\"PROVED\"", "\"SURE\"", "there is no strength `SURE`"},
           {"\"L1\"", "\"L11\"", "/ops/op1/layers: there is no layer `L11`"},
           {"\"counterexample\"", "\"example\"", "unknown member `example`"},
           {"\"got\": \"\",", "", "the member `got` is missing"},
           {"\"loose_claim\": false", "\"loose_claim\": true",
            "a loose claim without L3"},
           {"\"disagrees\": 1", "\"disagrees\": 0",
            "/totals: not the totals of the ops"}}) {
    const std::string edited = absl::StrReplaceAll(text, {{before, after}});
    ASSERT_TRUE(edited != text) << before;
    EXPECT_THAT(Read(edited), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr(message)));
  }
}

TEST(MergeReports, RefusesShardsThatDoNotFit) {
  const auto merge = [](const CheckReport& a, const CheckReport& b) {
    return MergeCheckReports({{"a", a}, {"b", b}}).status();
  };
  const CheckReport first = Small(1);
  EXPECT_OK(merge(first, Small(2)));
  EXPECT_THAT(merge(first, first),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("b and a are both shard 1/2")));
  CheckReport other = Small(2);
  other.ops[0].op = "op1";
  EXPECT_THAT(merge(first, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("b and a both have `op1`")));
  other = Small(2);
  other.seed = 2;
  EXPECT_THAT(merge(first, other), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("its seed")));
  other = Small(2);
  other.coverage.emplace_back();
  EXPECT_THAT(merge(first, other), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("its coverage is of 1")));
  other = Small(2);
  other.shard.reset();
  EXPECT_THAT(merge(first, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("b is the report of no shard")));
}

}  // namespace
}  // namespace cleave
