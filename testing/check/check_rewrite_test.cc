// Rewrites that hold, and what is wrong with others: each is checked alone.

#include "testing/check/layers/check_rewrite.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

CheckReport Check(const std::string& rewrite) {
  return CheckText("test.rules",
                   absl::StrCat("language 1\n\nrewrite tried: ", rewrite, "\n"),
                   "rewrite tried");
}

TEST(CheckRewrite, Agrees) {
  for (const char* rewrite :
       {"-(-(-x)) => -x", "x * 1 => x where x: real",
        "x // 1 => x where x: int", "select(not not c, x, x) => x",
        "exp(x - 0) => exp(x)", "exp(x) / exp(x) => 1 real",
        "sin(x)^2 + cos(x)^2 => 1 real", "x // y - x // y => 0 where x: int",
        "convert(convert(x, dtype: f64), dtype: f32) => x where x: float",
        "max(x, x) @tie(first) => x"}) {
    const CheckReport report = Check(rewrite);
    ASSERT_EQ(report.ops.size(), 1u) << rewrite;
    for (const auto& [layer, verdict] : report.ops[0].layers) {
      EXPECT_TRUE(verdict.kind == VerdictKind::kAgrees ||
                  verdict.kind == VerdictKind::kNotChecked)
          << rewrite << ": " << report.ToString();
    }
  }
}

struct Wrong {
  const char* rewrite;
  Layer layer;
  const char* call;
  const char* inputs;
};

TEST(CheckRewrite, Refutes) {
  for (const Wrong& wrong : std::vector<Wrong>{
           {"x + 0 => x", Layer::kRounding, "(x: f16)", "x = -0 "},
           {"x + 0 => x where x: float", Layer::kEdges, "", "x = -0 "},
           {"0 * x => 0", Layer::kRounding, "(x: f16)", "x = -0 "},
           {"x - x => 0 where x: float", Layer::kEdges, "", "x = inf"},
           {"x / x => 1 where x: float", Layer::kRounding, "", "0 ("},
           {"1 * x => x", Layer::kEdges, "(x: c64)", "(0, -0)"},
           {"abs(-x) => abs(x)", Layer::kRounding, "(x: u8)", "[1]"},
           {"not x < y => x >= y", Layer::kEdges, "f16", "nan"},
           {"sqrt(x * x) => abs(x)", Layer::kRounding, "(x: f16)", ""},
           {"select(c, x, y) => x", Layer::kRounding, "", "false"},
           {"exp(log(x)) => x", Layer::kRounding, "(x: f16)", ""},
           // Only one value of 65,536 differs.
           {"select(x == 1337, 0, x) => x where x: int", Layer::kRounding,
            "(x: u16)", "[1337]"},
           {"log(1 + x) => x real", Layer::kReals, "(x: f64)", ""},
           {"sqrt(x * x) => x real", Layer::kReals, "", "-"},
           {"log(exp(x)) => abs(x) real", Layer::kReals, "", "-"},
           // The same values, but not the same derivatives.
           {"nograd(x) => x", Layer::kTransforms, "(x: f64)", ""},
           {"abs(nograd(x)) => abs(x)", Layer::kTransforms, "", ""},
       }) {
    const CheckReport report = Check(wrong.rewrite);
    ASSERT_EQ(report.ops.size(), 1u) << wrong.rewrite;
    const Verdict& verdict = report.ops[0].layers.at(wrong.layer);
    ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees)
        << wrong.rewrite << ": " << report.ToString();
    EXPECT_THAT(verdict.counterexample->call, HasSubstr(wrong.call));
    EXPECT_THAT(verdict.counterexample->inputs, HasSubstr(wrong.inputs));
    EXPECT_EQ(report.ExitStatus(), 1);
  }
}

// 16 bits are compared exhaustively, so that agreement says so.
TEST(CheckRewrite, CountsWhatItCompared) {
  const CheckReport report = Check("x // 1 => x where x: int");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].op, "rewrite tried");
  const Verdict& bits = report.ops[0].layers.at(Layer::kRounding);
  EXPECT_GT(bits.samples, 2 * 65536 + 2 * 256);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTypes).samples, 8);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTypes).strength,
            Strength::kExhaustive);
}

// A point outside the domain of the left side is counted, and is no agreement.
TEST(CheckRewrite, SaysWhereTheLeftSideHasNoValue) {
  const CheckReport report = Check("exp(log(x)) => x real");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& reals = report.ops[0].layers.at(Layer::kReals);
  ASSERT_EQ(reals.notes.size(), 1u);
  EXPECT_THAT(reals.notes[0], HasSubstr("no finite value at"));
  EXPECT_LT(reals.samples, 300);
  const CheckReport nowhere = Check("log(-exp(x)) => x real");
  EXPECT_EQ(nowhere.ops[0].layers.at(Layer::kReals).kind,
            VerdictKind::kInconclusive);
}

}  // namespace
}  // namespace cleave
