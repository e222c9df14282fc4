// The certificates that come with the shipped rules.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/files/file.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certified_check.h"
#include "testing/certificate/rule_hashes.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

constexpr char kFile[] = "rules/certificates.json";
constexpr char kUpdate[] =
    "Try: tools/cleave check rules --certify rules/certificates.json";

class ShippedCertificates : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedSource> sources,
                         ReadRuleFiles({"rules"}));
    rules_ =
        LoadRules(sources, std::make_shared<Context>(), WithTransforms()).rules;
    ASSERT_NE(rules_, nullptr);
    ASSERT_OK_AND_ASSIGN(hashes_, RuleHashes::Make(sources));
    ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(kFile));
    ASSERT_OK_AND_ASSIGN(file_, ParseCertificates(text, kFile));
  }

  std::shared_ptr<const RuleSet> rules_;
  RuleHashes hashes_;
  CertificateFile file_;
};

TEST_F(ShippedCertificates, AreOfTheRulesAsTheyAre) {
  CheckOptions options;
  EXPECT_TRUE(file_.conditions == Conditions::Of(options))
      << "not of the default check, but of " << file_.conditions.ToString()
      << "\n"
      << kUpdate << " --all";
  ASSERT_OK_AND_ASSIGN(const std::vector<CheckedOp> ops,
                       OpsToCheck(*rules_, options));
  const std::vector<std::string> missing = NotCertified(hashes_, ops, file_);
  EXPECT_TRUE(missing.empty())
      << missing.size() << " rules changed since they were certified, or use "
      << "rules that did: " << absl::StrJoin(missing, ", ") << "\n"
      << kUpdate;
  EXPECT_EQ(file_.certificates.size() + missing.size(), ops.size())
      << "of rules that are gone\n"
      << kUpdate;
  EXPECT_EQ(file_.ToJson(), *ReadFile(kFile)) << "edited by hand";
}

TEST_F(ShippedCertificates, AreTrueWhereTheyAreCheckedAgain) {
  VerifyOptions options;
  options.part = 0;  // the 3 that are verified at least
  options.seed = 1;
  ASSERT_OK_AND_ASSIGN(
      const Verification verified,
      VerifyCertificates(rules_, hashes_, kFile, file_, options));
  EXPECT_EQ(verified.verified.size(), 3);
  EXPECT_THAT(verified.mismatches, ::testing::IsEmpty())
      << verified.ToString() << kUpdate << " --all";
}

}  // namespace
}  // namespace cleave
