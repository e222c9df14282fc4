#include "engine/rules/rule_files.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(RuleFiles, ListsAndReadsFilesAndFolders) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/rule_files");
  std::filesystem::create_directories(folder + "/core");
  std::filesystem::create_directories(folder + "/empty");
  std::ofstream(folder + "/core/b.rules") << "b";
  std::ofstream(folder + "/core/a.rules") << "a";
  std::ofstream(folder + "/core/README.md") << "not a rule";
  std::ofstream(folder + "/twin.json") << "{}";
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedSource> sources,
                       ReadRuleFiles({folder + "/twin.json", folder + "/core",
                                      folder + "/core/../core/a.rules"}));
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].name, folder + "/twin.json");
  EXPECT_TRUE(sources[0].json);
  EXPECT_EQ(sources[1].name, folder + "/core/a.rules");
  EXPECT_EQ(sources[1].text, "a");
  EXPECT_FALSE(sources[1].json);
  EXPECT_EQ(sources[2].name, folder + "/core/b.rules");
  EXPECT_THAT(ListRuleFiles({folder + "/none"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  EXPECT_THAT(ListRuleFiles({folder + "/empty"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/empty")));
}

}  // namespace
}  // namespace cleave
