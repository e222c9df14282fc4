// The clauses `approximates` and `accuracy .. on`.

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

Verdict VerdictOf(const CheckReport& report, Layer layer) {
  if (report.ops.size() != 1) return Verdict();
  const auto it = report.ops[0].layers.find(layer);
  return it == report.ops[0].layers.end() ? Verdict() : it->second;
}

// exp near 0 by its series, whose first term that is left out is x^8 / 8!:
// 2^-15.3 of the result at 1, and 2^-47.3 at 1 / 16.
std::string Series(const std::string& claims) {
  return absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  domain abs(x) <= 1
  spec y = exp(x)
)",
                      claims, R"(
{
  let a = 1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7)))
  1 + x * (1 + x / 2 * (1 + x / 3 * a))
}
)");
}

constexpr char kHalves[] = R"(  accuracy f64 within 2^40 ulp
  accuracy T within 2^12 ulp)";

TEST(Approximates, WithoutItSpecAndBodyAreOneFunction) {
  const CheckReport report = CheckText("f.rules", Series(kHalves), "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kReals).kind, VerdictKind::kDisagrees)
      << report.ToString();
}

TEST(Approximates, AllowsThePartThatItSays) {
  const CheckReport report = CheckText(
      "f.rules", Series(absl::StrCat("  approximates within 2^-13\n", kHalves)),
      "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kReals).kind, VerdictKind::kAgrees)
      << report.ToString();
  EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind, VerdictKind::kAgrees)
      << report.ToString();
}

TEST(Approximates, AllowsNoMore) {
  const CheckReport report = CheckText(
      "f.rules", Series(absl::StrCat("  approximates within 2^-20\n", kHalves)),
      "checked");
  const Verdict reals = VerdictOf(report, Layer::kReals);
  ASSERT_EQ(reals.kind, VerdictKind::kDisagrees) << report.ToString();
  EXPECT_TRUE(absl::StrContains(reals.counterexample->got,
                                "where 9.54e-07 of it is allowed"))
      << report.ToString();
}

TEST(Approximates, OnARangeClaimsNothingElsewhere) {
  const std::string narrow =
      "  approximates within 2^-44 on x in [-1 / 16, 1 / 16]\n";
  const CheckReport refuted =
      CheckText("f.rules", Series(absl::StrCat(narrow, kHalves)), "checked");
  const Verdict reals = VerdictOf(refuted, Layer::kReals);
  ASSERT_EQ(reals.kind, VerdictKind::kDisagrees) << refuted.ToString();
  // Beyond the range spec and body are to be equal.
  EXPECT_FALSE(absl::StrContains(reals.counterexample->got, "allowed"))
      << refuted.ToString();
  const CheckReport agrees = CheckText(
      "f.rules",
      Series(absl::StrCat(narrow, "  approximates within 2^-13\n", kHalves)),
      "checked");
  EXPECT_EQ(VerdictOf(agrees, Layer::kReals).kind, VerdictKind::kAgrees)
      << agrees.ToString();
}

// An exponential by the bits of its result, and ops that call it, whose
// derivatives and values over the reals are those of exp then.
std::string ByBits(absl::string_view product) {
  return absl::StrCat(R"(language 1
op fast_exp2(x: f32[S..]) -> f32[S..]
  domain x >= -100 and x <= 100
  spec y = exp(x * log(2))
  approximates within 2^-22
  accuracy f32 within 6 ulp
{
  let t = x + (2^23 + 2^22 + 127)
  let f = x - (t - (2^23 + 2^22 + 127))
  let p = fold(s = 0.00132647273, c in [0.00967151299, 0.0555073358, 0.240222424, 0.693147004, 1]) {
    fma(s, f, c)
  }
  p * bitcast_convert(shift_left(bitcast_convert(t, dtype: u32), 23), dtype: f32)
  jvp x = dx * log(2) * exp(x * log(2))
}
op checked(x: f32[S..]) -> f32[S..]
  domain x >= -100 and x <= 100
  spec y = x * 2^x
  accuracy f32 within 8 ulp
  = )",
                      product, R"(
op without_spec(x: f32[n]) -> f32[n]
  domain x >= -100 and x <= 100
  = reduce_sum(checked(x), axes: [0], keepdims: true) * x
)");
}

