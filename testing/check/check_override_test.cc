// An `override` is checked like a line of the op: a right one agrees, a wrong
// one is refuted in the layer where it is wrong.

#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr char kRules[] = R"(language 1

op square(x: T[S..]) -> T[S..]
  where T: float
  spec y = x^2
  accuracy T within 1 ulp
  = x * x

op other(x: T[S..]) -> T[S..]
  where T: float
  spec y = -(1 - x)
  accuracy T within 1 ulp
  = x - 1

/// A kernel of the host: the rules have the meaning alone.
op product(x: f64[n], w: f64[n, m]) -> f64[m]
  spec y[j] = sum[i](x[i] * w[i, j])

op unknown(x: f32[n]) -> f32[n]
)";

// Checks the ops that the file user.rules overrides.
CheckReport CheckOverride(const std::string& override) {
  const auto base = LoadText("base.rules", kRules);
  if (base == nullptr) return CheckReport();
  const LoadResult loaded = ExtendRules(
      base, {"user.rules", absl::StrCat("language 1\n\n", override, "\n")});
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  CheckOptions options;
  options.sources = {"user.rules"};
  return loaded.rules == nullptr ? CheckReport()
                                 : CheckedRules(loaded.rules, options);
}

VerdictKind KindOf(const CheckReport& report, Layer layer) {
  EXPECT_EQ(report.ops.size(), 1u) << report.ToString();
  if (report.ops.size() != 1) return VerdictKind::kNotChecked;
  const auto found = report.ops[0].layers.find(layer);
  return found == report.ops[0].layers.end() ? VerdictKind::kNotChecked
                                             : found->second.kind;
}

TEST(CheckOverride, ThatIsRightAgrees) {
  const CheckReport report =
      CheckOverride("override square { jvp x (t) = t * x + x * t }");
  // x^2 is x * x in the spec, too: not independent.
  EXPECT_EQ(report.ExitStatus(), 1) << report.ToString();
  EXPECT_EQ(report.ExitStatus({VerdictKind::kNotIndependent}), 0);
  EXPECT_EQ(KindOf(report, Layer::kTransforms), VerdictKind::kAgrees);
  EXPECT_EQ(report.ops[0].op, "square");
  EXPECT_EQ(report.ops[0].place, "user.rules:3");
}

TEST(CheckOverride, OfABodyIsComparedWithTheSpecOfTheOp) {
  const CheckReport right = CheckOverride("override square = -(x * -x)");
  EXPECT_EQ(right.ExitStatus(), 0) << right.ToString();
  EXPECT_EQ(KindOf(right, Layer::kReals), VerdictKind::kAgrees);
  const CheckReport wrong = CheckOverride("override square = x * abs(x)");
  EXPECT_EQ(KindOf(wrong, Layer::kReals), VerdictKind::kDisagrees)
      << wrong.ToString();
  const Counterexample& example =
      *wrong.ops[0].layers.at(Layer::kReals).counterexample;
  EXPECT_TRUE(absl::StrContains(example.place, "user.rules:3"))
      << example.place;
  EXPECT_TRUE(absl::StrContains(example.replay, "cleave check user.rules"))
      << example.replay;
}

TEST(CheckOverride, OfATransformThatIsWrongIsRefuted) {
  for (const char* line : {"jvp x = 3 * dx * x", "vjp (dy) = (x = dy * x)",
                           "vmap (x) = x * x + 1"}) {
    const CheckReport report =
        CheckOverride(absl::StrCat("override square { ", line, " }"));
    EXPECT_EQ(KindOf(report, Layer::kTransforms), VerdictKind::kDisagrees)
        << line << "\n"
        << report.ToString();
  }
}

TEST(CheckHostOp, HasTransformsThatAreComparedWithTheSpec) {
  const CheckReport right = CheckOverride(R"(override product
{
  jvp x = product(dx, w)
  jvp w = product(x, dw)
  vjp (dy) = (x = w @ dy, w[i, j] = x[i] * dy[j])
}
)");
  EXPECT_EQ(right.ExitStatus(), 0) << right.ToString();
  EXPECT_EQ(KindOf(right, Layer::kTransforms), VerdictKind::kAgrees)
      << right.ToString();
  EXPECT_EQ(KindOf(right, Layer::kReals), VerdictKind::kNotChecked);
  EXPECT_EQ(right.ops[0].layers.at(Layer::kReals).why, "no body");
  const CheckReport wrong =
      CheckOverride("override product { jvp x = 2 * product(dx, w) }");
  EXPECT_EQ(KindOf(wrong, Layer::kTransforms), VerdictKind::kDisagrees)
      << wrong.ToString();
}

TEST(CheckOverride, AnExampleOfAnOpOfAnotherSourceIsRun) {
  const CheckReport wrong = CheckOverride("example square([3.0]) = [6.0]");
  EXPECT_EQ(KindOf(wrong, Layer::kExamples), VerdictKind::kDisagrees)
      << wrong.ToString();
  // The op is not the user's to check.
  EXPECT_EQ(wrong.ops[0].layers.count(Layer::kRounding), 0u);
  const CheckReport right = CheckOverride("example square([3.0]) = [9.0]");
  EXPECT_EQ(KindOf(right, Layer::kExamples), VerdictKind::kAgrees);
}

TEST(CheckHostOp, WithoutASpecIsNotChecked) {
  const CheckReport report = CheckOverride("override unknown { jvp x = dx }");
  EXPECT_EQ(KindOf(report, Layer::kTransforms), VerdictKind::kNotChecked);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).why,
            "no body and no spec");
  EXPECT_EQ(report.ExitStatus(), 0);
}

}  // namespace
}  // namespace cleave
