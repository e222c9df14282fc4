// merge: the reports of all shards of a run to the report of the run.

#include "tools/command/merge_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "testing/check/merge_reports.h"
#include "testing/check/rule_coverage.h"
#include "testing/json_node.h"
#include "testing/mutate/merge_mutations.h"
#include "testing/run_shard.h"
#include "tools/command/allow_flag.h"
#include "tools/command/load.h"
#include "tools/command/terminal.h"

namespace cleave {
namespace {

struct MergeFlags {
  std::vector<std::string> reports;
  std::vector<std::string> allowed;
  std::string json;
};

// A report that was read.
struct ReadFileOfShard {
  std::string name;
  nlohmann::json json;
  JsonNode Root() const { return {json, absl::StrCat(name, ": ")}; }
};

absl::StatusOr<std::vector<ReadFileOfShard>> ReadAll(
    const std::vector<std::string>& names) {
  std::vector<ReadFileOfShard> files;
  std::vector<NamedShard> shards;
  for (const std::string& name : names) {
    CLEAVE_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
    CLEAVE_ASSIGN_OR_RETURN(nlohmann::json json, ParseJson(text, name));
    files.push_back({name, std::move(json)});
    CLEAVE_ASSIGN_OR_RETURN(RunShard shard, ReadRunShard(files.back().Root()));
    shards.push_back({name, std::move(shard)});
  }
  // Before the rest is read: a report that an interrupt cut short, or another
  // verb's, is told as such.
  CLEAVE_RETURN_IF_ERROR(CheckAllShards(shards));
  return files;
}

absl::Status WriteJson(const MergeFlags& flags, const std::string& text) {
  return flags.json.empty() ? absl::OkStatus()
                            : WriteFileAtomically(flags.json, text);
}

absl::StatusOr<int> MergeChecks(const std::vector<ReadFileOfShard>& files,
                                const MergeFlags& flags) {
  std::vector<NamedReport> shards;
  std::vector<std::string> failures;
  for (const ReadFileOfShard& file : files) {
    CLEAVE_ASSIGN_OR_RETURN(CheckReport report, ReadCheckReport(file.Root()));
    for (const std::string& failure : report.shard->failures) {
      failures.push_back(failure);
    }
    shards.push_back({file.name, std::move(report)});
  }
  CLEAVE_ASSIGN_OR_RETURN(const CheckReport merged,
                          MergeCheckReports(std::move(shards)));
  std::cout << merged.ToString();
  for (const std::string& failure : failures) std::cout << failure << "\n";
  if (!merged.coverage.empty()) {
    std::cout << "\n" << CoverageText(merged.coverage);
  }
  CLEAVE_RETURN_IF_ERROR(WriteJson(flags, merged.ToJson()));
  return merged.ExitStatus(AllowedKinds(flags.allowed)) != 0 ||
                 !failures.empty()
             ? kExitVerdict
             : kExitOk;
}

absl::StatusOr<int> MergeMutations(const std::vector<ReadFileOfShard>& files,
                                   const MergeFlags& flags) {
  std::vector<NamedMutations> shards;
  for (const ReadFileOfShard& file : files) {
    CLEAVE_ASSIGN_OR_RETURN(MutationReport report,
                            ReadMutationShard(file.Root()));
    shards.push_back({file.name, std::move(report)});
  }
  CLEAVE_ASSIGN_OR_RETURN(const MutationReport merged,
                          MergeMutationReports(std::move(shards)));
  std::cout << merged.ToString(TerminalWidth());
  CLEAVE_RETURN_IF_ERROR(WriteJson(flags, merged.ToJson()));
  return kExitOk;
}

absl::StatusOr<int> MergeFiles(const MergeFlags& flags) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<ReadFileOfShard> files,
                          ReadAll(flags.reports));
  CLEAVE_ASSIGN_OR_RETURN(const RunShard first,
                          ReadRunShard(files.front().Root()));
  const auto verb = first.run.find("verb");
  if (verb != first.run.end() && verb->second == "check") {
    return MergeChecks(files, flags);
  }
  if (verb != first.run.end() && verb->second == "mutate") {
    return MergeMutations(files, flags);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(files.front().name, ": it is of no `check` or `mutate`"));
}

int Merge(const MergeFlags& flags) {
  const absl::StatusOr<int> status = MergeFiles(flags);
  return status.ok() ? *status : Complain(status.status());
}

}  // namespace

void AddMerge(CommandLine& line) {
  Verb verb = line.AddVerb("merge",
                           "Make the reports of all shards of a `check` or a "
                           "`mutate` the one that a "
                           "run without shards writes, and exit as that does.");
  auto flags = std::make_shared<MergeFlags>();
  verb.Add("REPORT", flags->reports,
           "The --json reports of `--shard 1/N` to `--shard N/N`, in any order")
      .Required();
  AddAllowFlag(verb, flags->allowed);
  verb.Add("--json", flags->json, "Write the merged report to this file");
  verb.Runs([flags] { return Merge(*flags); });
}

}  // namespace cleave
