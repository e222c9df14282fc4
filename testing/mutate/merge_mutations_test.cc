// The reports of shards, merged, are the report of the whole.

#include "testing/mutate/merge_mutations.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/json_node.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// Mutants that are killed, that live, that mean the same, and of a rule that is
// wrong as it is.
constexpr char kRules[] = R"(language 1

op excess(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = expm1(x)

op twice(x: f32[n]) -> f32[n] = x * 2

op wrong(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
  accuracy T within 1 ulp
  = x - 1

op total(x: T[n]) -> T[1]
  where T: float
  spec y[j < 1] = sum[i](x[i])
  accuracy T within n eps * sum[i](abs(x[i]))
  = reduce_sum(x, axes: [0], keepdims: true)
)";

const std::vector<NamedSource>& Sources() {
  static const auto* const sources = [] {
    auto* list = new std::vector<NamedSource>();
    for (const char* path : {"rules/derivative/arithmetic.rules",
                             "rules/derivative/exponential.rules",
                             "rules/derivative/special.rules",
                             "rules/simplify/arithmetic.rules"}) {
      const absl::StatusOr<std::string> shipped = ReadFile(path);
      EXPECT_OK(shipped);
      list->push_back({path, shipped.value_or(""), false});
    }
    list->push_back({"test.rules", kRules, false});
    return list;
  }();
  return *sources;
}

struct Ends {
  int count = 0;
  int64_t draws = 0;
};

// The times are the machine's.
MutationReport RunShardOf(Ends ends, int shard, int shards) {
  MutateOptions options;
  options.files = {"test.rules"};
  options.count = ends.count;
  options.draws = ends.draws;
  options.shard = shard - 1;
  options.shards = shards;
  absl::StatusOr<MutationReport> report = MutateRules(Sources(), options);
  EXPECT_OK(report);
  if (!report.ok()) return MutationReport();
  report->seconds = 0;
  for (MutantReport& mutant : report->mutants) mutant.seconds = 0;
  return *std::move(report);
}

std::string TextOf(Ends ends, int shard, int shards) {
  MutationReport report = RunShardOf(ends, shard, shards);
  report.shard = RunShard();
  report.shard->number = shard;
  report.shard->shards = shards;
  report.shard->run = {{kCountOfRun, absl::StrCat(ends.count)}};
  return report.ToJson();
}

absl::StatusOr<MutationReport> Read(const std::string& text) {
  const auto json = ParseJson(text, "a.json");
  EXPECT_OK(json);
  return ReadMutationShard(JsonNode{*json, "a.json: "});
}

TEST(MergeMutations, OfAllShardsAreTheReportOfTheWhole) {
  constexpr int kShards = 3;
  for (const Ends ends : {Ends{}, Ends{7, 0}, Ends{0, 20}}) {
    const MutationReport whole = RunShardOf(ends, 1, 1);
    std::vector<NamedMutations> reports;
    for (int shard = kShards; shard >= 1; --shard) {
      ASSERT_OK_AND_ASSIGN(MutationReport read,
                           Read(TextOf(ends, shard, kShards)));
      reports.push_back({absl::StrCat(shard, ".json"), std::move(read)});
    }
    ASSERT_OK_AND_ASSIGN(const MutationReport merged,
                         MergeMutationReports(std::move(reports)));
    EXPECT_TRUE(merged.ToJson() == whole.ToJson());
    EXPECT_EQ(merged.ToString(80), whole.ToString(80));
    if (ends.count + ends.draws > 0) continue;
    // There is one of each kind to lose.
    for (const MutantFate fate : {MutantFate::kKilled, MutantFate::kSurvived,
                                  MutantFate::kProvedEquivalent}) {
      EXPECT_GT(whole.Count(fate), 0) << static_cast<int>(fate);
    }
    EXPECT_EQ(whole.Refuted(), std::vector<std::string>{"wrong"});
  }
}

TEST(MergeMutations, ReadingNamesThePlaceOfWhatIsWrong) {
  const std::string text = TextOf({0, 24}, 1, 2);
  for (const auto& [before, after, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\"number\": 2,", "\"number\": 4,",
            "/drawn/1/number: the shard's next is number 2"},
           {"\"fate\": \"rejected\"", "\"fate\": \"gone\"",
            "there is no fate `gone`"},
           {"\"layer\": \"L2\"", "\"layer\": \"L22\"",
            "there is no layer `L22`"},
           {"\"part\": \"value\"", "\"part\": \"all\"",
            "there is no part `all`"},
           {"\"fate\": \"survived\"", "\"fate\": \"rejected\"",
            "/drawn: more live than were drawn"},
           {"\"fate\": \"rejected\"\n", "\"fate\": \"survived\"\n",
            "the list of those that live ends before it"},
           {"\"shard\":", "\"part\":", "the report of no shard"}}) {
    const std::string edited = absl::StrReplaceAll(text, {{before, after}});
    ASSERT_TRUE(edited != text) << before;
    EXPECT_THAT(Read(edited), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr(message)));
  }
}

TEST(MergeMutations, RefusesShardsThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const MutationReport first, Read(TextOf({0, 10}, 1, 2)));
  ASSERT_OK_AND_ASSIGN(const MutationReport second,
                       Read(TextOf({0, 10}, 2, 2)));
  const auto merge = [&](const MutationReport& other) {
    return MergeMutationReports({{"a", first}, {"b", other}}).status();
  };
  EXPECT_OK(merge(second));
  MutationReport other = second;
  other.seed = 2;
  EXPECT_THAT(merge(other), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("b: its seed")));
  other = second;
  other.mutants.pop_back();
  EXPECT_THAT(merge(other), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("is in none of these shards")));
  other = second;
  other.shard->run.clear();
  EXPECT_THAT(merge(other), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("are of two runs")));
}

}  // namespace
}  // namespace cleave
