#include "testing/fuzz/differential/campaign.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/check.h"
#include "testing/fuzz/differential/fuzz_case.h"
#include "testing/fuzz/differential/generate.h"
#include "testing/fuzz/differential/interrupt.h"
#include "testing/fuzz/differential/shrink.h"

namespace cleave::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

// Characters of one finding that are printed.
constexpr size_t kPrinted = 3000;

// The counts of all processes of a campaign together, in shared memory.
struct Counters {
  std::atomic<int64_t> functions{0};
  std::atomic<int64_t> rejected{0};
  std::atomic<int64_t> over_limits{0};
  std::atomic<int64_t> comparisons{0};
  std::atomic<int64_t> undecided{0};
  std::atomic<int64_t> differing{0};
  std::atomic<int64_t> next_seed{0};
  std::atomic<bool> shrinking{false};
};

// One write, since several processes share the output; begins a line of its
// own where there is progress.
void Print(const CampaignOptions& options, const std::string& text) {
  if (options.progress) std::fputs("\r\033[K", stderr);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string Finding(const std::string& name, const Outcome& outcome) {
  return absl::StrCat("== ", name, ": ", outcome.what, "\n",
                      absl::string_view(outcome.text).substr(0, kPrinted),
                      "\n");
}

// The case with what was found above it, as comments.
std::string FindingText(const FuzzCase& one, int64_t seed,
                        const std::string& path, const Outcome& outcome) {
  const std::vector<std::string> lines = absl::StrSplit(outcome.text, '\n');
  std::string text = CaseToText(one);
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "language 1\n");
  return absl::StrCat("language 1\n\n// Seed ", seed, ": ", outcome.what,
                      ".\n// ", absl::string_view(lines[0]).substr(0, 200),
                      "\n// Replay: tools/fuzz differential ", path, "\n",
                      rest);
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  CLEAVE_CHECK(file.good()) << "cannot write " << path;
}

void Investigate(const CampaignOptions& options, int64_t seed,
                 const FuzzCase& one, const Outcome& outcome, Workbench& bench,
                 Counters& counters) {
  ++counters.differing;
  const std::string path = absl::StrCat(options.out, "/seed_", seed, ".rules");
  WriteFile(path, FindingText(one, seed, path, outcome));
  Print(options, Finding(absl::StrCat("seed ", seed), outcome));
  counters.shrinking = true;
  Outcome last = outcome;
  const FuzzCase small =
      Shrink(one, static_cast<int>(options.trials), [&](const FuzzCase& trial) {
        if (Interrupted()) return false;
        const Outcome again = bench.CheckIsolated(trial);
        const bool same =
            again.kind == OutcomeKind::kDiffers && again.what == outcome.what;
        if (same) last = again;
        return same;
      });
  counters.shrinking = false;
  WriteFile(path, FindingText(small, seed, path, last));
  Print(options, absl::StrCat(Finding(path, last), CaseToText(small),
                              "replay: tools/fuzz differential ", path, "\n"));
}

// The seeds that are `job` modulo the jobs, until the time is up.
void RunSeeds(const CampaignOptions& options, int64_t job,
              Clock::time_point end, Workbench& bench, Counters& counters) {
  for (int64_t i = job; i < options.count; i += options.jobs) {
    if (Clock::now() >= end || Interrupted()) return;
    const int64_t seed = options.seed + i;
    const FuzzCase one = Generate(seed);
    const Outcome outcome = bench.CheckIsolated(one);
    if (outcome.kind == OutcomeKind::kInterrupted) return;
    ++counters.functions;
    counters.comparisons += outcome.comparisons;
    counters.undecided += outcome.undecided;
    counters.rejected += outcome.kind == OutcomeKind::kRejected;
    counters.over_limits += outcome.kind == OutcomeKind::kOverLimits;
    if (options.print_rejected && outcome.kind == OutcomeKind::kRejected) {
      Print(options,
            Finding(absl::StrCat("seed ", seed, " is rejected\n", one.rules),
                    outcome));
    }
    if (outcome.kind == OutcomeKind::kDiffers) {
      Investigate(options, seed, one, outcome, bench, counters);
    }
    if (options.jobs == 1) counters.next_seed = seed + 1;
  }
}

