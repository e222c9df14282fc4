// Derivatives of primitives, right ones and wrong ones, over real and complex
// numbers.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

// The report on `jvp NAME` of these rules, beside those of arithmetic.
CheckReport ReportOn(const std::string& name, const std::string& rules) {
  const std::string arithmetic = "rules/derivative/arithmetic.rules";
  const absl::StatusOr<std::string> shipped = ReadFile(arithmetic);
  EXPECT_OK(shipped);
  const LoadResult loaded =
      LoadRules({{arithmetic, shipped.value_or("")},
                 {"test.rules", absl::StrCat("language 1\n\n", rules)}},
                std::make_shared<Context>(), WithTransforms());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  CheckOptions options;
  options.ops = absl::StrCat("jvp ", name);
  return CheckedRules(loaded.rules, options);
}

// The report on `jvp sinh`, whose derivative is `slope`.
CheckReport SinhWith(const std::string& slope) {
  return ReportOn("sinh", absl::StrCat("jvp sinh(x) = ", slope,
                                       "\n\njvp cosh(x) = dx * sinh(x)\n"));
}

TEST(CheckPrimitive, RightSlopeAgrees) {
  const CheckReport report = SinhWith("dx * cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kTransforms);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << report.ToString();
}

TEST(CheckPrimitive, WrongSlopeIsRefuted) {
  const CheckReport report = SinhWith("dx * -cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).kind,
            VerdictKind::kDisagrees)
      << report.ToString();
}

TEST(CheckPrimitive, SlopeThatIsWrongInOneDTypeIsRefuted) {
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
    const CheckReport report = SinhWith(absl::StrCat(
        "if dtype(x) == ", dtype, " then 2 * dx * cosh(x) else dx * cosh(x)"));
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).kind,
              VerdictKind::kDisagrees)
        << dtype << report.ToString();
  }
}

// The branch for complex numbers alone is wrong.
TEST(CheckPrimitive, WrongComplexSlopeIsRefuted) {
  const CheckReport report =
      SinhWith("if dtype(x) is complex then dx * sinh(x) else dx * cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kTransforms);
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << report.ToString();
  EXPECT_NE(verdict.counterexample->what.find("by x in c128 along "),
            std::string::npos)
      << verdict.counterexample->what;
}

// Its first derivative is right.
TEST(CheckPrimitive, WrongSecondComplexSlopeIsRefuted) {
  const CheckReport report = SinhWith(
      "if dtype(x) is complex then dx * nograd(cosh(x)) else dx * cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kTransforms);
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << report.ToString();
  EXPECT_NE(verdict.counterexample->what.find("second derivative of sinh"),
            std::string::npos)
      << verdict.counterexample->what;
}

// Most numbers have no acosh, and their NaN hides none of the others.
TEST(CheckPrimitive, WrongSecondSlopeOnPartOfTheLineIsRefuted) {
  for (const bool wrong : {false, true}) {
    const CheckReport report = ReportOn(
        "acosh",
        absl::StrCat("jvp acosh(x) = ",
                     "if dtype(x) is complex then dx * (rsqrt(x - 1) * ",
                     "rsqrt(x + 1)) else dx * ", wrong ? "nograd" : "",
                     "(rsqrt(x - 1) * rsqrt(x + 1))\n"));
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).kind,
              wrong ? VerdictKind::kDisagrees : VerdictKind::kAgrees)
        << report.ToString();
  }
}

// A derivative of real numbers, which have an order, says so.
TEST(CheckPrimitive, SlopeOfRealNumbersAloneAgrees) {
  const CheckReport report = SinhWith("dx * select(x < 0, cosh(-x), cosh(x))");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kTransforms);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << report.ToString();
  ASSERT_FALSE(verdict.notes.empty());
  EXPECT_NE(verdict.notes[0].find("in c128"), std::string::npos)
      << verdict.notes[0];
}

// 0 is a point where the branch for complex numbers gives NaN.
TEST(CheckPrimitive, ComplexSlopeAtAChosenPointIsRefuted) {
  const CheckReport report = SinhWith(
      "if dtype(x) is complex then dx * cosh(x) * x / x else dx * cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).kind,
            VerdictKind::kDisagrees)
      << report.ToString();
}

// A branch that does not type for complex numbers is a mistake.
TEST(CheckPrimitive, ComplexSlopeThatDoesNotTypeIsRefuted) {
  const CheckReport report = SinhWith(
      "if dtype(x) is complex then dx * cosh(floor(x)) else dx * cosh(x)");
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kTransforms);
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << report.ToString();
  EXPECT_NE(verdict.counterexample->what.find("in c128"), std::string::npos)
      << verdict.counterexample->what;
}

}  // namespace
}  // namespace cleave
