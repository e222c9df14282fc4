// mutate: is the checker worth its verdicts? Rules made wrong in small ways.

#include "tools/command/mutate_command.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/files/file.h"
#include "testing/certificate/environment.h"
#include "testing/mutate/merge_mutations.h"
#include "testing/mutate/mutate.h"
#include "testing/run_shard.h"
#include "tools/command/command_line.h"
#include "tools/command/interrupt.h"
#include "tools/command/load.h"
#include "tools/command/shard_flag.h"
#include "tools/command/terminal.h"

namespace cleave {
namespace {

// Mutants behind which a line says how far it is, where there is no terminal.
constexpr int kMutantsPerLine = 100;

struct MutateFlags {
  std::vector<std::string> paths;
  std::string ops = "*";
  uint64_t seed = 1;
  int count = 300;
  int64_t draws = 0;
  int jobs = 0;
  std::string shard;
  std::string json;
};

// 0: all that are drawn.
int WantedCount(const MutateFlags& flags) {
  return flags.draws > 0 ? 0 : flags.count;
}

// The part of a run that is done, for a report of that alone.
struct DoneSoFar {
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::mutex mutex;
  MutationReport report;
};

void ShowMutant(const MutantReport& mutant, const MutationReport& so_far,
                const MutateFlags& flags) {
  const int killed = so_far.Count(MutantFate::kKilled);
  const int survived = so_far.Count(MutantFate::kSurvived);
  const int count = WantedCount(flags);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (mutant.fate == MutantFate::kSurvived) {
    ShowProgress("");
    std::cerr << "survived: " << mutant.place << " " << mutant.rule << ", "
              << MutationOperatorName(mutant.op) << "\n";
  }
  const std::string line =
      absl::StrCat("[", killed + survived, count > 0 ? "/" : "",
                   count > 0 ? absl::StrCat(count) : "", "] ", killed,
                   " killed, ", survived, " survived; ", mutant.rule);
  if (terminal) {
    ShowProgress(line);
  } else if (mutant.fate != MutantFate::kRejected &&
             (killed + survived) % kMutantsPerLine == 0) {
    std::cerr << line << "\n";
  }
}

MutateOptions ToOptions(const MutateFlags& flags, const LoadedRules& loaded,
                        DoneSoFar& done_so_far) {
  MutateOptions options;
  options.seed = flags.seed;
  options.count = WantedCount(flags);
  options.draws = flags.draws;
  options.ops = flags.ops;
  options.files = loaded.sources;
  options.jobs = flags.jobs;
  const auto [shard, shards] = ParsedShard(flags.shard);
  options.shard = shard - 1;
  options.shards = shards;
  options.stop = [] { return Interrupted().load(); };
  options.progress = [&](const MutantReport& mutant) {
    {
      const std::lock_guard<std::mutex> lock(done_so_far.mutex);
      MutationReport& report = done_so_far.report;
      if (mutant.fate == MutantFate::kRejected) {
        report.rejected.push_back({mutant.number, mutant.refuted});
      } else {
        report.mutants.push_back(mutant);
      }
    }
    ShowMutant(mutant, done_so_far.report, flags);
  };
  return options;
}

// The shard, with the settings that the shards of one run have in common.
RunShard ShardOf(const MutateFlags& flags, const LoadedRules& loaded) {
  RunShard shard;
  std::tie(shard.number, shard.shards) = ParsedShard(flags.shard);
  shard.run = {
      {"verb", "mutate"},
      {"engine", ThisEnvironment().engine},
      {"rules", HashOfTexts(loaded.texts)},
      {"mutated", absl::StrJoin(loaded.sources, " ")},
      {"ops", flags.ops},
      {"seed", absl::StrCat(flags.seed)},
      {kCountOfRun, absl::StrCat(WantedCount(flags))},
      {"draws", absl::StrCat(flags.draws)},
  };
  return shard;
}

int Print(MutationReport& report, const MutateFlags& flags,
          const LoadedRules& loaded) {
  if (!flags.shard.empty()) {
    report.shard = ShardOf(flags, loaded);
    report.shard->complete = !Interrupted();
  }
  std::cout << report.ToString(TerminalWidth());
  if (!flags.json.empty()) {
    const absl::Status written =
        WriteFileAtomically(flags.json, report.ToJson());
    if (!written.ok()) return Complain(written);
  }
  if (Interrupted()) Complain("interrupted: not every mutant was checked");
  return kExitOk;
}

int Mutate(const MutateFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  DoneSoFar done_so_far;
  done_so_far.report.seed = flags.seed;
  SetLateReport([&] {
    const std::lock_guard<std::mutex> lock(done_so_far.mutex);
    done_so_far.report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                      done_so_far.start)
            .count();
    Print(done_so_far.report, flags, *loaded);
  });
  absl::StatusOr<MutationReport> report =
      MutateRules(loaded->texts, ToOptions(flags, *loaded, done_so_far));
  InterruptsEnd();
  ShowProgress("");
  if (!report.ok()) return Complain(report.status());
  return Print(*report, flags, *loaded);
}

}  // namespace

void AddMutate(CommandLine& line) {
  Verb verb = line.AddVerb(
      "mutate",
      "Make rules wrong in small ways, and count how many of these mutants the "
      "checker refutes.");
  auto flags = std::make_shared<MutateFlags>();
  verb.Add("PATH", flags->paths,
           "Rule files, or folders of them, whose rules to mutate (the shipped "
           "ones)");
  verb.Add("--ops", flags->ops,
           "Only rules that this glob matches; `jvp exp` for the derivative of "
           "a primitive, `def left` and `rewrite neg_neg` for those");
  verb.Add("--seed", flags->seed, "Draws other mutants and other samples (1)");
  const Option count =
      verb.Add("--count", flags->count,
               "Mutants that the loader and L1 accept, after which it ends; 0 "
               "for all that there are. A shard goes on until so many of its "
               "own count, since it does not know of the others")
          .Between(0, 1'000'000)
          .ShowDefault();
  verb.Add("--draws", flags->draws,
           "In place of --count: mutants, whether they count or not, after "
           "which it ends; shards have equal parts of them")
      .Positive()
      .Excludes(count);
  verb.Add("--jobs", flags->jobs,
           "Mutants that are checked at once (one per core)")
      .Positive();
  AddShardFlag(verb, flags->shard, "mutants");
  verb.Add("--json", flags->json,
           "Write the report to this file: {\"seed\", \"totals\": {\"killed\", "
           "\"survived\", \"proved_equivalent\", \"allclose_killed\"}, "
           "\"operators\", \"layers\", \"survivors\": [{\"rule\", "
           "\"operator\", \"place\", \"before\", \"after\", \"text\", "
           "\"verdicts\", \"allclose_kills\"}], ..}");
  verb.Runs([flags] { return Mutate(*flags); });
}

}  // namespace cleave
