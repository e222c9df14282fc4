// Examples of results and of derivatives, and laws beside a formula: what the
// spec of an op leaves open.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using testing::HasSubstr;

// The verdict of the layer of examples on the only op or `jvp` item.
Verdict ExamplesOf(const std::string& text, const std::string& name) {
  CheckOptions options;
  options.ops = name;
  options.layers = {Layer::kExamples};
  const CheckReport report = CheckedRules(
      LoadText("test.rules", absl::StrCat("language 1\n\n", text)), options);
  EXPECT_EQ(report.ops.size(), 1u);
  if (report.ops.size() != 1) return Verdict();
  return report.ops[0].layers.at(Layer::kExamples);
}

constexpr char kRamp[] = R"(op ramp(x: T[S..]) -> T[S..]
  where T: real
  spec y[s..] = select(x[s..] < 0, 0, x[s..])
)";

std::string Ramp(const std::string& rest) {
  return absl::StrCat(kRamp, "  = max(x, 0) @tie(second)\n\n", rest);
}

TEST(CheckExamples, SaysWhatADerivativeIs) {
  for (const char* right :
       {"jvp ramp([-1.0, 0.0, 2.0])([3.0, 4.0, 5.0]) = [0.0, 0.0, 5.0]",
        // One number is the tangent everywhere.
        "jvp ramp([-1.0, 0.0, 2.0])(x: 1) = [0.0, 0.0, 1.0]",
        "vjp ramp([0.0, 2.0])([1.0, 2.0]) = (x = [0.0, 2.0])",
        "jvp ramp([inf])(1) ~ [1.0000001]"}) {
    const Verdict verdict =
        ExamplesOf(Ramp(absl::StrCat("example ", right, "\n")), "ramp");
    EXPECT_EQ(verdict.kind, VerdictKind::kAgrees)
        << right << ": " << verdict.ToString();
  }
  const Verdict verdict =
      ExamplesOf(Ramp("example jvp ramp([0.0])(1) = [0.5]\n"), "ramp");
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  EXPECT_EQ(verdict.counterexample->got, "f32[1] [0]");
  EXPECT_EQ(verdict.counterexample->place, "test.rules:8");
}

// The integer -0 is 0.
TEST(CheckExamples, TellsTheZerosOfAttributesApart) {
  const std::string op =
      "op over(x: T[S..], *, by: real) -> T[S..]\n  where T: float\n"
      "  spec y[s..] = x[s..] / by\n  = x / by\n\nexample over([1.0, -1.0], ";
  for (const char* right : {"by: -0.0) = [-inf, inf]", "by: 0.0) = [inf, -inf]",
                            "by: -0) = [inf, -inf]", "by: 0) = [inf, -inf]"}) {
    const Verdict verdict = ExamplesOf(op + right + "\n", "over");
    EXPECT_EQ(verdict.kind, VerdictKind::kAgrees)
        << right << ": " << verdict.ToString();
  }
  EXPECT_EQ(ExamplesOf(op + "by: -0.0) = [inf, -inf]\n", "over").kind,
            VerdictKind::kDisagrees);
}

TEST(CheckExamples, TellTheNegativeZeroOfAResult) {
  const std::string op =
      "op times(x: T[S..], y: T[S..]) -> T[S..]\n  where T: float\n  = ";
  const std::string example = "\n\nexample times([-1.0, 1.0], [0.0, 0.0]) = ";
  for (const char* right : {"[-0.0, 0.0]", "[0.0, 0.0]"}) {
    EXPECT_EQ(ExamplesOf(op + "x * y" + example + right + "\n", "times").kind,
              VerdictKind::kAgrees)
        << right;
  }
  const Verdict verdict =
      ExamplesOf(op + "x * y + 0 * y" + example + "[-0.0, 0.0]\n", "times");
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  EXPECT_EQ(verdict.counterexample->got, "f32[2] [0, 0]");
}

TEST(CheckExamples, SaysWhatTheDerivativeOfAPrimitiveIs) {
  const std::string slope = "example jvp sqrt([0.0, 4.0])(1) = ";
  EXPECT_EQ(ExamplesOf(slope + "[inf, 0.25]\n", "jvp sqrt").kind,
            VerdictKind::kAgrees);
  EXPECT_EQ(ExamplesOf(slope + "[0.0, 0.25]\n", "jvp sqrt").kind,
            VerdictKind::kDisagrees);
}

