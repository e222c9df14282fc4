#include "tools/examples/examples.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

ExampleContext TestContext() {
  ExampleContext context;
  context.rules = "rules";
  context.folder = "tools/examples";
  context.times = false;
  return context;
}

class ExamplesTest : public ::testing::TestWithParam<Example> {};

// Training goes on from rounding errors, so that of its output no digit is
// sure; what partitioners save follows their costs, which are tuned. Both have
// tests of their own.
bool HasGolden(const Example& example) {
  const absl::string_view name = example.name;
  return name != "mlp" && name != "transformer_block";
}

TEST_P(ExamplesTest, Runs) {
  std::ostringstream out;
  ASSERT_THAT(GetParam().run(TestContext(), out), IsOk());
  EXPECT_NE(out.str(), "");
  if (HasGolden(GetParam())) {
    TestGeneratedFile(
        absl::StrCat("tools/examples/testdata/", GetParam().name, ".golden"),
        out.str());
  }
}

TEST_P(ExamplesTest, SaysWhatIsNotThere) {
  ExampleContext context = TestContext();
  context.rules = "nowhere";
  std::ostringstream out;
  EXPECT_THAT(GetParam().run(context, out),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest, ::testing::ValuesIn(Examples()),
                         [](const ::testing::TestParamInfo<Example>& info) {
                           return std::string(info.param.name);
                         });

TEST(Mlp, ReadsNineOfTenDigits) {
  std::ostringstream out;
  ASSERT_THAT(RunMlp(TestContext(), out), IsOk());
  // "epoch 10: loss 0.076, 96.1 % of the held out read right"
  const std::string text = out.str();
  const size_t last = text.rfind("epoch");
  ASSERT_NE(last, std::string::npos) << text;
  const size_t begin = text.find(", ", last) + 2;
  double percent = 0;
  ASSERT_TRUE(absl::SimpleAtod(
      text.substr(begin, text.find(" %", begin) - begin), &percent))
      << text;
  EXPECT_GT(percent, 93) << text;
  EXPECT_LE(percent, 100) << text;
}

// The numbers before " MB" and " %" in a line that has both.
struct Figures {
  double held = 0;
  double again = 0;
};
std::vector<Figures> FiguresIn(absl::string_view text) {
  std::vector<Figures> all;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t held = line.find(" MB");
    if (held == absl::string_view::npos) continue;
    const absl::string_view again = line.substr(held + 3);
    Figures figures;
    const size_t begin = line.rfind(' ', held - 1);
    EXPECT_TRUE(
        absl::SimpleAtod(line.substr(begin, held - begin), &figures.held))
        << line;
    EXPECT_TRUE(
        absl::SimpleAtod(again.substr(0, again.find(" %")), &figures.again))
        << line;
    all.push_back(figures);
  }
  return all;
}

TEST(TransformerBlock, ComputesAgainWhatItDoesNotHold) {
  std::ostringstream out;
  ASSERT_THAT(RunTransformerBlock(TestContext(), out), IsOk());
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("the gradients agree to 5 digits"));
  const size_t gap = text.find("\n\n");
  ASSERT_NE(gap, std::string::npos) << text;

  // The default, then a minimum cut at sinking budgets.
  const std::vector<Figures> rows = FiguresIn(text.substr(0, gap));
  ASSERT_EQ(rows.size(), 4) << text;
  EXPECT_LT(rows[1].held, rows[0].held) << text;
  for (size_t i = 2; i < rows.size(); ++i) {
    EXPECT_LT(rows[i].held, rows[i - 1].held) << text;
    EXPECT_GT(rows[i].again, rows[i - 1].again) << text;
  }
  const std::vector<Figures> points = FiguresIn(text.substr(gap));
  ASSERT_EQ(points.size(), 11) << text;
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_GE(points[i].held, points[i - 1].held) << text;
  }
}

}  // namespace
}  // namespace cleave
