// The reports of the shards of a check, to the report of the whole.
//
//   std::vector<NamedReport> shards;   // of `cleave check --shard I/3 --json`
//   absl::StatusOr<CheckReport> report = MergeCheckReports(std::move(shards));
//
// The verdicts are those of the shards, in the order in which one run has them.
// A line or a branch is covered where a call of any shard reached it.

#ifndef CLEAVE_TESTING_CHECK_MERGE_REPORTS_H_
#define CLEAVE_TESTING_CHECK_MERGE_REPORTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "testing/check/check.h"

namespace cleave {

struct JsonNode;  // testing/json_node.h

// The report that CheckReport::ToJson wrote, but for error profiles, which
// ToJson leaves out. The ops are in the order of their names. Strict:
// InvalidArgument, with the place, for anything else.
absl::StatusOr<CheckReport> ReadCheckReport(const JsonNode& root);

struct NamedReport {
  std::string name;  // of the file, for messages
  CheckReport report;
};

// InvalidArgument where these are not all shards of one run, complete (see
// CheckAllShards of run_shard.h), or do not fit each other.
absl::StatusOr<CheckReport> MergeCheckReports(std::vector<NamedReport> shards);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_MERGE_REPORTS_H_