TEST(CheckExamples, RefusesWhatHasNoMeaning) {
  for (const auto& [example, why] :
       {std::pair("jvp ramp([0.0])(z: 1) = [0.0]", "`z` has no tangent"),
        std::pair("jvp ramp([0.0])(1, 1) = [0.0]", "1 tangents to give"),
        std::pair("jvp ramp([1])(1) = [0.0]", "`x` is of i64"),
        std::pair("vjp ramp([0.0])(z: 1) = (x = [0.0])",
                  "`z` has no cotangent")}) {
    const Verdict verdict =
        ExamplesOf(Ramp(absl::StrCat("example ", example, "\n")), "ramp");
    ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees)
        << example << ": " << verdict.ToString();
    EXPECT_THAT(verdict.counterexample->got, HasSubstr(why)) << example;
  }
  const Verdict verdict =
      ExamplesOf(Ramp("example vjp ramp([0.0])(1) = (z = [0.0])\n"), "ramp");
  EXPECT_EQ(verdict.kind, VerdictKind::kInconclusive);
  EXPECT_THAT(verdict.why, HasSubstr("no result `z`: they are x"));
}

// A derivative may be there by one input alone.
TEST(CheckExamples, TakesTheInputsThatAreNamed) {
  const auto with = [](const std::string& right) {
    return ExamplesOf(absl::StrCat(R"(op scaled(x: T[n], k: T[n]) -> (y: T[n])
  where T: float
{
  (y = x * k)
  jvp x = dx * k
  jvp k = dk * impossible("k is a count")
}

example vjp scaled([1.0], [2.0])(1) = )",
                                   right, "\n"),
                      "scaled");
  };
  EXPECT_EQ(with("(x = [2.0])").kind, VerdictKind::kAgrees);
  EXPECT_EQ(with("(x = [3.0])").kind, VerdictKind::kDisagrees);
  EXPECT_EQ(with("(k = [1.0])").kind, VerdictKind::kInconclusive);
}

// Also where its derivative stands in another file.
TEST(CheckExamples, OfAPrimitiveAreChecked) {
  for (const auto& [example, kind] :
       {std::pair("exp([0.0]) = [1.0]", VerdictKind::kAgrees),
        std::pair("exp([0.0]) = [2.0]", VerdictKind::kDisagrees),
        std::pair("vjp exp([0.0])(1) = (x = [1.0])", VerdictKind::kAgrees),
        std::pair("jvp exp([0.0])(1) = [2.0]", VerdictKind::kDisagrees)}) {
    CheckOptions options;
    options.sources = {"test.rules"};
    const auto report = CheckRules(
        LoadText("test.rules",
                 absl::StrCat("language 1\n\nexample ", example, "\n")),
        options);
    ASSERT_OK(report);
    ASSERT_EQ(report->ops.size(), 1u) << example;
    EXPECT_EQ(report->ops[0].layers.at(Layer::kExamples).kind, kind) << example;
    EXPECT_EQ(report->ops[0].layers.count(Layer::kTransforms), 0u) << example;
  }
}

// A string has values that no sampler knows; the calls of the examples are made
// in all dtypes.
TEST(CheckExamples, AreCalledInEachDType) {
  for (const char* dtype : {"f16", "bf16", "f64", "u8", "i64"}) {
    const CheckReport report =
        CheckText("test.rules",
                  absl::StrCat(R"(language 1

op named(x: T[n], *, by: str) -> T[n]
  where T: number
  error value "there is no such name" if by != "two"
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
  = if T == )",
                               dtype,
                               R"( then x + x + 1 else x + x

example named([1.5, 2.0], by: "two") = [3.0, 4.0]
)"),
                  "named");
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.Count(VerdictKind::kDisagrees), 1) << dtype << "\n"
                                                        << report.ToString();
  }
}

// The verdict on an example of a sum.
Verdict OfSum(const std::string& example) {
  return ExamplesOf(absl::StrCat(R"(op added(a: T[S..], b: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = a[s..] + b[s..]
  = a + b

example )",
                                 example, "\n"),
                    "added");
}

TEST(CheckExamples, HaveFillsAndDTypes) {
  for (const char* example : {
           // Out of the range of f32, which the other operand has, too.
           "added(convert([1e200], dtype: f64), [1e200]) = [2e200]",
           "added(full([70000], 1.0), full([70000], 2.0)) = full([70000], 3.0)",
           "added(full([0, 3], 1.0), full([0, 3], 2.0)) = full([0, 3], 3.0)",
           "added(full([2], 1.0, dtype: f16), [2.0, 1.0]) = [3.0, 2.0]",
           "added(convert([1.0], dtype: f16), [2.0])"
           " = convert([3.0], dtype: f16)",
           "vjp added(convert([1.0], dtype: f64), [2.0])([1e300])"
           " = (a = [1e300])",
       }) {
    const Verdict verdict = OfSum(example);
    EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << example << verdict.why;
  }
  for (const char* example : {
           "added(full([70000], 1.0), full([70000], 2.0)) = full([70000], 4.0)",
           "added(full([0, 3], 1.0), full([0, 3], 2.0)) = full([3, 0], 3.0)",
           "added([1.0], [2.0]) = convert([3.0], dtype: f64)",
           "added(convert([1.0], dtype: f16), convert([2.0], dtype: f32))"
           " = [3.0]",
       }) {
    const Verdict verdict = OfSum(example);
    EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << example << verdict.why;
    // A tensor of many elements is not written out.
    EXPECT_LT(verdict.counterexample->got.size(), 200u) << example;
  }
}

