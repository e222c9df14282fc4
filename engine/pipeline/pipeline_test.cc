#include "engine/pipeline/pipeline.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRules[] = R"(language 1

rewrite one_times: 1 * x => x where x: real

op scaled(x: T[S..], *, by: real) -> T[S..]
  where T: float
{
  by * x
}

fn f(x: f32[m, n], y: f32[m, n]) -> f32[m, n]
  = scaled(x, by: 1) - scaled(y, by: 1)
)";

struct Rules {
  std::shared_ptr<const RuleSet> set;
  Graph f;
};

Rules Load(absl::string_view text) {
  LoadResult loaded =
      LoadRules({{"in.rules", std::string(text)}}, std::make_shared<Context>());
  if (loaded.rules == nullptr) {
    ADD_FAILURE() << loaded.diagnostics[0];
    return {};
  }
  absl::StatusOr<Graph> f = loaded.rules->Function("f");
  EXPECT_THAT(f, IsOk());
  return {std::move(loaded.rules), f.ok() ? *std::move(f) : Graph()};
}

std::string TitleOf(const PipelineStage& stage) {
  return stage.kernel.has_value() ? absl::StrCat(stage.name, " ", *stage.kernel)
                                  : std::string(stage.name);
}

TEST(Pipeline, DumpsAfterEachStage) {
  TestGoldenFile(
      "engine/pipeline/testdata/stages.golden", [](absl::string_view text) {
        const Rules rules = Load(text);
        if (rules.set == nullptr) return std::string();
        std::string dump;
        const absl::StatusOr<LoweredGraph> lowered = RunPipeline(
            rules.f, *rules.set, {}, [&](const PipelineStage& stage) {
              absl::StrAppend(&dump, TitleOf(stage), "\n", stage.text, "\n");
            });
        EXPECT_THAT(lowered, IsOk());
        return dump;
      });
}

TEST(Pipeline, RunsItsStagesInOrder) {
  const Rules rules = Load(kRules);
  std::vector<std::string> titles;
  ASSERT_OK_AND_ASSIGN(
      const LoweredGraph lowered,
      RunPipeline(rules.f, *rules.set, {}, [&](const PipelineStage& stage) {
        titles.push_back(TitleOf(stage));
      }));
  EXPECT_THAT(titles,
              ElementsAre("expand", "simplify", "prepare", "fuse", "extract 0",
                          "collapse 0", "zero 0", "numerics 0"));
  ASSERT_EQ(lowered.groups.size(), 1);
  EXPECT_TRUE(lowered.groups[0].kernel.has_value());
}

TEST(Pipeline, SaysTheSameWithoutAnObserver) {
  const Rules rules = Load(kRules);
  std::string last;
  ASSERT_OK_AND_ASSIGN(
      const LoweredGraph watched,
      RunPipeline(rules.f, *rules.set, {},
                  [&](const PipelineStage& stage) { last = stage.text; }));
  ASSERT_OK_AND_ASSIGN(const LoweredGraph lowered,
                       RunPipeline(rules.f, *rules.set, {}));
  EXPECT_EQ(PrintGraph(lowered.graph), PrintGraph(watched.graph));
  ASSERT_EQ(lowered.groups.size(), 1);
  EXPECT_EQ(PrintGraph(*lowered.groups[0].kernel), last);
}

TEST(Pipeline, RefusesCallsBehindExpand) {
  const Rules rules = Load(kRules);
  EXPECT_THAT(
      LowerPrimitives(rules.f, *rules.set, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expand")));
}

}  // namespace
}  // namespace cleave