TEST(Approximates, ByBitPatternsMeansTheSpec) {
  const std::string rules = ByBits("x * fast_exp2(x)");
  for (const char* op : {"fast_exp2", "checked", "without_spec"}) {
    const CheckReport report = CheckText("f.rules", rules, op);
    EXPECT_EQ(VerdictOf(report, Layer::kTransforms).kind, VerdictKind::kAgrees)
        << report.ToString();
  }
  const CheckReport report = CheckText("f.rules", rules, "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kReals).kind, VerdictKind::kAgrees)
      << report.ToString();
  EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind, VerdictKind::kAgrees)
      << report.ToString();
  // A slope that is taken for a constant has none itself.
  const CheckReport constant = CheckText(
      "f.rules",
      absl::StrReplaceAll(
          rules, {{"exp(x * log(2))\n}", "nograd(exp(x * log(2)))\n}"}}),
      "fast_exp2");
  EXPECT_EQ(VerdictOf(constant, Layer::kTransforms).kind,
            VerdictKind::kDisagrees)
      << constant.ToString();
  // Far less than what `fast_exp2` leaves over the reals.
  const CheckReport refuted =
      CheckText("f.rules", ByBits("x * fast_exp2(x) * (1 + 2^-40)"), "checked");
  EXPECT_EQ(VerdictOf(refuted, Layer::kReals).kind, VerdictKind::kDisagrees)
      << refuted.ToString();
}

// log(x (1 + 2^-30)) is log(x) + 2^-30: near 1, where log(x) is 0, no part of
// it.
TEST(Approximates, TakesTheConditionOfTheOp) {
  const auto report = [](const std::string& claim) {
    return CheckText("f.rules",
                     absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  domain x > 1 / 2 and x < 2
  spec y = log(x)
  approximates within )",
                                  claim, R"(
  accuracy f64 within 2^40 ulp + 2^40 cond
  accuracy T within 2^12 ulp + 2^12 cond
  = log(x + x * 2^-30)
)"),
                     "checked");
  };
  const CheckReport plain = report("2^-28");
  EXPECT_EQ(VerdictOf(plain, Layer::kReals).kind, VerdictKind::kDisagrees)
      << plain.ToString();
  const CheckReport conditional = report("2^-50 + 2^-29 cond");
  EXPECT_EQ(VerdictOf(conditional, Layer::kReals).kind, VerdictKind::kAgrees)
      << conditional.ToString();
}

// log(1 + x) loses what small numbers have: right above 1 alone.
std::string Loses(const std::string& claims) {
  return absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = log1p(x)
)",
                      claims, R"(
  = log(1 + x)
)");
}

TEST(AccuracyOn, ClaimsAPartOfTheInputs) {
  const CheckReport everywhere =
      CheckText("f.rules", Loses("  accuracy T within 3 ulp"), "checked");
  EXPECT_EQ(VerdictOf(everywhere, Layer::kRounding).kind,
            VerdictKind::kDisagrees)
      << everywhere.ToString();
  const CheckReport part =
      CheckText("f.rules", Loses("  accuracy T within 3 ulp on x in [1, inf]"),
                "checked");
  const Verdict rounding = VerdictOf(part, Layer::kRounding);
  EXPECT_EQ(rounding.kind, VerdictKind::kAgrees) << part.ToString();
  bool is_noted = false;
  for (const std::string& note : rounding.notes) {
    is_noted |= absl::StrContains(note, "of which no accuracy is claimed");
  }
  EXPECT_TRUE(is_noted) << part.ToString();
}

