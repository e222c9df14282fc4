// Each layer on small rules: a right one agrees, a wrong one is refuted in the
// layer where it is wrong.

#include "testing/check/check.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "engine/ir/context.h"
#include "engine/rules/rule_files.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

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

void ExpectTransformsAgree(const CheckReport& report) {
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kTransforms).kind,
            VerdictKind::kAgrees)
      << report.ToString();
}

// The slope in one element is infinite; along the others, it is times 0.
TEST(Check, InfiniteSlopesOfOtherElementsRefuteNothing) {
  for (const char* of : {"cbrt", "asin"}) {
    ExpectTransformsAgree(
        Check(absl::Substitute(R"(op checked(x: T[n, m]) -> T[n]
  where T: float
  spec y[i] = sum[j]($0(x[i, j]))
{
  y[i] = sum[j]($0(x[i, j]))
}
)",
                               of)));
  }
}

// One-sided slopes are finite at a kink: NaN is no slope in the other rows.
TEST(Check, NaNBesideAKinkIsRefuted) {
  ExpectRefuted(Check(R"(op checked(x: T[n, m]) -> T[n]
  where T: float
  spec y[i] = sqrt(sum[j](x[i, j]^2))
{
  y[i] = sqrt(sum[j](x[i, j] * x[i, j]))
}
)"),
                Layer::kTransforms);
}

// Complex numbers have no reals to be evaluated over.
TEST(Check, ComplexPartsOfDerivativesAreOffByRounding) {
  ExpectTransformsAgree(Check(R"(op checked(a: f32[n], b: f32[n]) -> f32
  spec y = sum[i](sqrt(a[i]^2 + b[i]^2))
  accuracy f32 within 1 ulp + 1 cond
{
  let z = complex(a, b)
  sum[i](abs(z[i]))
}
)"));
}

// 1 - p is 0 at any precision that is tried, where x is large.
TEST(Check, ASpecThatCancelsToNothingRefutesNothing) {
  const CheckReport report = Check(R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec {
    let p = 1 / (1 + exp(-x))
    y = -log(1 - p)
  }
  accuracy T within 2 ulp + 1 cond
  = select(x > 0, x, 0) + log1p(exp(-abs(x)))
)");
  ASSERT_EQ(report.ops.size(), 1u);
  for (const Layer layer : {Layer::kReals, Layer::kRounding, Layer::kEdges}) {
    EXPECT_EQ(report.ops[0].layers.at(layer).kind, VerdictKind::kAgrees)
        << report.ToString();
  }
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

// The two halves of log(sigmoid(x)) have kinks at 0, the whole has none.
TEST(Check, DerivativesAtTiesOfSmoothFunctionsAreNotConventions) {
  ExpectRefuted(Check(R"(op checked(x: T[S..]) -> T[S..]
  where T: float
{
  let e = exp(-abs(x))
  min(x, 0) - log1p(e)
  jvp x = dx * select(x < 0, 1, 0) + dx * sign(x) * e / (1 + e)
}
)"),
                Layer::kTransforms);
}

// An element in the middle of equal ones has a slope whichever way it is looked
// at, but not a linear one.
TEST(Check, DerivativesOfSortedTiesAreConventions) {
  const CheckReport report = Check(R"(op checked(x: T[3]) -> T[]
  where T: float
{
  let r = sort(x, axis: 0)
  r.values[1]
}
)");
  ExpectAgrees(report);
}

// On both sides of such a point the order of the products is one, and not that
// of equals.
TEST(Check, SecondDerivativesOfSortedTiesAreConventions) {
  ExpectAgrees(Check(R"(op checked(x: T[n], z: T[n]) -> T[n]
  where T: float
{
  let r = sort(x * z, axis: 0)
  r.values
}
)"));
}

TEST(Check, QuotientsOfAProductAreRefutedAtZeros) {
  constexpr char kProduct[] = R"(op checked(x: T[n]) -> T[]
  where T: float
{
  reduce_prod(x, axes: [0], keepdims: false)
)";
  ExpectAgrees(Check(absl::StrCat(kProduct, "}\n")));
  for (const char* quotient : {"  jvp x = y * sum[i](dx[i] / x[i])\n}\n",
                               "  vjp (dy) = (x = dy * y / x)\n}\n"}) {
    ExpectRefuted(Check(absl::StrCat(kProduct, quotient)), Layer::kTransforms);
  }
}

// All nestings agree on a slope that the rule holds constant.
TEST(Check, ASlopeHeldConstantIsRefuted) {
  ExpectRefuted(Check(R"(op checked(x: T[S..]) -> T[S..]
  where T: float
{
  x * x
  jvp x = dx * nograd(2 * x)
}
)"),
                Layer::kTransforms);
}

// Over the reals both modes are right; in reverse 0 meets an overflow.
TEST(Check, SlopesAreRightInFloatsInReverseModeToo) {
  ExpectRefuted(Check(R"(op checked(x: T[S..]) -> T[S..]
  where T: float
{
  elu(x)
  vjp (dy) = (x = select(x > 0, dy, 0) + select(x > 0, 0, dy) * exp(x))
}

op elu(x: T[S..]) -> T[S..]
  where T: float
  = select(x > 0, x, expm1(min(x, 0) @tie(first)))
)"),
                Layer::kTransforms);
}

// Neither all operands have the batch, nor the floats, nor one alone.
TEST(Check, OverridesAreCheckedAtTheSubsetThatTheyAreFor) {
  constexpr char kScaled[] =
      R"(op checked(x: T[n], a: T[], k: i64[]) -> T[n]
  where T: float
{
  x * a + convert(k, dtype: T)
  vmap (x@_, a, k) = outer(x, a, k)
}

def outer(x, a, k)
{
  y[b, i] = x[i] * a[b] + convert(k[b], dtype: dtype(x))
}
)";
  ExpectAgrees(Check(kScaled));
  ExpectRefuted(Check(absl::StrReplaceAll(
                    kScaled, {{"+ convert(k[b]", "- convert(k[b]"}})),
                Layer::kTransforms);
}

// The first precisions lose the logarithm: it is 2^-4328.
TEST(Check, ConditionsAreThoseOfThePrecisionThatKnowsTheValue) {
  const CheckReport report = CheckText("test.rules", R"(language 1

op shifted_sum(a: T[S..], b: T[S..]) -> T[S..]
  where T: float
  domain abs(a) < 1e9 and abs(b) < 1e9
  spec y[s..] = a[s..] + b[s..] + log(1 + exp(0 * a[s..] - 3000))
  accuracy T within 1 ulp + 1 cond
  = a + 1 + (b - 1)
)",
                                       "shifted_sum");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
            VerdictKind::kAgrees)
      << report.ToString();
}

