// The examples of rules/README.md: all are read, and stand there as `cleave
// fmt` lays them out.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/lang_testing.h"
#include "engine/lang/parser.h"

namespace cleave {
namespace {

constexpr char kReadme[] = "rules/README.md";

struct Block {
  int line;
  std::string text;
};

// The fenced blocks of one language.
std::vector<Block> BlocksOf(const std::string& language) {
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(ReadFile(kReadme), '\n')) {
    ++number;
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    } else if (line == absl::StrCat("```", language)) {
      inside = true;
      blocks.push_back({number + 1, ""});
    }
  }
  return blocks;
}

// An example is a file, whose first line may be left out.
std::string FileOf(const Block& block) {
  constexpr absl::string_view kHeading = "language 1\n";
  return absl::StartsWith(block.text, kHeading)
             ? block.text
             : absl::StrCat(kHeading, "\n", block.text);
}

TEST(Readme, ExamplesAreReadAndFormatted) {
  const std::vector<Block> blocks = BlocksOf("rules");
  EXPECT_GT(blocks.size(), 15);
  for (const Block& block : blocks) {
    SCOPED_TRACE(absl::StrCat(kReadme, ":", block.line));
    const Source source(kReadme, FileOf(block));
    const ParseResult result = ParseRules(source);
    EXPECT_EQ(Render(result.diagnostics, source), "");
    EXPECT_EQ(PrintRuleFile(result.file), source.text());
    const ParseResult twin =
        ParseJsonRules(Source("README.json", RulesToJson(result.file)));
    EXPECT_TRUE(twin.ok());
    EXPECT_EQ(PrintRuleFile(twin.file), source.text());
  }
}

TEST(Readme, JsonIsThatOfTheExampleAboveIt) {
  const std::vector<Block> json = BlocksOf("json");
  ASSERT_EQ(json.size(), 1);
  const Block* above = nullptr;
  const std::vector<Block> blocks = BlocksOf("rules");
  for (const Block& block : blocks) {
    if (block.line < json[0].line) above = &block;
  }
  ASSERT_NE(above, nullptr);
  EXPECT_EQ(RulesToJson(ParseRules(Source("", FileOf(*above))).file),
            json[0].text);
}

}  // namespace
}  // namespace cleave
