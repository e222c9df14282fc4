#include "testing/mutate/merge_mutations.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "testing/run_shard.h"

namespace cleave {

absl::StatusOr<MutationReport> MergeMutationReports(
    std::vector<NamedMutations> shards) {
  std::vector<NamedShard> parts;
  for (const NamedMutations& one : shards) {
    if (!one.report.shard.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, " is the report of no shard"));
    }
    parts.push_back({one.name, *one.report.shard});
  }
  CLEAVE_RETURN_IF_ERROR(CheckAllShards(parts));
  const std::map<std::string, std::string>& run = parts.front().shard.run;
  const auto wanted = run.find(kCountOfRun);
  int count = 0;
  if (wanted == run.end() || !absl::SimpleAtoi(wanted->second, &count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts.front().name, ": its run has no number `", kCountOfRun, "`"));
  }
  MutationReport merged;
  merged.seed = shards.front().report.seed;
  merged.mutations = shards.front().report.mutations;
  // By the order in which they were drawn.
  std::map<int64_t, MutantReport> mutants;
  std::map<int64_t, RejectedMutant> rejected;
  for (NamedMutations& one : shards) {
    if (one.report.seed != merged.seed ||
        one.report.mutations != merged.mutations) {
      return absl::InvalidArgumentError(absl::StrCat(
          one.name, ": its seed and its mutations are not those of its run"));
    }
    merged.seconds += one.report.seconds;
    for (MutantReport& mutant : one.report.mutants) {
      const int64_t number = mutant.number;
      mutants[number] = std::move(mutant);
    }
    for (RejectedMutant& mutant : one.report.rejected) {
      const int64_t number = mutant.number;
      rejected[number] = std::move(mutant);
    }
  }
  int counted = 0;
  const auto drawn = static_cast<int64_t>(mutants.size() + rejected.size());
  for (int64_t number = 0; number < drawn; ++number) {
    const auto bad = rejected.find(number);
    if (bad != rejected.end()) {
      merged.rejected.push_back(std::move(bad->second));
      continue;
    }
    const auto good = mutants.find(number);
    if (good == mutants.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mutant number ", number, " is in none of these shards"));
    }
    counted += good->second.fate != MutantFate::kProvedEquivalent;
    merged.mutants.push_back(std::move(good->second));
    if (count > 0 && counted == count) break;
  }
  return merged;
}

}  // namespace cleave