// Derivatives of shipped ops that are right, by a seed at which that takes a
// closer look.
struct Doubtful {
  std::string op;
  uint64_t seed;
};

class RightTangents : public testing::TestWithParam<Doubtful> {};

TEST_P(RightTangents, RefuteNothing) {
  CheckOptions options;
  options.ops = GetParam().op;
  options.layers = {Layer::kTransforms};
  options.seed = GetParam().seed;
  const absl::StatusOr<std::vector<NamedSource>> shipped =
      ReadRuleFiles({"rules"});
  ASSERT_OK(shipped);
  const LoadResult loaded =
      LoadRules(*shipped, std::make_shared<Context>(), WithTransforms());
  ASSERT_NE(loaded.rules, nullptr);
  const CheckReport report = CheckedRules(loaded.rules, options);
  EXPECT_EQ(report.Count(VerdictKind::kDisagrees), 0) << report.ToString();
}

INSTANTIATE_TEST_SUITE_P(
    Check, RightTangents,
    testing::Values(
        // Two rows of a matrix may be the pivot: rounding decides which, over
        // the reals and in floats by itself.
        Doubtful{"lu_factor", 104},
        // Elements of a vector that are nearly equal: rounding of f32 would
        // decide which is the largest.
        Doubtful{"eigenpairs", 709},
        // A sum of terms of which one is infinite in f32, though it is not.
        Doubtful{"prod", 20261145},
        // Results of which some factors are denormal.
        Doubtful{"local_response_norm", 20261133},
        // A mean by one weight: two large terms cancel in its slope, which
        // is 0.
        Doubtful{"nll_loss", 709}),
    [](const auto& doubtful) { return doubtful.param.op; });

// All samples are of these numbers.
TEST(Check, PointsAreAllThatIsChecked) {
  for (const double point : {2.0, 3.0}) {
    CheckOptions options;
    options.ops = "wrong_at_three";
    options.points = {point};
    const CheckReport report = CheckedRules(LoadText("test.rules", R"(language 1

op wrong_at_three(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] * x[s..]
  accuracy T within 1 ulp
  = select(x == 3, x, x * x)
)"),
                                            options);
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
              point == 3 ? VerdictKind::kDisagrees : VerdictKind::kAgrees)
        << report.ToString();
  }
}

