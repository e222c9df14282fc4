#include "testing/certificate/rule_hashes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/certificate/sha256.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr char kRules[] = R"(language 1

/// Half of it.
def half(x) = x / 2

def quarter(x) = half(half(x))

op plain(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
{
  // A comment.
  let one = 1
  x + one
}

op small(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] / 4
  = quarter(x)

op caller(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] / 4 - 1
  = small(x) - 1

example plain([1.0]) = [2.0]

jvp exp(x) = dx * y

rewrite times_one: x * 1 => x where x: real
)";

RuleHashes Hashes(const std::vector<NamedSource>& sources) {
  absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(sources);
  EXPECT_OK(hashes);
  return hashes.ok() ? *std::move(hashes) : RuleHashes();
}

RuleHashes Hashes(const std::string& text) {
  return Hashes({{"a.rules", text, false}});
}

// The rules with a part of them replaced.
std::string With(const std::string& part, const std::string& other) {
  const std::string text = absl::StrReplaceAll(kRules, {{part, other}});
  EXPECT_NE(text, kRules) << part << " is not there";
  return text;
}

// The ops whose hashes are others.
std::vector<std::string> Changed(const RuleHashes& hashes) {
  const RuleHashes before = Hashes(kRules);
  std::vector<std::string> changed;
  for (const char* op :
       {"plain", "small", "caller", "jvp exp", "rewrite times_one"}) {
    EXPECT_EQ(before.Of(op).size(), 64) << op;
    if (hashes.Of(op) != before.Of(op)) changed.push_back(op);
  }
  return changed;
}

std::vector<std::string> Changed(const std::string& text) {
  return Changed(Hashes(text));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sha256, IsThatOfTheStandard) {
  // FIPS 180-2, appendix B.1, and its hash of nothing.
  EXPECT_EQ(Sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223"
            "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""),
            "e3b0c44298fc1c149afbf4c8996fb924"
            "27ae41e4649b934ca495991b7852b855");
}

TEST(RuleHashes, AreOthersForEachOp) {
  const RuleHashes hashes = Hashes(kRules);
  EXPECT_NE(hashes.Of("plain"), hashes.Of("small"));
  EXPECT_NE(hashes.Of("jvp exp"), hashes.Of("rewrite times_one"));
}

TEST(RuleHashes, AreNoneForWhatIsNotThere) {
  const RuleHashes hashes = Hashes(kRules);
  EXPECT_EQ(hashes.Of("none"), "");
  EXPECT_EQ(hashes.Of("jvp plain"), "");
  EXPECT_EQ(hashes.Of("rewrite exp"), "");
  EXPECT_EQ(hashes.Of(""), "");
}

TEST(RuleHashes, DoNotDependOnCommentsAndLayout) {
  EXPECT_THAT(Changed(With("// A comment.", "// Another one.")), IsEmpty());
  EXPECT_THAT(Changed(With("/// Half of it.", "/// 0.5 x.\n///\n/// Yes.")),
              IsEmpty());
  EXPECT_THAT(Changed(With("x / 2", "(x  /  2)")), IsEmpty());
  EXPECT_THAT(Changed(With("op plain", "\n// Free.\n\nop plain")), IsEmpty());
}

TEST(RuleHashes, DoNotDependOnOpsThatAreNotUsed) {
  EXPECT_THAT(
      Changed(absl::StrCat(kRules, "\nop other(x: f32[]) -> f32[] = x + 1\n")),
      IsEmpty());
}

TEST(RuleHashes, ChangeWithBodySpecAndExample) {
  EXPECT_THAT(Changed(With("let one = 1", "let one = 1.0")),
              ElementsAre("plain"));
  EXPECT_THAT(Changed(With("y[s..] = x[s..] + 1", "y[s..] = 1 + x[s..]")),
              ElementsAre("plain"));
  EXPECT_THAT(Changed(With("= [2.0]", "= [3.0]")), ElementsAre("plain"));
  EXPECT_THAT(Changed(absl::StrCat(kRules, "\nexample plain([0.5]) ~ [1.5]\n")),
              ElementsAre("plain"));
}

TEST(RuleHashes, ChangeWithOverrides) {
  const std::string override_text = "language 1\n\noverride small = x * 0.25\n";
  EXPECT_THAT(Changed(Hashes({{"a.rules", kRules, false},
                              {"b.rules", override_text, false}})),
              ElementsAre("small", "caller"));
}

TEST(RuleHashes, ChangeWithWhatIsUsedBelow) {
  EXPECT_THAT(Changed(With("x / 2", "0.5 * x")),
              ElementsAre("small", "caller"));
  EXPECT_THAT(Changed(With("= small(x) - 1", "= plain(small(x)) - 2")),
              ElementsAre("caller"));
}

TEST(RuleHashes, ChangeWithWhatDerivedRulesMayUse) {
  EXPECT_THAT(
      Changed(With("dx * y", "y * dx")),
      ElementsAre("plain", "small", "caller", "jvp exp", "rewrite times_one"));
  EXPECT_THAT(
      Changed(With("x * 1 =>", "1 * x =>")),
      ElementsAre("plain", "small", "caller", "jvp exp", "rewrite times_one"));
}

TEST(RuleHashes, AreThoseOfTheJsonTwin) {
  const Source source("a.rules", kRules);
  const std::string json = RulesToJson(ParseRules(source).file);
  EXPECT_THAT(Changed(Hashes({{"a.json", json, true}})), IsEmpty());
}

TEST(RuleHashes, RefuseWhatDoesNotParse) {
  EXPECT_THAT(RuleHashes::Make({{"a.rules", "op (", false}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("a.rules")));
}

}  // namespace
}  // namespace cleave
