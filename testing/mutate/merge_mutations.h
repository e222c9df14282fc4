// The reports of the shards of a run of mutants, to the report of the whole.
//
//   std::vector<NamedMutations> shards;  // of `cleave mutate --shard I/3
//   --json` absl::StatusOr<MutationReport> report =
//       MergeMutationReports(std::move(shards));
//
// A run ends where enough of its mutants count, in the order in which they are
// drawn. A shard does not know of the others: it goes on until so many of its
// own count, and what the run would not have drawn is left out here.

#ifndef CLEAVE_TESTING_MUTATE_MERGE_MUTATIONS_H_
#define CLEAVE_TESTING_MUTATE_MERGE_MUTATIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "testing/mutate/mutate.h"

namespace cleave {

struct JsonNode;  // testing/json_node.h

// The report of a shard that MutationReport::ToJson wrote; of killed mutants it
// has what tables count. Strict: InvalidArgument, with the place, for anything
// else.
absl::StatusOr<MutationReport> ReadMutationShard(const JsonNode& root);

struct NamedMutations {
  std::string name;  // of the file, for messages
  MutationReport report;
};

// The member of a shard's run with its MutateOptions::count.
inline constexpr char kCountOfRun[] = "count";

// The seconds are those of all shards together. InvalidArgument where these are
// not all shards of one run, complete (see CheckAllShards of run_shard.h), or
// do not fit each other.
absl::StatusOr<MutationReport> MergeMutationReports(
    std::vector<NamedMutations> shards);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_MERGE_MUTATIONS_H_