CampaignTally TallyOf(const Counters& counters) {
  CampaignTally tally;
  tally.functions = counters.functions;
  tally.rejected = counters.rejected;
  tally.over_limits = counters.over_limits;
  tally.comparisons = counters.comparisons;
  tally.undecided = counters.undecided;
  tally.differing = counters.differing;
  tally.next_seed = counters.next_seed;
  return tally;
}

void ShowProgress(const CampaignOptions& options, const Counters& counters,
                  Clock::time_point end) {
  const int64_t left =
      std::chrono::duration_cast<std::chrono::seconds>(end - Clock::now())
          .count();
  std::string text = absl::StrCat("\r", TallyOf(counters).ToString());
  if (counters.shrinking) {
    absl::StrAppend(&text, ", shrinking");
  } else if (left >= 0) {
    absl::StrAppend(&text, ", ",
                    absl::StrFormat("%d:%02d", left / 60, left % 60), " left");
  }
  std::fprintf(stderr, "%s\033[K", text.c_str());
  std::fflush(stderr);
}

}  // namespace

std::string CampaignTally::ToString() const {
  return absl::StrCat(functions, " functions, ", rejected, " rejected, ",
                      over_limits, " over limits, ", comparisons,
                      " comparisons, ", undecided, " elements undecided, ",
                      differing, differing == 1 ? " differs" : " differ");
}

CampaignTally RunCampaign(const CampaignOptions& options, Workbench& bench) {
  CLEAVE_CHECK(options.jobs >= 1);
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  CLEAVE_CHECK(!error) << options.out << ": " << error.message();
  void* const memory = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CLEAVE_CHECK(memory != MAP_FAILED) << std::strerror(errno);
  auto* const counters = new (memory) Counters;
  counters->next_seed = options.seed;
  const auto end = Clock::now() + std::chrono::seconds(options.seconds);
  std::vector<pid_t> children;
  for (int64_t job = 0; job < options.jobs; ++job) {
    const pid_t child = fork();
    CLEAVE_CHECK(child >= 0) << std::strerror(errno);
    if (child == 0) {
      RunSeeds(options, job, end, bench, *counters);
      _exit(0);
    }
    children.push_back(child);
  }
  bool passed_on = false;
  while (!children.empty()) {
    if (Interrupted() && !passed_on) {
      // A terminal interrupts them, too; `kill` of this process does not.
      for (const pid_t child : children) kill(child, SIGTERM);
      passed_on = true;
    }
    int status = 0;
    const pid_t ended = waitpid(children.back(), &status, WNOHANG);
    if (ended == children.back()) {
      CLEAVE_CHECK(passed_on || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
          << "the process of job " << children.size() - 1 << " died";
      children.pop_back();
      continue;
    }
    if (options.progress) ShowProgress(options, *counters, end);
    usleep(options.progress ? 200'000 : 20'000);
  }
  if (options.progress) std::fputs("\r\033[K", stderr);
  const CampaignTally tally = TallyOf(*counters);
  munmap(memory, sizeof(Counters));
  return tally;
}

Outcome CheckKept(const std::string& path, Workbench& bench) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const auto one = CaseFromText(text.str());
  Outcome outcome;
  if (!file.good() || !one.ok()) {
    outcome.kind = OutcomeKind::kRejected;
    outcome.text =
        file.good() ? one.status().ToString() : "the file cannot be read";
    return outcome;
  }
  outcome = bench.CheckIsolated(*one);
  if (outcome.kind == OutcomeKind::kDiffers) {
    Print(CampaignOptions(), Finding(path, outcome));
  }
  return outcome;
}

}  // namespace cleave::fuzz
