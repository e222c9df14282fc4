#include "testing/run_shard.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/json_node.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

RunShard Shard(int number, int shards) {
  RunShard shard;
  shard.number = number;
  shard.shards = shards;
  shard.run = {{"seed", "1"}, {"verb", "check"}};
  return shard;
}

absl::Status Read(const nlohmann::json& report) {
  return ReadRunShard(JsonNode{report, "a.json: "}).status();
}

TEST(RunShard, IsReadAsItIsWritten) {
  RunShard shard = Shard(2, 3);
  shard.complete = false;
  shard.failures = {"one \"line\""};
  const nlohmann::json report = {{kShardMember, ShardJson(shard)}};
  ASSERT_OK_AND_ASSIGN(const RunShard read,
                       ReadRunShard(JsonNode{report, "a.json: "}));
  EXPECT_EQ(read.number, 2);
  EXPECT_EQ(read.shards, 3);
  EXPECT_EQ(read.run, shard.run);
  EXPECT_FALSE(read.complete);
  EXPECT_EQ(read.failures, shard.failures);
}

TEST(RunShard, ReadingNamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(Read(nlohmann::json::array()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.json: not an object")));
  EXPECT_THAT(Read(nlohmann::json::object()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the report of no shard")));
  const nlohmann::json good = ShardJson(Shard(2, 3));
  for (const auto& [member, value, message] :
       std::vector<std::tuple<std::string, nlohmann::json, std::string>>{
           {"number", 0, "there is no shard 0/3"},
           {"number", 4, "there is no shard 4/3"},
           {"of", int64_t{1} << 40, "there is no shard 2/1099511627776"},
           {"number", -1, "/shard/number: not an integer >= 0"},
           {"complete", 1, "/shard/complete: not true or false"},
           {"run", {{"seed", 1}}, "/shard/run/seed: not a string"},
           {"more", 1, "unknown member `more`"}}) {
    nlohmann::json bad = good;
    bad[member] = value;
    EXPECT_THAT(
        Read({{kShardMember, bad}}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  nlohmann::json less = good;
  less.erase("run");
  EXPECT_THAT(Read({{kShardMember, less}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/shard: the member `run` is missing")));
}

TEST(RunShard, AllShardsOfOneRunAreThereOnce) {
  const NamedShard first = {"a", Shard(1, 3)};
  const NamedShard second = {"b", Shard(2, 3)};
  const NamedShard third = {"c", Shard(3, 3)};
  EXPECT_OK(CheckAllShards({first, second, third}));
  EXPECT_OK(CheckAllShards({third, first, second}));
  const auto expect = [](const std::vector<NamedShard>& shards,
                         const std::string& message) {
    EXPECT_THAT(CheckAllShards(shards),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  expect({}, "no shard to merge");
  expect({first, third}, "a shard is missing: 2/3");
  expect({second}, "shards are missing: 1/3, 3/3");
  expect({{"a", Shard(1, 100)}},
         "shards are missing: 2/100, 3/100, 4/100, 5/100, 6/100, 7/100, 8/100, "
         "9/100, 10/100, 11/100, ..");
  expect({first, second, third, {"d", Shard(2, 3)}},
         "d and b are both shard 2/3");
  expect({first, {"d", Shard(2, 4)}},
         "d and a are of two divisions of the run: shards 2/4 and 1/3");
  NamedShard other = second;
  other.shard.run["seed"] = "2";
  expect({first, other, third},
         "b and a are of two runs: `seed` is `2` and `1`");
  other.shard.run.erase("seed");
  expect({first, other, third},
         "b and a are of two runs: `seed` is absent and `1`");
  NamedShard cut = third;
  cut.shard.complete = false;
  expect({first, second, cut}, "c is not complete: shard 3/3 was interrupted");
}

}  // namespace
}  // namespace cleave
