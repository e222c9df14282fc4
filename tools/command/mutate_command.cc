// mutate: is the checker worth its verdicts? Rules made wrong in small ways.

#include "tools/command/mutate_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "testing/mutate/mutate.h"
#include "tools/command/command_line.h"
#include "tools/command/interrupt.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

// Where the output is no terminal.
constexpr int kDefaultWidth = 80;
// Mutants behind which a line says how far it is, where there is no terminal.
constexpr int kMutantsPerLine = 100;

struct MutateFlags {
  std::vector<std::string> paths;
  std::string ops = "*";
  uint64_t seed = 1;
  int count = 300;
  int jobs = 0;
  std::string shard;
  std::string json;
};

// What is done, for a report of that alone.
struct DoneSoFar {
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::mutex mutex;
  MutationReport report;
};

int TerminalWidth() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kDefaultWidth;
  }
  return size.ws_col;
}

// `1/4`: the first of four.
std::optional<std::pair<int, int>> ParseShard(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  int shard = 0;
  int shards = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shard) ||
      !absl::SimpleAtoi(parts[1], &shards) || shard < 1 || shard > shards) {
    return std::nullopt;
  }
  return std::make_pair(shard, shards);
}

void ShowMutant(const MutantReport& mutant, const MutationReport& so_far,
                const MutateFlags& flags) {
  const int killed = so_far.Count(MutantFate::kKilled);
  const int survived = so_far.Count(MutantFate::kSurvived);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (mutant.fate == MutantFate::kSurvived) {
    ShowProgress("");
    std::cerr << "survived: " << mutant.place << " " << mutant.rule << ", "
              << MutationOperatorName(mutant.op) << "\n";
  }
  const std::string line =
      absl::StrCat("[", killed + survived, flags.count > 0 ? "/" : "",
                   flags.count > 0 ? absl::StrCat(flags.count) : "", "] ",
                   killed, " killed, ", survived, " survived; ", mutant.rule);
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
  options.count = flags.count;
  options.ops = flags.ops;
  options.files = loaded.sources;
  options.jobs = flags.jobs;
  if (!flags.shard.empty()) {
    const auto [shard, shards] = *ParseShard(flags.shard);
    options.shard = shard - 1;
    options.shards = shards;
  }
  options.stop = [] { return Interrupted().load(); };
  options.progress = [&](const MutantReport& mutant) {
    {
      const std::lock_guard<std::mutex> lock(done_so_far.mutex);
      MutationReport& report = done_so_far.report;
      if (mutant.fate == MutantFate::kRejected) {
        ++report.rejected;
      } else {
        report.mutants.push_back(mutant);
      }
    }
    ShowMutant(mutant, done_so_far.report, flags);
  };
  return options;
}

int Print(const MutationReport& report, const MutateFlags& flags) {
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
    Print(done_so_far.report, flags);
  });
  const absl::StatusOr<MutationReport> report =
      MutateRules(loaded->texts, ToOptions(flags, *loaded, done_so_far));
  InterruptsEnd();
  ShowProgress("");
  if (!report.ok()) return Complain(report.status());
  return Print(*report, flags);
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
  verb.Add("--count", flags->count,
           "Mutants that the loader and L1 accept, after which it ends; 0 for "
           "all that there are")
      .Between(0, 1'000'000)
      .ShowDefault();
  verb.Add("--jobs", flags->jobs,
           "Mutants that are checked at once (one per core)")
      .Positive();
  verb.Add("--shard", flags->shard,
           "2/4: the second of four parts of the mutants")
      .Check([](const std::string& text) {
        return ParseShard(text) ? std::string()
                                : text + " is no shard as 2/4 is one";
      });
  verb.Add("--json", flags->json,
           "Write the report to this file: {\"seed\", \"totals\": {\"killed\", "
           "\"survived\", \"proved_equivalent\", \"allclose_killed\"}, "
           "\"operators\", \"layers\", \"survivors\": [{\"rule\", "
           "\"operator\", \"place\", \"before\", \"after\", \"text\", "
           "\"verdicts\", \"allclose_kills\"}], ..}");
  verb.Runs([flags] { return Mutate(*flags); });
}

}  // namespace cleave
