#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

VerdictKind KindOf(const CheckReport& report, Layer layer) {
  if (report.ops.size() != 1) return VerdictKind::kNotChecked;
  const auto it = report.ops[0].layers.find(layer);
  return it == report.ops[0].layers.end() ? VerdictKind::kNotChecked
                                          : it->second.kind;
}

std::string RootMeanSquare(const std::string& domain) {
  return absl::StrCat(R"(language 1

op checked(x: T[A.., n]) -> T[A..]
  where T: float
  compute acc
  error shape "nothing" if n == 0
)",
                      domain, R"(
  spec y[a..] = sqrt(sum[i](x[a.., i]^2) / n)
  accuracy T within 3 ulp + 1 cond
{
  let q = reduce_sum(x * x, axes: [len(A)], keepdims: false) / n
  sqrt(select(q == 0, inf, q)) * select(q == 0, 0, 1)
}
)");
}

// Samples reach numbers whose squares leave the range.
TEST(Domain, SquaresThatAreNotScaledNeedOne) {
  const CheckReport report =
      CheckText("f.rules", RootMeanSquare("  domain true"), "checked");
  EXPECT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kDisagrees)
      << report.ToString();
}

std::string LargeRoot(const std::string& domain) {
  return absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
)",
                      domain, R"(
  spec y = sqrt(x)
  accuracy T within 1 ulp
  = sqrt(max(x, 1))
)");
}

// The body is another function below 1: over the reals, in its values, at
// edges and in its slopes.
TEST(Domain, IsThatOfAllLayers) {
  const CheckReport within =
      CheckText("f.rules", LargeRoot("  domain x > 1 or isnan(x)"), "checked");
  const CheckReport everywhere =
      CheckText("f.rules", LargeRoot("  domain true"), "checked");
  for (const Layer layer :
       {Layer::kReals, Layer::kRounding, Layer::kEdges, Layer::kTransforms}) {
    EXPECT_EQ(KindOf(within, layer), VerdictKind::kAgrees) << within.ToString();
    EXPECT_EQ(KindOf(everywhere, layer), VerdictKind::kDisagrees)
        << everywhere.ToString();
  }
}

// The inputs with which the layer refutes an op whose spec is 2 x for x > 6.5;
// the report where it does not.
std::string RefutingInputs(const std::string& claim_and_body, Layer layer) {
  const CheckReport report = CheckText("f.rules",
                                       absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  domain x > 6.5
  spec y = 2 * x
)",
                                                    claim_and_body),
                                       "checked");
  if (KindOf(report, layer) != VerdictKind::kDisagrees) {
    return report.ToString();
  }
  return report.ops[0].layers.at(layer).counterexample->inputs;
}

// Inputs are made plainer within it: of one digit, and not 0 or 1.
TEST(Domain, IsNotLeftByCounterexamples) {
  EXPECT_EQ(RefutingInputs(R"(  accuracy T within 1 ulp
{
  x + x
  jvp x = 3 * dx
}
)",
                           Layer::kTransforms),
            "x = 1e+01 (0x1.4p+3)");
}

TEST(Domain, IsNotLeftByCounterexamplesOverTheReals) {
  EXPECT_EQ(RefutingInputs("  = x + x + 1\n", Layer::kReals),
            "x = 7 (0x1.cp+2)");
}

// Elements outside are counted, and are no samples.
TEST(Domain, IsNoted) {
  const CheckReport report =
      CheckText("f.rules", LargeRoot("  domain x > 1 or isnan(x)"), "checked");
  ASSERT_EQ(report.ops.size(), 1);
  bool is_noted = false;
  for (const std::string& note :
       report.ops[0].layers.at(Layer::kRounding).notes) {
    is_noted |= note.find("outside the domain") != std::string::npos;
  }
  EXPECT_TRUE(is_noted) << report.ToString();
}

// A body that is wrong everywhere agrees nowhere, nor does a wrong derivative,
// where there is nothing to tell it by.
TEST(Domain, WithNothingInItIsNoEvidence) {
  for (const char* domain : {"x != x and x == x", "x == inf"}) {
    for (const char* spec : {"  spec y = 3 * x\n", ""}) {
      const CheckReport report = CheckText("f.rules",
                                           absl::Substitute(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  domain $0
$1{
  x * 2
  jvp x = dx * 7
}
)",
                                                            domain, spec),
                                           "checked");
      EXPECT_EQ(KindOf(report, Layer::kTransforms), VerdictKind::kInconclusive)
          << report.ToString();
      const VerdictKind values =
          *spec == '\0' ? VerdictKind::kNotChecked : VerdictKind::kInconclusive;
      EXPECT_EQ(KindOf(report, Layer::kReals), values) << report.ToString();
      EXPECT_EQ(KindOf(report, Layer::kRounding), values) << report.ToString();
    }
  }
}

