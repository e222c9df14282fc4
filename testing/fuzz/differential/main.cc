// The program of `tools/fuzz differential`.

#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "testing/fuzz/differential/campaign.h"
#include "testing/fuzz/differential/interrupt.h"
#include "testing/fuzz/differential/isolated.h"

namespace cleave::fuzz {
namespace {

constexpr int kExitInterrupted = 130;
constexpr char kHelp[] =
    "Random functions of the rule language, each computed by all the ways that "
    "must agree: interpreter and kernels, batches and loops, derivatives and "
    "differences, and what is written as text and read again.";
constexpr char kFooter[] =
    "Files are checked instead of random functions. A finding is shrunk and\n"
    "written to seed_N.rules in the folder --out, with the line that replays "
    "it.\nCtrl-C ends a run with what was found; again, at once.\n"
    "Exit status: 0, 1 where something differs, 2 for bad input, 130 where it "
    "was interrupted.";

int CheckFiles(const std::vector<std::string>& files, Workbench& bench) {
  int result = 0;
  for (const std::string& path : files) {
    const Outcome outcome = CheckKept(path, bench);
    switch (outcome.kind) {
      case OutcomeKind::kAgrees:
        std::cout << path << ": agrees, " << outcome.comparisons
                  << " comparisons" << std::endl;
        break;
      case OutcomeKind::kOverLimits:
        std::cout << path << ": over limits: " << outcome.text << std::endl;
        break;
      case OutcomeKind::kDiffers:
        result = std::max(result, 1);
        break;
      case OutcomeKind::kRejected:
        std::cerr << path << ": " << outcome.text << std::endl;
        result = 2;
        break;
      case OutcomeKind::kInterrupted:
        return kExitInterrupted;
    }
  }
  return result;
}

int Main(int argc, char** argv) {
  CampaignOptions options;
  options.progress = isatty(STDERR_FILENO) != 0;
  std::vector<std::string> files;
  std::string rules = "rules";
  CLI::App app(kHelp, "tools/fuzz differential");
  app.footer(kFooter);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--seed", options.seed, "the first seed")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--count", options.count, "at most so many functions")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--jobs", options.jobs, "processes at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--trials", options.trials,
                 "smaller functions that are tried for one finding")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--out", options.out, "the folder of findings")
      ->capture_default_str();
  app.add_option("--rules", rules, "the folder of the shipped rules")
      ->capture_default_str();
  app.add_flag("--print-rejected", options.print_rejected,
               "print the functions that do not load, and why");
  app.add_option("FILE", files, "kept functions")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  InstallInterrupts();
  absl::StatusOr<Workbench> bench = Workbench::Create(rules);
  if (!bench.ok()) {
    std::cerr << "tools/fuzz: " << bench.status().message() << "\n";
    return 2;
  }
  if (!files.empty()) return CheckFiles(files, *bench);
  const CampaignTally tally = RunCampaign(options, *bench);
  std::cout << tally.ToString() << "\n";
  if (options.jobs == 1) {
    std::cout << "seeds " << options.seed << " to " << tally.next_seed - 1
              << "\n";
  }
  if (Interrupted()) return kExitInterrupted;
  return tally.differing > 0 ? 1 : 0;
}

}  // namespace
}  // namespace cleave::fuzz

int main(int argc, char** argv) { return cleave::fuzz::Main(argc, argv); }
