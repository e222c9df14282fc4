#include "testing/certificate/certified_check.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kRules[] = R"(language 1

def half(x) = x / 2

op a(x: f32[n]) -> f32[n]
  spec y[i] = x[i] / 2
  = half(x)

op b(x: f32[n]) -> f32[n]
  spec y[i] = x[i] / 4
  = half(half(x))

op c(x: f32[n]) -> f32[n]
  spec y[i] = x[i] + 1
  = x + 1

op d(x: f32[n]) -> f32[n]
  spec y[i] = x[i] + 2
  = x + 1 + 1
)";

// The rules with a part of them replaced.
std::string With(const std::string& part, const std::string& other) {
  const std::string text = absl::StrReplaceAll(kRules, {{part, other}});
  EXPECT_NE(text, kRules) << part << " is not there";
  return text;
}

// Two layers that take milliseconds.
CheckOptions Quick() {
  CheckOptions options;
  options.layers = {Layer::kTypes, Layer::kReals};
  return options;
}

struct Outcome {
  CertifiedReport certified;
  std::set<std::string> checked;  // by this run, each once
};

Outcome CheckText(const std::string& text, const CertificateUse& use,
                  CheckOptions options = Quick()) {
  const std::vector<NamedSource> sources = {{"a.rules", text, false}};
  LoadOptions load = WithTransforms();
  load.cache_folder = "";
  const LoadResult loaded =
      LoadRules(sources, std::make_shared<Context>(), load);
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  const absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(sources);
  EXPECT_OK(hashes);
  Outcome run;
  if (loaded.rules == nullptr || !hashes.ok()) return run;
  const auto progress = options.progress;
  options.progress = [&](const OpReport& op, int done, int total) {
    EXPECT_TRUE(run.checked.insert(op.op).second) << op.op << " twice";
    if (progress) progress(op, done, total);
  };
  absl::StatusOr<CertifiedReport> report =
      CheckCertified(loaded.rules, *hashes, options, use);
  EXPECT_OK(report);
  if (report.ok()) run.certified = *std::move(report);
  return run;
}

std::vector<std::string> Ops(const CheckReport& report) {
  std::vector<std::string> ops;
  for (const OpReport& op : report.ops) ops.push_back(op.op);
  return ops;
}

// The text of the rules' own file of certificates.
CertificateFile Shipped() {
  return CheckText(kRules, CertificateUse()).certified.certificates;
}

class CertifiedCheck : public ::testing::Test {
 protected:
  CertifiedCheck() {
    absl::StatusOr<std::unique_ptr<CertificateStore>> store =
        CertificateStore::Open(folder_);
    EXPECT_OK(store);
    store_ = *std::move(store);
    use_.store = store_.get();
    use_.complain = [this](const absl::Status& status) {
      complaints_.emplace_back(status.message());
    };
  }

  const std::string folder_ = NewFolder();
  std::unique_ptr<CertificateStore> store_;
  CertificateUse use_;
  std::vector<std::string> complaints_;
};

TEST_F(CertifiedCheck, DoesNotCheckWhatIsUnchanged) {
  const Outcome first = CheckText(kRules, use_);
  EXPECT_THAT(first.checked, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(first.certified.report.CountCertified(), 0);
  EXPECT_EQ(first.certified.ToString(), "");
  const Outcome second = CheckText(kRules, use_);
  EXPECT_THAT(second.checked, IsEmpty());
  EXPECT_EQ(second.certified.own, 4);
  EXPECT_EQ(second.certified.report.CountCertified(), 4);
  EXPECT_THAT(second.certified.ToString(),
              HasSubstr("not checked now: 4 of 4 rules"));
  // Complete, and in the same order.
  ASSERT_EQ(Ops(second.certified.report), Ops(first.certified.report));
  for (size_t i = 0; i < 4; ++i) {
    const OpReport& was = first.certified.report.ops[i];
    const OpReport& is = second.certified.report.ops[i];
    EXPECT_EQ(Difference(was, is, true), std::nullopt);
    EXPECT_EQ(is.place, was.place);
    EXPECT_FALSE(was.certified.has_value());
    ASSERT_TRUE(is.certified.has_value());
    EXPECT_EQ(is.certified->by, "own");
  }
  EXPECT_THAT(second.certified.report.ToString(),
              HasSubstr("checked 0 rules, 4 as certified, seed 1: 0 disagree"));
  EXPECT_THAT(second.certified.report.ToJson(), HasSubstr("\"certified\""));
  EXPECT_THAT(complaints_, IsEmpty());
}

TEST_F(CertifiedCheck, ChecksTheUsersOfADefThatWasEdited) {
  CheckText(kRules, use_);
  EXPECT_THAT(CheckText(With("x / 2\n\nop a", "x * 0.5\n\nop a"), use_).checked,
              ElementsAre("a", "b"));
  EXPECT_THAT(CheckText(With("= x + 1 + 1", "= x + 2"), use_).checked,
              ElementsAre("d"));
  EXPECT_THAT(CheckText(With("op b", "// A comment.\nop b"), use_).checked,
              IsEmpty());
}

TEST_F(CertifiedCheck, ShowsWhereAnOpStandsNow) {
  CheckText(kRules, use_);
  const Outcome moved =
      CheckText(With("def half", "// One\n// two.\ndef half"), use_);
  EXPECT_THAT(moved.checked, IsEmpty());
  EXPECT_EQ(moved.certified.report.Find("a")->place, "a.rules:7");
}

TEST_F(CertifiedCheck, ChecksAtAnotherSeedAndInOtherLayers) {
  CheckText(kRules, use_);
  CheckOptions options = Quick();
  options.seed = 2;
  EXPECT_THAT(CheckText(kRules, use_, options).checked, SizeIs(4));
  options = Quick();
  options.layers = {Layer::kReals};
  EXPECT_THAT(CheckText(kRules, use_, options).checked, SizeIs(4));
  use_.environment.libm += " of another machine";
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(4));
}

