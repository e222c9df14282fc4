// RunShard: which part of a run a report is of. The reports of all parts are
// merged to that of the run, so each says what it is a part of.
//
//   RunShard shard;
//   shard.number = 2;
//   shard.shards = 3;
//   shard.run = {{"verb", "check"}, {"seed", "1"}, {"rules", "9f2c.."}};
//
// In JSON: {"number": 2, "of": 3, "complete": true, "failures": [],
// "run": {"rules": "9f2c..", "seed": "1", "verb": "check"}}.

#ifndef CLEAVE_TESTING_RUN_SHARD_H_
#define CLEAVE_TESTING_RUN_SHARD_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace cleave {

struct JsonNode;  // json_node.h

struct RunShard {
  int number = 1;  // from 1
  int shards = 1;
  // All that the report rests on besides its part: verb, flags, rules, engine.
  // The same in all parts.
  std::map<std::string, std::string> run;
  // Nothing of the part is left: no interrupt ended it.
  bool complete = true;
  // Lines on what failed besides what the report has.
  std::vector<std::string> failures;
};

// The member of a shard's report that has it.
inline constexpr char kShardMember[] = "shard";

nlohmann::json ShardJson(const RunShard& shard);

// `report` is the whole of a report. InvalidArgument, with the place, where it
// is that of no shard.
absl::StatusOr<RunShard> ReadRunShard(const JsonNode& report);

struct NamedShard {
  std::string name;  // of the file, for messages
  RunShard shard;
};

// Whether these are all parts of one run. InvalidArgument where one is missing,
// there twice, incomplete, or of another run, which says what differs.
absl::Status CheckAllShards(const std::vector<NamedShard>& shards);

}  // namespace cleave

#endif  // CLEAVE_TESTING_RUN_SHARD_H_