TEST(CheckExamples, RefuseOtherWaysToWriteTensors) {
  for (const char* value :
       {"full([1000000, 1000000], 1.0)", "full([-1], 1.0)", "full([1.5], 1.0)",
        "full(3, 1.0)", "convert([1.0])", "convert([1.0], type: f64)",
        "convert([1.0], dtype: 3)", "sin([1.0])"}) {
    const Verdict verdict =
        OfSum(absl::StrCat("added(", value, ", [1.0]) = [2.0]"));
    EXPECT_EQ(verdict.kind, VerdictKind::kInconclusive) << value << verdict.why;
  }
}

// An example has a value: a body that refuses the call is wrong.
// An error that is small beside the operands, and not beside the result.
TEST(CheckExamples, AreHeldToAClaimInEps) {
  const auto difference = [](const char* right) {
    return ExamplesOf(absl::StrCat(R"(op difference(x: T[2]) -> T[]
  where T: float
  spec y = x[0] - x[1]
  accuracy T within 4 eps * (abs(x[0]) + abs(x[1]))
  = reduce_sum(x, axes: [0], keepdims: false) - 2 * x[1]

example difference([1.0, 1.0000001]) ~ )",
                                   right, "\n"),
                      "difference");
  };
  const Verdict within = difference("-1e-7");
  EXPECT_EQ(within.kind, VerdictKind::kAgrees) << within.ToString();
  const Verdict beyond = difference("-2e-6");
  ASSERT_EQ(beyond.kind, VerdictKind::kDisagrees);
  EXPECT_THAT(beyond.counterexample->got, HasSubstr(" eps off where 8 are"));
}

TEST(CheckExamples, HaveUnsignedNumbersOfAllBits) {
  const auto ones = [](const char* right) {
    return ExamplesOf(absl::StrCat(R"(op ones(x: u64[S..]) -> u64[S..]
  spec y = 0 * x + 18446744073709551615
  = 0 * x + 18446744073709551615

example ones([1]) = [)",
                                   right, "]\n"),
                      "ones");
  };
  const Verdict right = ones("18446744073709551615");
  EXPECT_EQ(right.kind, VerdictKind::kAgrees) << right.ToString();
  const Verdict wrong = ones("18446744073709551614");
  ASSERT_EQ(wrong.kind, VerdictKind::kDisagrees);
  EXPECT_EQ(wrong.counterexample->got, "u64[1] [18446744073709551615]");
}

TEST(CheckExamples, RefusedCallDisagrees) {
  const Verdict verdict = ExamplesOf(R"(op joined(x: T[n], z: T[m]) -> T[n]
  where T: float
  error shape "the sizes differ" if n != m
  = x + z

example joined([1.0, 2.0], [1.0]) = [2.0, 3.0]

example joined([1.0, 2.0], [1.0, 2.0, 3.0]) = [2.0, 4.0]
)",
                                     "joined");
  EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << verdict.ToString();
}

constexpr char kLaw[] = "  spec jvp ramp(x)(1)[s..] == 0 if x[s..] == 0\n";

TEST(CheckExamples, ALawSaysWhatAFormulaLeavesOpen) {
  const auto with = [](const std::string& tie) {
    return absl::StrCat(kRamp, kLaw, "  = max(x, 0)", tie, "\n");
  };
  EXPECT_EQ(ExamplesOf(with(" @tie(second)"), "ramp").kind,
            VerdictKind::kAgrees);
  const Verdict verdict = ExamplesOf(with(""), "ramp");
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  EXPECT_EQ(verdict.counterexample->place, "test.rules:6");
  EXPECT_THAT(verdict.counterexample->what, HasSubstr("law jvp ramp"));
}

// A law holds where the op means something: counterexamples stay there, too.
TEST(CheckExamples, ALawIsAskedWithinTheDomain) {
  const auto rule = [](const std::string& body) {
    return absl::StrCat(R"(op root(x: T[S..]) -> T[S..]
  where T: float
  domain x > 1
  spec not abs(y[s..] * y[s..] - x[s..]) > 2^-6 * abs(x[s..])
  = )",
                        body, "\n");
  };
  EXPECT_EQ(ExamplesOf(rule("sqrt(max(x, 1))"), "root").kind,
            VerdictKind::kAgrees);
  const Verdict verdict = ExamplesOf(rule("sqrt(max(x, 2))"), "root");
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  const std::string inputs = verdict.counterexample->inputs;
  EXPECT_THAT(inputs, HasSubstr("1."));
}

// The formula counts as without laws.
TEST(CheckExamples, ALawBesideAFormulaHidesNothing) {
  const CheckReport report =
      CheckText("test.rules",
                absl::StrCat("language 1\n\n", kRamp, kLaw,
                             "  = max(x, 1) @tie(second)\n"),
                "ramp");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kReals).kind,
            VerdictKind::kDisagrees);
}

}  // namespace
}  // namespace cleave