TEST_F(CertifiedCheck, ChecksAllWhereItIsToldTo) {
  CheckText(kRules, use_);
  use_.all = true;
  use_.shipped = {{"shipped.json", Shipped()}};
  const Outcome all = CheckText(kRules, use_);
  EXPECT_THAT(all.checked, SizeIs(4));
  EXPECT_EQ(all.certified.ToString(), "");
}

TEST_F(CertifiedCheck, ChecksAllWhoseCallsAreObserved) {
  CheckText(kRules, use_);
  CheckOptions options = Quick();
  options.coverage = true;
  const Outcome covered = CheckText(kRules, use_, options);
  EXPECT_THAT(covered.checked, SizeIs(4));
  EXPECT_FALSE(covered.certified.report.coverage.empty());
  options = Quick();
  options.error_profiles = true;
  EXPECT_THAT(CheckText(kRules, use_, options).checked, SizeIs(4));
}

TEST_F(CertifiedCheck, ChecksWhatWasRefutedAgain) {
  const std::string wrong = With("= x + 1 + 1", "= x + 1");
  const Outcome first = CheckText(wrong, use_);
  EXPECT_EQ(first.certified.certificates.certificates.count("d"), 0);
  const Outcome second = CheckText(wrong, use_);
  EXPECT_THAT(second.checked, ElementsAre("d"));
  EXPECT_EQ(second.certified.report.ExitStatus(), 1);
  EXPECT_TRUE(second.certified.report.Find("d")
                  ->layers.at(Layer::kReals)
                  .counterexample.has_value());
}

TEST_F(CertifiedCheck, DoesNotCertifyWhatTookTooLong) {
  CheckOptions options = Quick();
  options.seconds_per_op = 1e-9;
  CheckText(kRules, use_, options);
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(4));
  // A check that was done in time is as good as without a limit.
  options.seconds_per_op = 3600;
  use_.all = true;
  CheckText(kRules, use_, options);
  use_.all = false;
  EXPECT_THAT(CheckText(kRules, use_).checked, IsEmpty());
}

TEST_F(CertifiedCheck, KeepsWhatWasDoneBeforeAnInterrupt) {
  CheckOptions options = Quick();
  options.threads = 1;
  std::atomic<bool> cancelled{false};
  options.progress = [&](const OpReport& op, int, int) {
    if (op.op == "b") cancelled = true;
  };
  options.stop = [&] { return cancelled.load(); };
  Limits limits;
  limits.cancelled = &cancelled;
  {
    const BudgetScope scope(limits);
    EXPECT_THAT(CheckText(kRules, use_, options).checked,
                ElementsAre("a", "b"));
  }
  EXPECT_THAT(CheckText(kRules, use_).checked, ElementsAre("c", "d"));
}

TEST_F(CertifiedCheck, LeavesOutDamagedCertificatesAndMakesThemAnew) {
  CheckText(kRules, use_);
  const std::vector<std::string> files = ListFolder(folder_);
  ASSERT_EQ(files.size(), 4);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(
        WriteFileAtomically(absl::StrCat(folder_, "/", files[i]), "damaged"));
  }
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(2));
  ASSERT_THAT(complaints_, SizeIs(1));
  EXPECT_THAT(complaints_[0], HasSubstr("is damaged"));
  EXPECT_THAT(complaints_[0], HasSubstr("(and 1 more)"));
  EXPECT_THAT(CheckText(kRules, use_).checked, IsEmpty());
  EXPECT_THAT(complaints_, SizeIs(1));
}

