#include "transforms/shipped_rules/shipped_rules.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// `op` of a 4x3 matrix, expanded.
std::string Expanded(const RuleSet& rules, const std::string& op) {
  GraphBuilder builder(rules.context());
  const Value x = builder.Input("x", {DType::kF32, {4, 3}});
  const auto results = rules.Call(builder, op, {{"x", x}}, {});
  if (!results.ok()) return results.status().ToString();
  const auto graph =
      Expand(*std::move(builder).Build({{"y", *(*results)[0]}}), rules);
  return graph.ok() ? PrintGraph(*graph) : graph.status().ToString();
}

class ShippedRulesTest : public ::testing::Test {
 protected:
  ShippedRulesTest()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/shipped_rules_test_", getpid(), "_",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    unsetenv("CLEAVE_RULES");
  }
  ~ShippedRulesTest() override { fs::remove_all(folder_); }

  // A copy of the shipped rules.
  std::string Copy() const {
    for (const NamedSource& source : EmbeddedRules()) {
      const fs::path path = fs::path(folder_) / source.name;
      fs::create_directories(path.parent_path());
      EXPECT_OK(WriteFileAtomically(path.string(), source.text,
                                    Durability::kVolatile));
    }
    return folder_ + "/rules";
  }

  LoadResult LoadFolder(const std::string& folder) const {
    ShippedRulesOptions options;
    options.folder = folder;
    options.cache_folder = folder_ + "/cache";
    return LoadShippedRules(options);
  }

  const std::string folder_;
};

TEST_F(ShippedRulesTest, AreTheFilesOfTheFolder) {
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedSource> files,
                       ReadRuleFiles({"rules"}));
  const std::vector<NamedSource> embedded = EmbeddedRules();
  ASSERT_EQ(embedded.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(embedded[i].name, files[i].name);
    EXPECT_EQ(embedded[i].text, files[i].text);
  }
}

TEST_F(ShippedRulesTest, AreFoundWithoutAPath) {
  const LoadResult loaded = LoadShippedRules();
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  // The build checked them.
  EXPECT_TRUE(loaded.checked_before);
  EXPECT_THAT(Expanded(*loaded.rules, "softmax"), StartsWith("graph ("));
  const Item* const softmax = loaded.rules->Find("softmax");
  ASSERT_NE(softmax, nullptr);
  EXPECT_THAT(loaded.rules->SourceOf(*softmax).name(),
              StartsWith("rules/core/"));
}

TEST_F(ShippedRulesTest, ChecksOfTheBuildCountForTheSameTextsInAFolder) {
  const LoadResult loaded = LoadFolder(Copy());
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_TRUE(loaded.checked_before);
  EXPECT_FALSE(fs::exists(folder_ + "/cache"));
}

TEST_F(ShippedRulesTest, MayBeReplacedByAFolder) {
  const std::string folder = Copy();
  const std::string path = folder + "/core/activation.rules";
  ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
  ASSERT_OK(WriteFileAtomically(
      path, absl::StrCat(text,
                         "\n/// Of this test.\nop tripled(x: T[S..]) -> "
                         "T[S..]\n  where T: float\n  = 3 * x\n")));
  for (const bool again : {false, true}) {
    const LoadResult loaded = LoadFolder(folder);
    ASSERT_THAT(loaded.diagnostics, IsEmpty());
    EXPECT_EQ(loaded.checked_before, again);
    EXPECT_THAT(Expanded(*loaded.rules, "tripled"), HasSubstr("mul("));
  }
  // Another text there: a mistake that checking alone finds.
  ASSERT_OK(WriteFileAtomically(
      path, absl::StrCat(text,
                         "\n/// Of this test.\nop tripled(x: T[n]) -> T[n + "
                         "1]\n  where T: float\n  = 3 * x\n")));
  const LoadResult wrong = LoadFolder(folder);
  EXPECT_THAT(wrong.diagnostics,
              ElementsAre(StartsWith("rules/core/activation.rules:")));
  EXPECT_EQ(wrong.rules, nullptr);
}

TEST_F(ShippedRulesTest, TheEnvironmentNamesAFolder) {
  ASSERT_EQ(setenv("CLEAVE_RULES", (folder_ + "/none").c_str(), 1), 0);
  EXPECT_THAT(LoadShippedRules().diagnostics,
              ElementsAre(HasSubstr("no file or folder")));
  ASSERT_EQ(setenv("CLEAVE_RULES", "", 1), 0);
  const LoadResult none = LoadShippedRules();
  ASSERT_THAT(none.diagnostics, IsEmpty());
  EXPECT_EQ(none.rules->Find("softmax"), nullptr);
  ASSERT_EQ(unsetenv("CLEAVE_RULES"), 0);
}

// Run it under ThreadSanitizer, too.
TEST_F(ShippedRulesTest, ThreadsShareOneRuleSet) {
  const std::vector<std::string> ops = {"softmax", "silu",     "gelu",
                                        "mish",    "softplus", "sigmoid"};
  constexpr size_t kThreads = 8;
  std::vector<std::vector<std::string>> printed(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ops, &mine = printed[t], t] {
      const auto rules = SharedShippedRules();
      if (!rules.ok()) return;
      mine.resize(ops.size());
      for (size_t step = 0; step < ops.size(); ++step) {
        const size_t i = (step + t) % ops.size();
        mine[i] = Expanded(**rules, ops[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LoadResult alone = LoadShippedRules();
  ASSERT_THAT(alone.diagnostics, IsEmpty());
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string expected = Expanded(*alone.rules, ops[i]);
    for (size_t t = 0; t < kThreads; ++t) {
      ASSERT_EQ(printed[t].size(), ops.size());
      EXPECT_EQ(printed[t][i], expected);
    }
  }
}

TEST_F(ShippedRulesTest, AreExtendedByAText) {
  ASSERT_OK_AND_ASSIGN(const auto mine, ShippedRulesWith(R"(language 1
op mine(x: f32[n]) -> f32[n] = silu(x)
)"));
  ASSERT_NE(mine->Find("mine"), nullptr);
  EXPECT_EQ(mine->SourceOf(*mine->Find("mine")).name(), "host.rules");
  EXPECT_NE(mine->Find("softmax"), nullptr);
  ASSERT_OK_AND_ASSIGN(const auto shared, SharedShippedRules());
  EXPECT_EQ(shared->Find("mine"), nullptr);
  // The name of a shipped op may be taken, that of a primitive may not.
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      ShippedRulesWith("language 1\nop softmax(x: f32[n]) -> f32[n] = x\n",
                       "other.rules"));
  EXPECT_NE(other->Find("other_softmax"), nullptr);
  EXPECT_EQ(other->Find("softmax"), shared->Find("softmax"));
  EXPECT_THAT(
      ShippedRulesWith("language 1\nop exp(x: f32[n]) -> f32[n] = x\n",
                       "other.rules"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("other.rules:2")));
}

}  // namespace
}  // namespace cleave