TEST(Check, ATangentThatCancelsIsRightOverTheReals) {
  ExpectAgrees(Check(R"(op checked(x: T[n], w: T[n]) -> T[]
  where T: float
  compute acc
  domain reduce_all(abs(x) < 2000 and abs(w) < 2000 and abs(w) > 0.001, axes: [0],
    keepdims: false)
  spec y = sum[i](x[i] * w[i]) / sum[i](w[i])
  accuracy T within 4 ulp + 8 cond
  = reduce_sum(x * w, axes: [0], keepdims: false)
    / reduce_sum(w, axes: [0], keepdims: false)
)"));
}

TEST(Check, ClausesBesideADTypeThatAnAttributeGives) {
  // Integers of 64 bits would be infinities of both signs in f16.
  ExpectAgrees(Check(R"(op checked(x: T[n], *, D: dtype = T) -> D[]
  where T: float, D: float
  domain reduce_all(isnan(x) or isinf(x) or abs(convert(x, dtype: f64)) < 1e9,
    axes: [0], keepdims: false)
  spec y = sum[i](convert(x[i], dtype: D))
  accuracy D within n eps * sum[i](abs(convert(x[i], dtype: D)))
{
  sum[i < n](convert(x[n - 1 - i], dtype: D))
}
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

constexpr char kLower[] =
    R"(op checked(a: T[L..], b: T[H..]) -> T[S..]
  where T: float
  let S = broadcast([L, H])
  spec y[s..] <= broadcast_to(a, shape: S)[s..]
)";

TEST(Check, LawsAboutResultsOfShapesThatLetGives) {
  ExpectAgrees(Check(absl::StrCat(kLower, "  = min(a, b)\n")));
  ExpectRefuted(Check(absl::StrCat(kLower, "  = max(a, b)\n")),
                Layer::kExamples);
}

// L6 of what `text` declares.
Verdict CheckKernelsOf(const std::string& text) {
  const CheckReport report =
      CheckText("test.rules", absl::StrCat("language 1\n\n", text), "checked",
                /*kernels=*/true);
  if (report.ops.size() != 1) {
    ADD_FAILURE() << "one op is checked";
    return Verdict();
  }
  return report.ops[0].layers.at(Layer::kKernels);
}

// Derivatives are compared at the widest dtype there is.
TEST(Check, AnOpOfOneNarrowDTypeIsRefutedToo) {
  for (const char* dtype : {"f32", "bf16"}) {
    ExpectRefuted(Check(absl::StrReplaceAll(
                      "op checked(x: D[n, m]) -> D[n]\n{\n"
                      "  reduce_sum(x * x, axes: [1], keepdims: false)\n"
                      "  jvp x = reduce_sum(3 * x * dx, axes: [1], "
                      "keepdims: false)\n}\n",
                      {{"D[", absl::StrCat(dtype, "[")}})),
                  Layer::kTransforms);
  }
}

// Over the reals f64 stands for all floats, where it is among those that are
// checked.
TEST(Check, EachDTypeAloneIsComparedOverTheReals) {
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    CheckOptions options;
    options.dtypes = {dtype};
    options.layers = {Layer::kReals};
    for (const bool right : {false, true}) {
      const CheckReport report = CheckedRules(
          LoadText("f.rules", absl::StrCat(R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = x * 3
  = x + x + )",
                                           right ? "x" : "1", "\n")),
          options);
      const OpReport* const op = report.Find("checked");
      ASSERT_NE(op, nullptr);
      EXPECT_EQ(op->layers.at(Layer::kReals).kind,
                right ? VerdictKind::kAgrees : VerdictKind::kDisagrees)
          << DTypeName(dtype) << ": " << report.ToString();
    }
  }
}

TEST(Check, ComplexInputsAreNotSampled) {
  const CheckReport report = Check(
      "op checked(x: c64[n]) -> c64[n]\n  = complex(real(x), -imag(x))\n");
  ASSERT_EQ(report.ops.size(), 1u);
  for (Layer layer : {Layer::kTypes, Layer::kTransforms}) {
    const Verdict& verdict = report.ops[0].layers.at(layer);
    EXPECT_EQ(verdict.kind, VerdictKind::kInconclusive);
    EXPECT_NE(verdict.why.find("complex inputs are not sampled"),
              std::string::npos)
        << verdict.why;
  }
}

// Complex numbers are typed, where the dtype may be one.
TEST(Check, BodyThatDoesNotTypeForComplexNumbersIsRefuted) {
  constexpr char kAway[] =
      "op checked(x: T[n]) -> T[n]\n  where T: inexact\n"
      "  = if T is complex then $ else select(x < 0, x - 1, x + 1)\n";
  ExpectRefuted(
      Check(absl::StrReplaceAll(kAway, {{"$", "select(x < 0, x - 1, x + 1)"}})),
      Layer::kTypes);
  ExpectAgrees(Check(absl::StrReplaceAll(kAway, {{"$", "x + 1"}})));
}

TEST(Check, KernelsAreNotCheckedUnlessAskedFor) {
  const CheckReport report = Check(
      "op checked(x: T[S..]) -> T[S..]\n"
      "  where T: float\n  spec y = x\n  = x\n");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.count(Layer::kKernels), 0u);
}