TEST_F(CertifiedCheck, GoesOnWhereTheDiskIsFull) {
  EXPECT_EQ(RunInChild([&] {
              LimitFileSize(100);
              EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(4));
              EXPECT_THAT(complaints_, SizeIs(1));
              EXPECT_THAT(
                  complaints_,
                  ElementsAre(HasSubstr("certificates are not kept: ")));
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
  EXPECT_THAT(ListFolder(folder_), IsEmpty());
}

TEST_F(CertifiedCheck, ChecksAPartOfWhatCameCertified) {
  use_.shipped = {{"shipped.json", Shipped()}};
  use_.sample_least = 1;
  std::set<std::string> drawn;
  for (uint64_t seed = 1; seed < 40; ++seed) {
    use_.store = nullptr;
    use_.sample_seed = seed;
    const Outcome run = CheckText(kRules, use_);
    EXPECT_THAT(run.checked, SizeIs(1));
    EXPECT_THAT(run.certified.sampled, SizeIs(1));
    EXPECT_EQ(run.certified.shipped, 3);
    EXPECT_FALSE(run.certified.other_environment);
    EXPECT_THAT(run.certified.mismatches, IsEmpty());
    EXPECT_EQ(Ops(run.certified.report),
              (std::vector<std::string>{"a", "b", "c", "d"}));
    EXPECT_THAT(
        run.certified.ToString(),
        HasSubstr(absl::StrCat("3 of 4 rules, as certified by shipped.json; 1 "
                               "that it certifies, drawn by seed ",
                               seed)));
    drawn.insert(run.checked.begin(), run.checked.end());
  }
  EXPECT_THAT(drawn, ElementsAre("a", "b", "c", "d"));
}

TEST_F(CertifiedCheck, ChecksThreeOfThoseThatCameCertifiedAtLeast) {
  use_.shipped = {{"shipped.json", Shipped()}};
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(3));
  // Once.
  const Outcome second = CheckText(kRules, use_);
  EXPECT_THAT(second.checked, IsEmpty());
  EXPECT_EQ(second.certified.own, 3);
  EXPECT_EQ(second.certified.shipped, 1);
  EXPECT_THAT(second.certified.ToString(),
              HasSubstr("1 of 4 rules, as certified by shipped.json, of which "
                        "a part was checked here before; --all"));
}

TEST_F(CertifiedCheck, DrawsOfWhatCameThoughItWasCheckedInPart) {
  CheckOptions options = Quick();
  options.ops = "a";
  CheckText(kRules, use_, options);
  options.ops = "b";
  CheckText(kRules, use_, options);
  use_.shipped = {{"shipped.json", Shipped()}};
  use_.sample_least = 1;
  // The ops that the user chose to check are no random part.
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(1));
  EXPECT_THAT(CheckText(kRules, use_).checked, IsEmpty());
  // Another file makes other claims.
  use_.shipped[0].second.certificates.erase("a");
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(1));
  EXPECT_THAT(CheckText(kRules, use_).checked, IsEmpty());
}

TEST_F(CertifiedCheck, SaysWhatOfThoseThatCameCertifiedAStoppedRunChecked) {
  use_.shipped = {{"shipped.json", Shipped()}};
  CheckOptions options = Quick();
  options.stop = [] { return true; };
  const Outcome run = CheckText(kRules, use_, options);
  EXPECT_THAT(run.checked, IsEmpty());
  EXPECT_THAT(run.certified.ToString(),
              HasSubstr("; 0 that it certifies, drawn by seed 1, were checked "
                        "and are as certified (of 3: the run was stopped)"));
}

TEST_F(CertifiedCheck, TakesNothingThatCameForOtherRules) {
  use_.shipped = {{"shipped.json", Shipped()}};
  use_.sample_least = 0;
  use_.sample_part = 0;
  EXPECT_THAT(CheckText(With("= x + 1 + 1", "= x + 2"), use_).checked,
              ElementsAre("d"));
  CheckOptions options = Quick();
  options.seed = 2;
  EXPECT_THAT(CheckText(kRules, use_, options).checked, SizeIs(4));
}

TEST_F(CertifiedCheck, ChecksAllWhereWhatCameIsNotTrue) {
  CertificateFile file = Shipped();
  for (auto& [op, certificate] : file.certificates) {
    certificate.report.layers[Layer::kReals].samples += 1;
  }
  use_.shipped = {{"shipped.json", file}};
  const Outcome run = CheckText(kRules, use_);
  EXPECT_THAT(run.checked, SizeIs(4));
  EXPECT_EQ(run.certified.report.CountCertified(), 0);
  EXPECT_EQ(Ops(run.certified.report),
            (std::vector<std::string>{"a", "b", "c", "d"}));
  ASSERT_THAT(run.certified.mismatches, SizeIs(3));
  const std::string text = run.certified.ToString();
  EXPECT_THAT(text, HasSubstr("NOT AS CERTIFIED by shipped.json: "));
  EXPECT_THAT(text, HasSubstr("L2: samples"));
  EXPECT_THAT(text, HasSubstr("no certificate that came with the rules was"));
  EXPECT_EQ(run.certified.shipped, 0);
}

