// Kept cases of the differential fuzzer, and fresh ones.
//
//   bazel-bin/testing/fuzz/differential/differential_test --seconds 600 --seed
//   7

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "testing/fuzz/differential/campaign.h"
#include "testing/fuzz/differential/isolated.h"

namespace cleave::fuzz {
namespace {

constexpr char kCorpus[] = "testing/fuzz/differential/corpus";

// The number behind `flag`, in the test's arguments.
int64_t Flag(absl::string_view flag, int64_t otherwise) {
  const std::vector<std::string> arguments = testing::internal::GetArgvs();
  int64_t value = otherwise;
  for (size_t i = 1; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == flag) {
      EXPECT_TRUE(absl::SimpleAtoi(arguments[i + 1], &value)) << flag;
    }
  }
  return value;
}

class DifferentialTest : public ::testing::Test {
 protected:
  // Once: it reads all rules.
  static void SetUpTestSuite() {
    bench_ = new absl::StatusOr<Workbench>(Workbench::Create("rules"));
  }
  static void TearDownTestSuite() {
    delete bench_;
    bench_ = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(bench_->ok()) << bench_->status(); }

  static absl::StatusOr<Workbench>* bench_;
};

absl::StatusOr<Workbench>* DifferentialTest::bench_ = nullptr;

TEST_F(DifferentialTest, KeptCasesAgree) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    paths.insert(entry.path().string());
  }
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    const Outcome outcome = CheckKept(path, **bench_);
    EXPECT_EQ(outcome.kind, OutcomeKind::kAgrees)
        << path << ": " << outcome.what << "\n"
        << outcome.text;
    EXPECT_GT(outcome.comparisons, 0) << path;
  }
}

TEST_F(DifferentialTest, FreshCasesAgree) {
  CampaignOptions options;
  options.seed = Flag("--seed", 1);
  options.seconds = Flag("--seconds", 15);
  const char* const kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  options.out = kept != nullptr ? kept : testing::TempDir();
  const CampaignTally tally = RunCampaign(options, **bench_);
  std::cout << tally.ToString() << "\n";
  EXPECT_EQ(tally.differing, 0) << "shrunk in " << options.out;
  if (options.seconds < 5) return;
  EXPECT_GT(tally.functions, 0);
  EXPECT_GT(tally.comparisons, tally.functions);
  // Most functions that are made are right.
  EXPECT_LT(tally.rejected, tally.functions / 2 + 3);
}

}  // namespace
}  // namespace cleave::fuzz
