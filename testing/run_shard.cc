#include "testing/run_shard.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "testing/json_node.h"

namespace cleave {
namespace {

// `2/3`.
std::string Name(const RunShard& shard) {
  return absl::StrCat(shard.number, "/", shard.shards);
}

// The value of a member of a run, for messages.
std::string Quoted(const std::map<std::string, std::string>& run,
                   const std::string& member) {
  const auto it = run.find(member);
  return it == run.end() ? "absent" : absl::StrCat("`", it->second, "`");
}

absl::Status CheckSameRun(const NamedShard& first, const NamedShard& other) {
  std::set<std::string> others;
  for (const auto& [member, value] : first.shard.run) others.insert(member);
  for (const auto& [member, value] : other.shard.run) others.insert(member);
  others.erase("verb");
  // Where the verbs differ, the rest differs for that.
  std::vector<std::string> members = {"verb"};
  members.insert(members.end(), others.begin(), others.end());
  for (const std::string& member : members) {
    const std::string a = Quoted(first.shard.run, member);
    const std::string b = Quoted(other.shard.run, member);
    if (a == b) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(other.name, " and ", first.name, " are of two runs: `",
                     member, "` is ", b, " and ", a));
  }
  if (first.shard.shards == other.shard.shards) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(other.name, " and ", first.name,
                   " are of two divisions of the run: shards ",
                   Name(other.shard), " and ", Name(first.shard)));
}

}  // namespace

nlohmann::json ShardJson(const RunShard& shard) {
  return {{"number", shard.number},
          {"of", shard.shards},
          {"complete", shard.complete},
          {"failures", shard.failures},
          {"run", shard.run}};
}

absl::StatusOr<RunShard> ReadRunShard(const JsonNode& report) {
  CLEAVE_RETURN_IF_ERROR(report.CheckObject());
  if (!report.Has(kShardMember)) {
    return report.Wrong(
        "the report of no shard: it has all of its run (`--shard 1/3` writes "
        "that of a part)");
  }
  const JsonNode node = report[kShardMember];
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"number", "of", "complete", "failures", "run"}));
  RunShard shard;
  CLEAVE_ASSIGN_OR_RETURN(const int64_t number, node["number"].Count());
  CLEAVE_ASSIGN_OR_RETURN(const int64_t shards, node["of"].Count());
  if (number < 1 || number > shards ||
      shards > std::numeric_limits<int>::max()) {
    return node.Wrong(absl::StrCat("there is no shard ", number, "/", shards));
  }
  shard.number = static_cast<int>(number);
  shard.shards = static_cast<int>(shards);
  CLEAVE_ASSIGN_OR_RETURN(shard.complete, node["complete"].Bool());
  CLEAVE_ASSIGN_OR_RETURN(shard.failures, node["failures"].Strings());
  CLEAVE_ASSIGN_OR_RETURN(shard.run, node["run"].StringMap());
  return shard;
}

absl::Status CheckAllShards(const std::vector<NamedShard>& shards) {
  if (shards.empty()) return absl::InvalidArgumentError("no shard to merge");
  const NamedShard& first = shards.front();
  std::map<int, const NamedShard*> found;
  for (const NamedShard& one : shards) {
    CLEAVE_RETURN_IF_ERROR(CheckSameRun(first, one));
    const auto [it, is_new] = found.emplace(one.shard.number, &one);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, " and ", it->second->name, " are both shard ",
                       Name(one.shard)));
    }
    if (!one.shard.complete) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, " is not complete: shard ", Name(one.shard),
                       " was interrupted"));
    }
  }
  std::vector<std::string> missing;
  for (int number = 1; number <= first.shard.shards; ++number) {
    if (found.count(number) != 0) continue;
    missing.push_back(absl::StrCat(number, "/", first.shard.shards));
    if (missing.size() == 10) break;
  }
  if (missing.empty()) return absl::OkStatus();
  const size_t all = first.shard.shards - found.size();
  if (all > missing.size()) missing.push_back("..");
  return absl::InvalidArgumentError(
      absl::StrCat(all == 1 ? "a shard is missing: " : "shards are missing: ",
                   absl::StrJoin(missing, ", ")));
}

}  // namespace cleave