TEST_F(CertifiedCheck, ComparesKindsAloneWithAnotherEnvironment) {
  CertificateFile file = Shipped();
  CertificateFile elsewhere;
  elsewhere.conditions = file.conditions;
  Environment environment = ThisEnvironment();
  environment.cpu = "another";
  for (auto& [op, certificate] : file.certificates) {
    certificate.report.layers[Layer::kReals].samples += 1;
    elsewhere.Add(certificate, environment);
  }
  use_.shipped = {{"shipped.json", elsewhere}};
  const Outcome run = CheckText(kRules, use_);
  EXPECT_THAT(run.checked, SizeIs(3));
  EXPECT_THAT(run.certified.mismatches, IsEmpty());
  EXPECT_THAT(run.certified.ToString(), HasSubstr("another engine, compiler"));
  // In the file that this report rests on each has its own.
  EXPECT_EQ(run.certified.certificates.environments.size(), 2);
}

TEST_F(CertifiedCheck, ChecksMoreOfWhatAnotherEngineMade) {
  CertificateFile elsewhere;
  elsewhere.conditions = Shipped().conditions;
  Environment environment = ThisEnvironment();
  environment.engine = std::string(64, '0');
  for (const auto& [op, certificate] : Shipped().certificates) {
    elsewhere.Add(certificate, environment);
  }
  use_.store = nullptr;
  use_.sample_least = 0;
  use_.sample_part = 0.25;
  use_.sample_part_of_other_engine = 0.5;
  use_.shipped = {{"shipped.json", elsewhere}};
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(2));
  use_.shipped = {{"shipped.json", Shipped()}};
  EXPECT_THAT(CheckText(kRules, use_).checked, SizeIs(1));
}

class Verify : public ::testing::Test {
 protected:
  absl::StatusOr<Verification> Of(const CertificateFile& file,
                                  const std::string& text,
                                  const VerifyOptions& options) {
    const std::vector<NamedSource> sources = {{"a.rules", text, false}};
    const LoadResult loaded =
        LoadRules(sources, std::make_shared<Context>(), WithTransforms());
    absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(sources);
    EXPECT_OK(hashes);
    return VerifyCertificates(loaded.rules, *hashes, "a.json", file, options);
  }
};

TEST_F(Verify, ChecksAPartAgain) {
  VerifyOptions options;
  options.seed = 5;
  ASSERT_OK_AND_ASSIGN(const Verification verified,
                       Of(Shipped(), kRules, options));
  EXPECT_TRUE(verified.Holds());
  EXPECT_EQ(verified.ToString(),
            "verified 3 of 4 certificates, drawn by seed 5: 3 as certified, 0 "
            "not; 0 of other rules, 1 not checked again\n");
  options.part = 1;
  ASSERT_OK_AND_ASSIGN(const Verification all, Of(Shipped(), kRules, options));
  EXPECT_THAT(all.verified, ElementsAre("a", "b", "c", "d"));
}

TEST_F(Verify, FindsWhatIsNotTrue) {
  CertificateFile file = Shipped();
  file.certificates["c"].report.layers[Layer::kReals].samples = 1;
  VerifyOptions options;
  options.part = 1;
  ASSERT_OK_AND_ASSIGN(const Verification verified, Of(file, kRules, options));
  EXPECT_FALSE(verified.Holds());
  ASSERT_THAT(verified.mismatches, SizeIs(1));
  EXPECT_EQ(verified.mismatches[0].op, "c");
  EXPECT_THAT(verified.ToString(),
              HasSubstr("NOT AS CERTIFIED by a.json: c L2: samples 1"));
}

TEST_F(Verify, NamesWhatIsAnotherRuleNow) {
  VerifyOptions options;
  ASSERT_OK_AND_ASSIGN(
      const Verification verified,
      Of(Shipped(), With("def half(x) = x / 2", "def half(x) = 0.5 * x"),
         options));
  EXPECT_THAT(verified.changed, ElementsAre("a", "b"));
  EXPECT_FALSE(verified.Holds());
  EXPECT_THAT(verified.ToString(), HasSubstr("NOT COVERED: a is another rule"));
}

TEST_F(Verify, RefusesConditionsThatItCannotMeet) {
  CertificateFile file = Shipped();
  file.conditions.kernels = true;
  EXPECT_THAT(Of(file, kRules, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("no code generator")));
  file = Shipped();
  file.conditions.limits["nodes"] = 100;
  EXPECT_THAT(Of(file, kRules, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give the same limits")));
}

}  // namespace
}  // namespace cleave
