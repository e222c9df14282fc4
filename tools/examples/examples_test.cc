#include "tools/examples/examples.h"

#include <limits>
#include <sstream>
#include <string>

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

TEST(TransformerBlock, ComputesAgainWhatItDoesNotHold) {
  std::ostringstream out;
  ASSERT_THAT(RunTransformerBlock(TestContext(), out), IsOk());
  // "min-cut,  50 %      6       3.1 MB           9.8 %"
  double held = std::numeric_limits<double>::infinity();
  double again = 0;
  int lines = 0;
  for (absl::string_view line : absl::StrSplit(out.str(), '\n')) {
    const size_t unit = line.find(" MB");
    if (unit == absl::string_view::npos) continue;
    const size_t before = line.rfind(' ', unit - 1);
    double now_held = 0;
    double now_again = 0;
    ASSERT_TRUE(absl::SimpleAtod(line.substr(before, unit - before), &now_held))
        << line;
    line.remove_prefix(unit + 3);
    ASSERT_TRUE(absl::SimpleAtod(line.substr(0, line.find('%')), &now_again))
        << line;
    EXPECT_LT(now_held, held) << out.str();
    EXPECT_GE(now_again, again) << out.str();
    held = now_held;
    again = now_again;
    ++lines;
  }
  EXPECT_EQ(lines, 4) << out.str();
  EXPECT_GT(again, 0);
  EXPECT_THAT(out.str(), HasSubstr("the gradients agree to 5 digits"));
}

}  // namespace
}  // namespace cleave
