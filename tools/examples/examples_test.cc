#include "tools/examples/examples.h"

#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

// Training goes on from rounding errors: of its output no digit is sure.
bool IsDeterministic(const Example& example) {
  return absl::string_view(example.name) != "mlp";
}

TEST_P(ExamplesTest, Runs) {
  std::ostringstream out;
  ASSERT_THAT(GetParam().run(TestContext(), out), IsOk());
  EXPECT_NE(out.str(), "");
  if (IsDeterministic(GetParam())) {
    TestGeneratedFile(
        absl::StrCat("tools/examples/testdata/", GetParam().name, ".golden"),
        out.str());
  }
}

TEST_P(ExamplesTest, SaysWhatIsNotThere) {
  ExampleContext context = TestContext();
  context.folder = "tools/nowhere";
  std::ostringstream out;
  EXPECT_THAT(
      GetParam().run(context, out),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("tools/nowhere")));
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

}  // namespace
}  // namespace cleave
