// What each layer finds in small rules: a right one agrees, a wrong one is
// refuted where it is wrong.

#include "testing/check/check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

// The report on the op `checked` that `text` declares.
CheckReport Check(const std::string& text) {
  return CheckText("test.rules", absl::StrCat("language 1\n\n", text),
                   "checked");
}

void ExpectAgrees(const CheckReport& report) {
  ASSERT_EQ(report.ops.size(), 1u);
  for (const auto& [layer, verdict] : report.ops[0].layers) {
    EXPECT_TRUE(verdict.kind == VerdictKind::kAgrees ||
                verdict.kind == VerdictKind::kNotChecked)
        << LayerName(layer) << " of\n"
        << report.ToString();
  }
}

void ExpectRefuted(const CheckReport& report, Layer layer) {
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(layer).kind, VerdictKind::kDisagrees)
      << report.ToString();
}

TEST(Check, IntegersOfASpecWrap) {
  ExpectAgrees(Check(R"(op checked(x: T[S..], a: T[S..]) -> T[S..]
  where T: real
  spec y = x - a
  = x + -a
)"));
}

TEST(Check, IntegersThatSaturateAreRefuted) {
  ExpectRefuted(Check(R"(op checked(x: T[S..], a: T[S..]) -> T[S..]
  where T: real
  spec y = x - a
  = if T is int then select(x < 0 and a > 0 and x - a > 0, x, x - a) else x - a
)"),
                Layer::kRounding);
}

constexpr char kClamp[] =
    R"(op checked(x: T[S..], lo: T[S..], hi: T[S..]) -> T[S..]
  where T: float
  spec y = select(select(x < lo or lo != lo, lo, x) > hi or hi != hi, hi, select(x < lo or lo != lo, lo, x))
{
  min(max(x, lo) @tie(first), hi) @tie(first)
)";

TEST(Check, DerivativesAtTiesAreConventions) {
  ExpectAgrees(Check(absl::StrCat(kClamp, "}\n")));
}

TEST(Check, DerivativesBesideTiesAreNot) {
  ExpectRefuted(
      Check(absl::StrCat(
          kClamp, "  jvp x = select(x <= lo or x >= hi, 0, dx) / 2\n}\n")),
      Layer::kTransforms);
}

TEST(Check, ATangentThatCancelsIsRightOverTheReals) {
  ExpectAgrees(Check(R"(op checked(x: T[n], w: T[n]) -> T[]
  where T: float
  spec y = sum[i](x[i] * w[i]) / sum[i](w[i])
  accuracy T within 4 ulp + 8 cond
  = reduce_sum(x * w, axes: [0], keepdims: false)
    / reduce_sum(w, axes: [0], keepdims: false)
)"));
}

TEST(Check, ClausesBesideADTypeThatAnAttributeGives) {
  ExpectAgrees(Check(R"(op checked(x: T[n], *, D: dtype = T) -> D[]
  where T: number, D: number
  spec y = sum[i](x[i])
  accuracy D within n eps * sum[i](abs(x[i]))
  = reduce_sum(convert(x, dtype: D), axes: [0], keepdims: false)
)"));
}

constexpr char kExtreme[] =
    R"(op checked(x: T[n], *, largest: bool = true) -> (value: T[])
  where T: real
  error shape "nothing to choose from" if n == 0
  spec value >= x[i] if largest, value <= x[i] if not largest
)";

TEST(Check, LawsUnderStaticConditions) {
  ExpectAgrees(Check(absl::StrCat(
      kExtreme,
      "  = (value = if largest then reduce_max(x, axes: [0], keepdims: false) "
      "else reduce_min(x, axes: [0], keepdims: false))\n")));
  ExpectRefuted(
      Check(absl::StrCat(kExtreme,
                         "  = (value = if largest then reduce_max(x, axes: "
                         "[0], keepdims: false) "
                         "else reduce_max(x, axes: [0], keepdims: false))\n")),
      Layer::kExamples);
}

}  // namespace
}  // namespace cleave