TEST(Domain, OfWeightsThatAddUpToOneIsMet) {
  const auto check = [](const char* body) {
    return CheckText("f.rules",
                     absl::Substitute(R"(language 1

op checked(x: T[S.., n], w: T[n]) -> T[S..]
  where T: float
  error shape "there are no weights" if n == 0
  domain reduce_min(w, axes: [0], keepdims: false) >= 0
    and abs(reduce_sum(w, axes: [0], keepdims: false) - 1) < 1 / 100
  spec y[s..] = sum[i](x[s.., i] * w[i])
  accuracy T within 4 ulp + 8 cond
  = $0
)",
                                      body),
                     "checked");
  };
  const CheckReport right =
      check("reduce_sum(x * w, axes: [len(S)], keepdims: false)");
  const CheckReport wrong =
      check("reduce_sum(x * w * w, axes: [len(S)], keepdims: false)");
  for (const Layer layer :
       {Layer::kReals, Layer::kRounding, Layer::kTransforms}) {
    EXPECT_EQ(KindOf(right, layer), VerdictKind::kAgrees) << right.ToString();
    EXPECT_EQ(KindOf(wrong, layer), VerdictKind::kDisagrees)
        << wrong.ToString();
  }
}

// The axes of an absent input have no extents, and the result has a shape.
TEST(Domain, IsThatOfCallsWithoutAnOptionalInput) {
  const CheckReport report = CheckText("f.rules", R"(language 1

op checked(x: T[S..], b: T[R..], c: T[C..]?) -> T[broadcast([S, R, C])..]
  where T: float
  domain b > 0 and x == x
  spec y = select(b > 0, x, x + 1) + (c ?? 0)
  accuracy T within 1 ulp
  = select(b == b, x, x) + (c ?? 0)
)",
                                       "checked");
  for (const Layer layer :
       {Layer::kReals, Layer::kRounding, Layer::kEdges, Layer::kTransforms}) {
    EXPECT_EQ(KindOf(report, layer), VerdictKind::kAgrees) << report.ToString();
  }
}

// Conditions are evaluated by themselves where they have no call in common: on
// an operand, and on what the rule makes of an extent.
TEST(Domain, IsWhereAllConditionsHold) {
  const auto check = [](const std::string& body) {
    return CheckText("f.rules",
                     absl::StrCat(R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  domain reduce_all(abs(x) > 1, axes: [0], keepdims: false)
    and reduce_all(places(n) < 4, axes: [0], keepdims: false)
    and reduce_all(abs(x) < 1000, axes: [0], keepdims: false)
  spec y[i] = sqrt(abs(x[i]))
  accuracy T within 1 ulp
  = )",
                                  body, R"(

def places(n)
{
  y[i < n] = i
}
)"),
                     "checked");
  };
  // Wrong outside of one condition, and within all of them.
  for (const char* body : {"sqrt(max(abs(x), 1))", "sqrt(min(abs(x), 1000))",
                           "if n > 4 then x else sqrt(abs(x))"}) {
    const CheckReport outside = check(body);
    EXPECT_EQ(KindOf(outside, Layer::kRounding), VerdictKind::kAgrees)
        << outside.ToString();
  }
  const CheckReport within = check("sqrt(max(abs(x), 2))");
  EXPECT_EQ(KindOf(within, Layer::kRounding), VerdictKind::kDisagrees)
      << within.ToString();
}

TEST(Domain, ThatCannotBeEvaluatedIsReported) {
  const CheckReport report = CheckText(
      "f.rules", LargeRoot("  domain reduce_all(x > 1, axis: 0)"), "checked");
  ASSERT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kInconclusive)
      << report.ToString();
  // By its place, and not by the op that the checker makes of it.
  EXPECT_THAT(report.ops[0].layers.at(Layer::kRounding).why,
              testing::HasSubstr("the `domain` clause at f.rules:5: "
                                 "`reduce_all` has no attribute `axis`"));
}

// Results that an attribute makes integers or floats.
TEST(Domain, IsThatOfAllDTypesOfAResult) {
  for (const char* where : {"T: real, D: real", "T: real, D: int", "T: real"}) {
    const auto check = [&](const char* body) {
      return CheckText("f.rules",
                       absl::Substitute(R"(language 1

op checked(x: T[n], *, D: dtype = T) -> D[n]
  where $0
  domain x > 0
  spec y[i] = convert(x[i], dtype: D)
  = $1
)",
                                        where, body),
                       "checked");
    };
    const CheckReport within = check("convert(max(x, 0), dtype: D)");
    const CheckReport wrong = check("convert(min(x, 3), dtype: D)");
    for (const Layer layer : {Layer::kRounding, Layer::kEdges}) {
      EXPECT_EQ(KindOf(within, layer), VerdictKind::kAgrees)
          << within.ToString();
    }
    EXPECT_EQ(KindOf(wrong, Layer::kRounding), VerdictKind::kDisagrees)
        << wrong.ToString();
  }
}

}  // namespace
}  // namespace cleave
