#include "tools/command/command_line.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A line with a verb that has an option of each kind.
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() : line_("program", "Does things.", "program 7") {
    line_.EveryVerb().Add("--max", max_, "The most").Positive().ShowDefault();
    line_.EveryVerb().Add("--bytes", bytes_, "Memory").Bytes();
    Verb verb = line_.AddVerb("check", "Checks.");
    verb.Add("PATH", paths_, "Files").Required();
    const Option fast = verb.AddFlag("-f,--fast", fast_, "Fast");
    verb.AddFlag("--slow", slow_, "Slow").Excludes(fast);
    verb.AddFlag("--faster", faster_, "Faster").Needs(fast);
    verb.Add("--to", to_, "Form").OneOf({"json", "text"});
    verb.Add("--share", share_, "Share").Between(0, 1);
    verb.Add("--seed", seed_, "Seed");
    verb.Add("--names", names_, "Names")
        .CommaSeparated()
        .Check([](const std::string& name) {
          return name == "x" ? std::string("no x, please") : std::string();
        });
    verb.Add("--uses", uses_, "Files").OneEach();
    verb.Runs([] { return 3; });
    line_.AddVerb("other", "Others.").Runs([] { return 4; });
    Verb elsewhere = line_.AddVerb("elsewhere", "Is elsewhere.");
    elsewhere.TakesAnything();
    elsewhere.Runs([] { return 5; });
  }

  ParsedLine Parse(std::vector<std::string> words) {
    std::vector<char*> argv;
    words.insert(words.begin(), "program");
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    ParsedLine parsed = line_.Parse(static_cast<int>(argv.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    error_ = ::testing::internal::GetCapturedStderr();
    return parsed;
  }

  // The text on stderr for a line that is a mistake.
  std::string Refused(std::vector<std::string> words) {
    const ParsedLine parsed = Parse(std::move(words));
    EXPECT_EQ(parsed.action, nullptr);
    EXPECT_EQ(parsed.exit_status, kExitUsage);
    EXPECT_EQ(out_, "");
    return error_;
  }

  int64_t max_ = 5;
  int64_t bytes_ = 0;
  std::vector<std::string> paths_;
  bool fast_ = false;
  bool slow_ = false;
  bool faster_ = false;
  std::string to_;
  double share_ = 0;
  uint64_t seed_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> uses_;
  std::string out_;
  std::string error_;
  CommandLine line_;
};

TEST_F(CommandLineTest, SetsValues) {
  const ParsedLine parsed = Parse({"--bytes", "2GB", "check", "a", "b", "-f",
                                   "--faster", "--to", "json", "--share", "0.5",
                                   "--seed=9", "--names", "p,q", "--max", "8"});
  ASSERT_NE(parsed.action, nullptr) << error_;
  EXPECT_EQ(parsed.action(), 3);
  EXPECT_THAT(paths_, ElementsAre("a", "b"));
  EXPECT_TRUE(fast_ && faster_ && !slow_);
  EXPECT_EQ(to_, "json");
  EXPECT_EQ(share_, 0.5);
  EXPECT_EQ(seed_, 9u);
  EXPECT_THAT(names_, ElementsAre("p", "q"));
  EXPECT_EQ(max_, 8);
  EXPECT_EQ(bytes_, int64_t{2} << 30);
}

TEST_F(CommandLineTest, ValuesByNameLeaveThoseByPosition) {
  const ParsedLine parsed =
      Parse({"check", "--uses", "a", "file", "--uses", "b"});
  ASSERT_NE(parsed.action, nullptr) << error_;
  EXPECT_THAT(uses_, ElementsAre("a", "b"));
  EXPECT_THAT(paths_, ElementsAre("file"));
}

TEST_F(CommandLineTest, RunsTheVerbOfTheLine) {
  const ParsedLine parsed = Parse({"other"});
  ASSERT_NE(parsed.action, nullptr) << error_;
  EXPECT_EQ(parsed.action(), 4);
}

TEST_F(CommandLineTest, LeavesArgumentsOfAVerbToOthers) {
  const ParsedLine parsed = Parse({"elsewhere", "--op", "x", "-f", "y"});
  ASSERT_NE(parsed.action, nullptr) << error_;
  EXPECT_EQ(parsed.action(), 5);
}

TEST_F(CommandLineTest, PrintsHelpAndVersion) {
  ParsedLine parsed = Parse({"check", "--help"});
  EXPECT_EQ(parsed.action, nullptr);
  EXPECT_EQ(parsed.exit_status, kExitOk);
  EXPECT_THAT(out_, HasSubstr("--to TEXT:{json,text}"));
  EXPECT_THAT(out_, HasSubstr("Excludes: --fast"));
  parsed = Parse({"--version"});
  EXPECT_EQ(parsed.exit_status, kExitOk);
  EXPECT_EQ(out_, "program 7\n");
}

TEST_F(CommandLineTest, RefusesMistakes) {
  EXPECT_THAT(Refused({}), HasSubstr("A subcommand is required"));
  EXPECT_THAT(Refused({"chekc", "a"}), HasSubstr("there is no verb `chekc`"));
  EXPECT_THAT(Refused({"check"}), HasSubstr("PATH is required"));
  EXPECT_THAT(Refused({"check", "a", "--slow", "-f"}), HasSubstr("excludes"));
  EXPECT_THAT(Refused({"check", "a", "--faster"}), HasSubstr("requires"));
  EXPECT_THAT(Refused({"check", "a", "--to", "xml"}), HasSubstr("xml not in"));
  EXPECT_THAT(Refused({"check", "a", "--share", "2"}),
              HasSubstr("2 not in range"));
  EXPECT_THAT(Refused({"check", "a", "--seed", "x"}), HasSubstr("--seed"));
  EXPECT_THAT(Refused({"check", "a", "--seed", "-1"}),
              HasSubstr("-1 is negative"));
  EXPECT_THAT(Refused({"check", "a", "--names", "p,x"}),
              HasSubstr("no x, please"));
  EXPECT_THAT(Refused({"check", "a", "--max", "0"}), HasSubstr("--max"));
  EXPECT_THAT(Refused({"check", "a", "--bytes", "two"}), HasSubstr("--bytes"));
}

}  // namespace
}  // namespace cleave
