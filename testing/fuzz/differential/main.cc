// differential --seed S --seconds N --jobs J: random functions, by all the ways
// that must agree, from seed S on. `differential FILE..` checks cases that are
// kept. What differs is printed, and, shrunk, written to a file of the folder
// --out. Exits with 1 where anything differs.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "testing/fuzz/differential/fuzz_case.h"
#include "testing/fuzz/differential/generate.h"
#include "testing/fuzz/differential/isolated.h"
#include "testing/fuzz/differential/shrink.h"

namespace cleave::fuzz {
namespace {

struct Flags {
  int64_t seed = 1;
  int64_t seconds = 60;
  int64_t jobs = 1;
  int64_t trials = 400;  // of one shrinking
  std::string out = ".cleave/fuzz/differential";
  bool print = false;
  std::vector<std::string> files;
};

bool ReadFlags(int argc, char** argv, Flags& flags) {
  const std::map<std::string, int64_t*> numbers = {
      {"--seed", &flags.seed},
      {"--seconds", &flags.seconds},
      {"--jobs", &flags.jobs},
      {"--trials", &flags.trials}};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto number = numbers.find(flag);
    if (flag == "--print") {
      flags.print = true;
    } else if (number != numbers.end()) {
      if (++i == argc || !absl::SimpleAtoi(argv[i], number->second)) {
        return false;
      }
    } else if (flag == "--out") {
      if (++i == argc) return false;
      flags.out = argv[i];
    } else if (flag[0] == '-') {
      return false;
    } else {
      flags.files.push_back(flag);
    }
  }
  return flags.seconds >= 0 && flags.jobs >= 1;
}

void Report(const std::string& name, const Outcome& outcome) {
  // One write: several processes share the output.
  std::string text = absl::StrCat("== ", name, ": ", outcome.what, "\n",
                                  outcome.text.substr(0, 3000), "\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int CheckFiles(const Flags& flags, Workbench& bench) {
  int failed = 0;
  for (const std::string& path : flags.files) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const auto one = CaseFromText(text.str());
    if (!file.good() || !one.ok()) {
      std::cerr << path << ": " << one.status() << "\n";
      return 2;
    }
    const Outcome outcome = bench.CheckIsolated(*one);
    if (outcome.kind == OutcomeKind::kAgrees) {
      std::cout << path << ": agrees\n";
      continue;
    }
    Report(path, outcome);
    ++failed;
  }
  return failed > 0;
}

// The seeds that are `job` modulo the jobs, until the time is up.
int RunSeeds(const Flags& flags, int64_t job, Workbench& bench) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(flags.seconds);
  int64_t seed = flags.seed + job;
  int64_t cases = 0, rejected = 0, differing = 0, comparisons = 0;
  int64_t undecided = 0;
  for (; std::chrono::steady_clock::now() < end; seed += flags.jobs) {
    const FuzzCase one = Generate(seed);
    const Outcome outcome = bench.CheckIsolated(one);
    ++cases;
    comparisons += outcome.comparisons;
    undecided += outcome.undecided;
    rejected += outcome.kind == OutcomeKind::kRejected;
    if (flags.print && outcome.kind == OutcomeKind::kRejected) {
      Report(absl::StrCat("seed ", seed, " rejected\n", one.rules), outcome);
    }
    if (outcome.kind != OutcomeKind::kDiffers) continue;
    ++differing;
    Report(absl::StrCat("seed ", seed), outcome);
    const FuzzCase small =
        Shrink(one, flags.trials, [&](const FuzzCase& trial) {
          const Outcome again = bench.CheckIsolated(trial);
          return again.kind == OutcomeKind::kDiffers &&
                 again.what == outcome.what;
        });
    const std::string path = absl::StrCat(flags.out, "/seed_", seed, ".rules");
    std::ofstream file(path);
    file << CaseToText(small);
    CLEAVE_CHECK(file.good()) << "cannot write " << path;
    Report(absl::StrCat(path, "\n", CaseToText(small)),
           bench.CheckIsolated(small));
  }
  const std::string text =
      absl::StrCat("job ", job, ": ", cases, " functions up to seed ", seed,
                   ", ", rejected, " rejected, ", comparisons, " comparisons, ",
                   undecided, " elements undecided, ", differing, " differ\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return differing > 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!ReadFlags(argc, argv, flags)) {
    std::cerr << "usage: differential [--seed S] [--seconds N] [--jobs J] "
                 "[--out FOLDER] [FILE..]\n";
    return 2;
  }
  Workbench bench;
  if (!flags.files.empty()) return CheckFiles(flags, bench);
  for (size_t at = 0; at != std::string::npos;) {
    at = flags.out.find('/', at + 1);
    mkdir(flags.out.substr(0, at).c_str(), 0777);
  }
  std::vector<pid_t> children;
  for (int64_t job = 0; job < flags.jobs; ++job) {
    const pid_t child = fork();
    CLEAVE_CHECK(child >= 0);
    if (child == 0) _exit(RunSeeds(flags, job, bench));
    children.push_back(child);
  }
  int result = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) {
      result = 2;
    } else {
      result = std::max(result, WEXITSTATUS(status));
    }
  }
  return result;
}

}  // namespace
}  // namespace cleave::fuzz

int main(int argc, char** argv) { return cleave::fuzz::Main(argc, argv); }