TEST(Check, AProgramWithoutACodeGeneratorIsAskedForNoKernels) {
  CheckOptions options;
  options.layers = {Layer::kTypes, Layer::kKernels};
  const absl::StatusOr<CheckReport> report =
      CheckRules(LoadText("own.rules",
                          "language 1\nop checked(x: T[S..]) -> T[S..]\n"
                          "  where T: float\n  = x\n"),
                 options);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Check, KernelsOfPointwiseOps) {
  const Verdict verdict = CheckKernelsOf(R"(op checked(x: T[S..]) -> T[S..]
  where T: real
  spec y = x * x + 1
  accuracy T within 1 ulp
  = x * x + 1
)");
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << verdict.ToString();
  EXPECT_GT(verdict.samples, 10000);
}

TEST(Check, KernelsOfReductions) {
  const Verdict verdict = CheckKernelsOf(R"(op checked(x: T[M, N]) -> T[M, N]
  where T: float
  spec y[m, n] = x[m, n] * sum[k](x[m, k] * x[m, k])
  accuracy T within 4 ulp + 4 cond
  = x * reduce_sum(x * x, axes: [1], keepdims: true)
)");
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << verdict.ToString();
}

// The interpreter's exp is rounded correctly, or nearly; a kernel's is within
// 1 ulp.
TEST(Check, KernelsThatAreLessAccurateThanDeclaredAreRefuted) {
  constexpr char kExp[] = R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = exp(x)
  accuracy T within %s ulp
  = exp(x)
)";
  EXPECT_EQ(CheckKernelsOf(absl::StrReplaceAll(kExp, {{"%s", "1"}})).kind,
            VerdictKind::kAgrees);
  const Verdict verdict =
      CheckKernelsOf(absl::StrReplaceAll(kExp, {{"%s", "0.51"}}));
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << verdict.ToString();
  EXPECT_GT(verdict.counterexample->ulp, 0.51);
  EXPECT_EQ(verdict.counterexample->what, "value of the kernel's y");
}

TEST(Check, KernelsOfPrimitivesWithoutCodeAreNotChecked) {
  const Verdict verdict = CheckKernelsOf(R"(op checked(x: f32[n]) -> f32[n]
  = real(complex(x, x))
)");
  EXPECT_EQ(verdict.kind, VerdictKind::kNotChecked) << verdict.ToString();
  EXPECT_THAT(verdict.why, ::testing::HasSubstr("by reference kernels: `"));
  EXPECT_THAT(verdict.why, ::testing::HasSubstr("no vector code for c64"));
}

// The derivative of a conversion, by which the slope of f16 ends, is no rule of
// a file.
TEST(Check, EachRefutationHasAPlace) {
  const CheckReport report = Check(R"(op checked(x: f16[n]) -> f16[n]
  compute acc
  spec y[i] = 3 * x[i]
  accuracy f16 within 1 ulp
{
  x + x + nograd(x)
}
)");
  ExpectRefuted(report, Layer::kTransforms);
  const std::string text = report.ToString();
  EXPECT_EQ(text.find("rule      :"), std::string::npos) << text;
  EXPECT_NE(text.find("rule      test.rules:3"), std::string::npos) << text;
}

TEST(Check, UlpsAreShownAsFarAsDigitsAre) {
  CheckReport report;
  const auto add = [&](const char* op, double ulp, double part) {
    OpReport& one = report.ops.emplace_back();
    one.op = op;
    Verdict& verdict = one.layers[Layer::kRounding];
    verdict = Verdict::Agrees(5);
    verdict.worst_ulp = ulp;
    verdict.worst_part = part;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  add("few", 1.5, 0.5);
  add("all", infinity, 0.25);
  add("unclaimed", infinity, 0);
  const std::string text = report.ToString();
  for (const char* cell : {"agrees 5 1.5 ulp, 0.5 of bound",
                           "agrees 5 0.25 of bound", "agrees 5 inf ulp"}) {
    EXPECT_NE(text.find(cell), std::string::npos) << text;
  }
}

// Outside the simplex the result is -inf, whatever stands in the other branch.
TEST(Check, WeightsWithASumOfOneAreMet) {
  const auto check = [](const char* inside) {
    return Check(absl::Substitute(R"(op checked(x: T[n, B..]) -> T[B..]
  where T: float
  compute acc
  spec {
    let on[b.. < B] = sum[i](x[i, b..]) == 1
    y[b..] = select(on[b..], max[i](x[i, b..]), -inf)
  }
  accuracy T within 1 ulp
{
  let on = reduce_sum(x, axes: [0]) == 1
  reshape(select(on, $0, -inf), shape: B)
}
)",
                                  inside));
  };
  ExpectAgrees(check("reduce_max(x, axes: [0])"));
  const CheckReport wrong = check("reduce_max(x, axes: [0]) / 2");
  ExpectRefuted(wrong, Layer::kReals);
  ExpectRefuted(wrong, Layer::kRounding);
}

}  // namespace
}  // namespace cleave