TEST(AccuracyOn, IsRefutedWithinItsRange) {
  const CheckReport report = CheckText(
      "f.rules", Loses("  accuracy T within 3 ulp on x in [0.01, inf]"),
      "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind, VerdictKind::kDisagrees)
      << report.ToString();
}

// The body is another function from 7.125 on, which no guard of it tells.
TEST(AccuracyOn, IsMetAtTheEndsOfItsRange) {
  const auto edges = [](const std::string& range) {
    return VerdictOf(CheckText("f.rules",
                               absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = 2 * x
  accuracy T within 3 ulp on x in )",
                                            range, R"(
  = 2 * x + floor(x / 7.125)
)"),
                               "checked"),
                     Layer::kEdges);
  };
  EXPECT_EQ(edges("[1 / 2, 7]").kind, VerdictKind::kAgrees);
  EXPECT_EQ(edges("[1 / 2, 7.125]").kind, VerdictKind::kDisagrees);
}

TEST(AccuracyOn, TheFirstClauseThatHoldsCounts) {
  const CheckReport report =
      CheckText("f.rules",
                Loses("  accuracy T within 3 ulp on x in [1, inf]\n"
                      "  accuracy T within inf ulp"),
                "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind, VerdictKind::kAgrees)
      << report.ToString();
}

// The spec of an elementwise op need not be: it may sum a series.
TEST(Accuracy, TakesTheConditionOfASeries) {
  const CheckReport report = CheckText("f.rules", R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  domain abs(x) <= 4
  spec y[s..] = sum[k < 3](x[s..]^k)
  accuracy T within 8 ulp + 8 cond
  = 1 + x * (1 + x)
)",
                                       "checked");
  EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind, VerdictKind::kAgrees)
      << report.ToString();
}

TEST(Accuracy, IsComparedWithoutInputs) {
  for (const char* body :
       {"convert(iota(n), dtype: f32)", "zeros(shape: [n], dtype: f32)"}) {
    const CheckReport report = CheckText("f.rules",
                                         absl::StrCat(R"(language 1

op checked(*, n: dim) -> f32[n]
  spec y[i] = 2 * i / 2
  = )",
                                                      body, "\n"),
                                         "checked");
    const bool right = absl::StrContains(body, "iota");
    EXPECT_EQ(VerdictOf(report, Layer::kRounding).kind,
              right ? VerdictKind::kAgrees : VerdictKind::kDisagrees)
        << report.ToString();
  }
}

// A bound of the spec's index that a `let` of the spec gives.
TEST(Accuracy, TakesTheIndicesOfASpecWithNames) {
  const auto report = [](const char* factor) {
    return CheckText("f.rules",
                     absl::StrCat(R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  domain abs(x) < 100
  spec {
    let half = n // 2
    let m = half + n - half
    y[i < m] = sum[j if j <= i](x[j])
  }
  accuracy T within )",
                                  factor, R"( eps * sum[j if j <= i](abs(x[j]))
{
  y[i] = sum[j if j <= i](x[j])
}
)"),
                     "checked");
  };
  const CheckReport right = report("(1 + n)");
  for (const Layer layer : {Layer::kRounding, Layer::kEdges}) {
    EXPECT_EQ(VerdictOf(right, layer).kind, VerdictKind::kAgrees)
        << right.ToString();
  }
  const CheckReport wrong = report("(n / 1000)");
  EXPECT_EQ(VerdictOf(wrong, Layer::kRounding).kind, VerdictKind::kDisagrees)
      << wrong.ToString();
}

// The size that an error is a multiple of is a magnitude.
TEST(Accuracy, SaysWhereItIsNegative) {
  const CheckReport report = CheckText("f.rules", R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = 3 * x
  accuracy T within 1 eps * x
  = x + x + x
)",
                                       "checked");
  const Verdict rounding = VerdictOf(report, Layer::kRounding);
  ASSERT_EQ(rounding.kind, VerdictKind::kDisagrees) << report.ToString();
  EXPECT_TRUE(absl::StrContains(rounding.counterexample->ToString(),
                                "ulp; the claim of accuracy is negative here"))
      << report.ToString();
}

}  // namespace
}  // namespace cleave
