// The first node that is off, of functions that are wrong in known ways.

#include "testing/debug/debug.h"

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ops/budget.h"
#include "testing/debug/debug_testing.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kVersine[] = "fn f(x: f32[]) -> f32[] = (1 - cos(x)) / (x * x)";

Tensor F32s(const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF32, {static_cast<int64_t>(values.size())},
                             values);
}
Tensor F64s(const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF64, {static_cast<int64_t>(values.size())},
                             values);
}

TEST(Debug, FindsACancellation) {
  ASSERT_OK_AND_ASSIGN(const DebugReport report,
                       DebugText(kVersine, {F32(1e-4)}));
  EXPECT_TRUE(report.off());
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kCancellation);
  EXPECT_NEAR(*cause.condition, 2 / 0.5e-8, 1e6);
  const DebugRow& row = FirstOff(report, cause);
  EXPECT_THAT(row.operation, StartsWith("sub("));
  EXPECT_EQ(row.computed, "0");
  EXPECT_THAT(row.exact, StartsWith("4.99999974"));
  EXPECT_EQ(row.file, "test.rules");
  EXPECT_EQ(row.line, 2);
  // The subtraction itself is exact: all of its error is inherited.
  EXPECT_EQ(row.own->ulp, 0);
  EXPECT_GT(row.error->ulp, 1e7);
  EXPECT_NEAR(*row.inherited_ulp, row.error->ulp, 1);
  EXPECT_EQ(cause.path.size(), 2);
  EXPECT_EQ(report.rows[cause.path[0].row].operation, "div(%3, %4)");
}

TEST(Debug, FindsAnIllConditionedFunction) {
  ASSERT_OK_AND_ASSIGN(const DebugReport report,
                       DebugText("fn f(x: f64[n]) -> f64[n] = log(1 + x)",
                                 {F64s({0.5, 1e-10, 1000})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kIllConditioned);
  EXPECT_NEAR(*cause.condition, 1e10, 1e6);
  EXPECT_THAT(FirstOff(report, cause).operation, StartsWith("log("));
  // The other elements are right.
  EXPECT_THAT(cause.path[0].index, ElementsAre(1));
}

TEST(Debug, FindsAnOverflowWhereTheExactValueIsANumber) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[n] = exp(x) / (1 + exp(x))",
                {F32s({1, 100})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kOverflow);
  const DebugRow& row = FirstOff(report, cause);
  EXPECT_EQ(row.operation, "exp(%x)");
  EXPECT_THAT(*row.index, ElementsAre(1));
  EXPECT_EQ(row.computed, "inf");
  EXPECT_THAT(cause.message, HasSubstr("2.688117141"));
  EXPECT_THAT(report.ToString(), HasSubstr("overflow"));
}

TEST(Debug, TakesAnInfinityThatTheExactValueRoundsToForRight) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[]) -> f32[] = exp(x)", {F32(100)}));
  EXPECT_FALSE(report.off());
}

TEST(Debug, FindsAnUnderflow) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[] = log(sum[i](exp(x[i])))",
                {F32s({-200, -200})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kUnderflow);
  EXPECT_EQ(FirstOff(report, cause).operation, "exp(%x)");
  EXPECT_EQ(cause.path.size(), 3);
}

TEST(Debug, FindsWhereAFunctionLeavesItsDomain) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[]) -> f32[] = atanh(1 - x)", {F32(1e-9)}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kNotFinite);
  EXPECT_THAT(FirstOff(report, cause).operation, StartsWith("atanh("));
  EXPECT_THAT(cause.message, HasSubstr("is inf, exactly 10.7"));
}

TEST(Debug, FindsADecisionThatRoundingTurns) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[]) -> f32[] = select(1 + x > 1, x, 7.0)",
                {F32(1e-9)}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kDecision);
  EXPECT_THAT(FirstOff(report, cause).operation, StartsWith("gt("));
  EXPECT_THAT(cause.message, HasSubstr("is false, exactly true"));
}

TEST(Debug, TakesADistanceForRight) {
  constexpr char kText[] =
      "fn f(x: f64[]) -> f64[] = exp(2 * sqrt(x) * sqrt(x) - 2 * x) - 1";
  const std::vector<Tensor> inputs = {Tensor::Scalar(DType::kF64, 2)};
  ASSERT_OK_AND_ASSIGN(const DebugReport off, DebugText(kText, inputs));
  const DebugCause& cause = CauseOf(off, "y");
  EXPECT_THAT(cause.message, HasSubstr("its exact value is 0"));
  // All that depends on it is off as much.
  EXPECT_TRUE(cause.jumps.empty()) << off.ToString();
  DebugOptions options;
  options.absolute = 1e-14;
  ASSERT_OK_AND_ASSIGN(
      const DebugReport right,
      DebugText(kText, inputs, DebuggedTransform::kNone, options));
  EXPECT_FALSE(right.off());
  EXPECT_THAT(right.ToString(), HasSubstr("within 8 ulp, or 1e-14"));
}

TEST(Debug, FindsErrorsThatAddUp) {
  std::string body = "x";
  for (int i = 0; i < 60; ++i) absl::StrAppend(&body, " * 1.1");
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText(absl::StrCat("fn f(x: f16[]) -> f16[] = ", body),
                {Tensor::Scalar(DType::kF16, 1)}));
  EXPECT_EQ(CauseOf(report, "y").finding, Finding::kAccumulated);
}

TEST(Debug, FindsNothingInARightFunction) {
  ASSERT_OK_AND_ASSIGN(const DebugReport report,
                       DebugText("fn f(x: f32[n]) -> f32[n] = softmax(x)",
                                 {F32s({1, 2, 3, 1000, -1000})}));
  EXPECT_FALSE(report.off());
  EXPECT_FALSE(report.differs);
  EXPECT_THAT(report.ToString(),
              AllOf(HasSubstr("no node is off: each output is within 8 ulp"),
                    HasSubstr("what their specs say: 1")));
}

// A cancellation at one element, behind movement of all kinds.
TEST(Debug, FollowsAnElementThroughMovement) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText(
          "fn f(x: f32[2, 3], y: f32[1, 2]) -> f32[2, 2] {\n"
          "  let a = transpose((1 + x) - 1, axes: [1, 0])\n"
          "  let b = concatenate([y, a], axis: 0)\n"
          "  let r = reverse(b, axes: [0])\n"
          "  y[i < 2, j] = r[i, j]\n}",
          {Tensor::FromDoubles(DType::kF32, {2, 3}, {1, 2, 3, 4, 1.1e-4, 5}),
           Tensor::FromDoubles(DType::kF32, {1, 2}, {6, 7})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kCancellation) << report.ToString();
  EXPECT_THAT(cause.path[0].index, ElementsAre(1, 1));
  EXPECT_THAT(cause.path[cause.first].index, ElementsAre(1, 1));
  EXPECT_THAT(FirstOff(report, cause).operation, StartsWith("sub("));
}

// The way back takes the term of a sum that matters, not one that is worse in
// ULP.
TEST(Debug, FollowsTheTermThatMatters) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n], w: f32[n]) -> f32[] {\n"
                "  let d = (1 + x) - 1\n"
                "  sum[i](d[i] * w[i])\n}",
                {F32s({2, 1e-9, 1e-4, 1}), F32s({1e-7, 1, 1e6, 1e-6})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kCancellation) << report.ToString();
  EXPECT_THAT(cause.path[cause.first].index, ElementsAre(2));
}

TEST(Debug, FollowsGatheredElementsAndIndices) {
  constexpr char kElement[] =
      "fn f(x: f32[n], k: i64[m]) -> f32[m] {\n"
      "  let d = (1 + x) - 1\n  y[j] = d[k[j]]\n}";
  ASSERT_OK_AND_ASSIGN(
      const DebugReport element,
      DebugText(kElement, {F32s({1e-3, 1, 1e-4}),
                           Tensor::FromInts(DType::kI64, {3}, {1, 2, 1})}));
  const DebugCause& moved = CauseOf(element, "y");
  EXPECT_THAT(moved.path[0].index, ElementsAre(1)) << element.ToString();
  EXPECT_THAT(moved.path[moved.first].index, ElementsAre(2));
  ASSERT_OK_AND_ASSIGN(const DebugReport wrong,
                       DebugText("fn f(x: f32[n], k: f32[m]) -> f32[m] {\n"
                                 "  let at = convert(k + 1 - 1, dtype: i64)\n"
                                 "  y[j] = x[at[j]]\n}",
                                 {F32s({1, 2, 3}), F32s({0, 0.99999997})}));
  const DebugCause& cause = CauseOf(wrong, "y");
  EXPECT_EQ(cause.finding, Finding::kDecision) << wrong.ToString();
  EXPECT_THAT(FirstOff(wrong, cause).operation, StartsWith("convert("));
}

TEST(Debug, GoesOnBehindWhatHasNoExactValue) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[]) -> f32[] = nextafter(1 + x, 2.0) - 1",
                {F32(1e-3)}));
  EXPECT_FALSE(report.off());
  const std::string text = report.ToString();
  EXPECT_THAT(text, HasSubstr("%4 has no exact value: `nextafter` is not "
                              "supported over the reals"));
  // A node that is off before `nextafter` is found from an output behind it.
  ASSERT_OK_AND_ASSIGN(
      const DebugReport off,
      DebugText("fn f(x: f32[]) -> f32[] = nextafter((1 + x) - 1, 2.0)",
                {F32(1e-4)}));
  EXPECT_EQ(CauseOf(off, "y").finding, Finding::kCancellation);
}

TEST(Debug, TakesComplexNumbers) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[n] = abs(exp(complex(x, x)))",
                {F32s({0.5, 2})}));
  EXPECT_FALSE(report.off());
  EXPECT_THAT(report.ToString(), HasSubstr("complex results"));
}

TEST(Debug, TellsResultsOfAnotherShape) {
  ASSERT_OK_AND_ASSIGN(const DebugReport report,
                       DebugText("fn f(x: f32[n]) -> i64[] {\n"
                                 "  let at = nonzero((1 + x) - 1)\n"
                                 "  sum[i](at[i, 0])\n}",
                                 {F32s({1, 1e-9})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_EQ(cause.finding, Finding::kCancellation) << report.ToString();
  EXPECT_THAT(report.ToString(),
              HasSubstr("its exact value is [2, 1], of another shape"));
}

// A difference vanishes at 256 bits, and another one at any number of bits.
TEST(Debug, TakesMoreBitsWhereTheyTellMore) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport far,
      DebugText("fn f(x: f64[]) -> f64[] = log(1 - 1 / (1 + exp(x)))",
                {Tensor::Scalar(DType::kF64, -700)}));
  EXPECT_EQ(CauseOf(far, "y").finding, Finding::kCancellation)
      << far.ToString();
  EXPECT_GT(far.bits, 2000);
  EXPECT_EQ(far.rows.back().exact, "-700");
  ASSERT_OK_AND_ASSIGN(
      const DebugReport zero,
      DebugText("fn f(x: f64[]) -> f64[] = sqrt(x) * sqrt(x) - x",
                {Tensor::Scalar(DType::kF64, 2)}));
  EXPECT_EQ(zero.rows.back().exact, "0");
  EXPECT_EQ(CauseOf(zero, "y").finding, Finding::kCancellation);
}

TEST(Debug, FindsTheCauseInATangent) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText(kVersine, {F32(1e-3), F32(1)}, DebuggedTransform::kJvp));
  const DebugCause& cause = CauseOf(report, "y.tangent");
  EXPECT_EQ(cause.finding, Finding::kCancellation);
  // The value's cancellation comes first, and the quotient rule's second.
  EXPECT_EQ(FirstOff(report, cause).rule, "f");
  ASSERT_EQ(cause.jumps.size(), 1);
  EXPECT_EQ(report.rows[cause.path[cause.jumps[0]].row].rule, "jvp div");
  EXPECT_FALSE(report.differs);
  EXPECT_THAT(report.ToString(), HasSubstr("is that of the function"));
}

TEST(Debug, FindsTheCauseInACotangent) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[n] = sqrt(x * x)",
                {F32s({1, 1e-25}), F32s({1, 1})}, DebuggedTransform::kVjp));
  const DebugCause& cause = CauseOf(report, "x.cotangent");
  EXPECT_EQ(cause.finding, Finding::kUnderflow) << report.ToString();
  EXPECT_EQ(FirstOff(report, cause).operation, "mul(%x, %x)");
  EXPECT_THAT(cause.path[cause.first].index, ElementsAre(1));
}

TEST(Debug, TellsADerivativeThatIsNone) {
  constexpr char kText[] =
      "op wrong(x: T[S..]) -> T[S..]\n  where T: float\n"
      "{\n  sin(x)\n  jvp x = 1.01 * cos(x) * dx\n}\n"
      "fn f(x: f32[n]) -> f32[n] = wrong(x)";
  for (const auto transform :
       {DebuggedTransform::kJvp, DebuggedTransform::kVjp}) {
    ASSERT_OK_AND_ASSIGN(
        const DebugReport report,
        DebugText(kText, {F32s({1, 2}), F32s({0, 1})}, transform));
    EXPECT_FALSE(report.off());
    EXPECT_TRUE(report.differs);
    EXPECT_THAT(report.notes.back(),
                AllOf(HasSubstr("tangent[1] = -0.420308"),
                      HasSubstr("differences of the function say -0.416146")));
  }
}

TEST(Debug, TellsABodyThatIsNotItsSpec) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("op wrong(x: T[S..]) -> T[S..]\n  where T: float\n"
                "  spec y[s..] = x[s..] / (1 + exp(-x[s..]))\n"
                "  = x * sigmoid(1.5 * x)\n"
                "fn f(x: f32[n]) -> f32[n] = wrong(softmax(x))",
                {F32s({0, 0})}));
  EXPECT_FALSE(report.off());
  EXPECT_TRUE(report.differs);
  EXPECT_THAT(report.notes,
              ElementsAre(AllOf(HasSubstr("`wrong` (test.rules:2) gives y[0] = "
                                          "0.3395893"),
                                HasSubstr("its spec says 0.3112296"))));
}

TEST(Debug, LooksIntoTheStepOfALoop) {
  ASSERT_OK_AND_ASSIGN(const DebugReport report,
                       DebugText("fn f(h0: f32[], x: f32[n]) -> f32[n] {\n"
                                 "  let r = scan(h = h0) over t in x {\n"
                                 "    let next = h * t\n"
                                 "    (h = next, all = log(1 + next))\n"
                                 "  }\n  r.all\n}",
                                 {F32(1), F32s({1, 1e-3, 1e-4, 1e3})}));
  const DebugCause& cause = CauseOf(report, "y");
  EXPECT_THAT(cause.path[0].index, ElementsAre(2)) << report.ToString();
  EXPECT_EQ(cause.inside_name, "step 2 of %1");
  ASSERT_NE(cause.inside, nullptr);
  const DebugCause& inside = *cause.inside->outputs[0].cause;
  EXPECT_EQ(inside.finding, Finding::kIllConditioned);
  EXPECT_THAT(FirstOff(*cause.inside, inside).operation, StartsWith("log("));
  EXPECT_THAT(report.ToString(), Not(HasSubstr(" \n")));
}

TEST(Debug, LooksIntoACarryAWhileAndABranch) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport carry,
      DebugText("fn f(h0: f32[], x: f32[n]) -> f32[] {\n"
                "  let r = scan(h = h0) over t in x { (h = (h + t) - t) }\n"
                "  r.h\n}",
                {F32(1e-4), F32s({0, 0, 1, 0})}));
  EXPECT_EQ(CauseOf(carry, "y").inside_name, "step 2 of %1")
      << carry.ToString();
  ASSERT_OK_AND_ASSIGN(
      const DebugReport loop,
      DebugText("fn f(x: f32[]) -> f32[] {\n"
                "  let r = while(h = x) h > 0.5 max 100 { (h = h * h) }\n"
                "  r.h\n}",
                {F32(0.9999)}));
  EXPECT_THAT(CauseOf(loop, "y").inside_name, StartsWith("step "));
  ASSERT_OK_AND_ASSIGN(
      const DebugReport turned,
      DebugText(
          "fn f(x: f32[]) -> f32[] {\n"
          "  let r = while(h = x) 1 + h > 1.00000001 max 100 { (h = h / 8) }\n"
          "  r.h\n}",
          {F32(1)}));
  EXPECT_THAT(CauseOf(turned, "y").inside_name,
              StartsWith("the condition of step "));
  ASSERT_OK_AND_ASSIGN(const DebugReport branch,
                       DebugText("fn f(x: f32[]) -> f32[]\n"
                                 "  = cond(x > 0) { 1 - cos(x) } else { x }",
                                 {F32(1e-3)}));
  EXPECT_EQ(CauseOf(branch, "y").inside_name, "the branch `then` of %3");
}

TEST(Debug, TellsAnErrorThatIsBroughtIn) {
  ASSERT_OK_AND_ASSIGN(const Debugged f,
                       MakeDebugged("fn f(x: f32[]) -> f32[] = x * 3"));
  const Tensor exact = F32(1);
  ASSERT_OK_AND_ASSIGN(
      const NodeValues values,
      ComputeNodes(f.primitives, {F32(1.001)},
                   {RealTensor::FromTensor(exact, 256)}, {}, 256, nullptr));
  ASSERT_OK_AND_ASSIGN(
      const Cause cause,
      FindCause(f.primitives, values, {f.primitives.outputs()[0].value, 0}, 8));
  EXPECT_EQ(cause.finding, Finding::kBroughtIn);
}

TEST(Debug, ShowsTheElementThatIsAskedAbout) {
  constexpr char kText[] = "fn f(x: f32[n]) -> f32[n] = (1 + x) - 1";
  const std::vector<Tensor> inputs = {F32s({1e-9, 0.5, 1e-3})};
  DebugOptions options;
  options.element = {1};
  ASSERT_OK_AND_ASSIGN(
      const DebugReport right,
      DebugText(kText, inputs, DebuggedTransform::kNone, options));
  EXPECT_FALSE(right.off());
  for (const DebugRow& row : right.rows) {
    if (row.index->empty()) continue;
    EXPECT_THAT(*row.index, ElementsAre(1));
  }
  options.element = {2};
  ASSERT_OK_AND_ASSIGN(
      const DebugReport off,
      DebugText(kText, inputs, DebuggedTransform::kNone, options));
  EXPECT_THAT(CauseOf(off, "y").path[0].index, ElementsAre(2));
}

TEST(Debug, RefusesWhatIsNotThere) {
  DebugOptions options;
  options.output = "z";
  EXPECT_THAT(DebugText(kVersine, {F32(1)}, DebuggedTransform::kNone, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "there is no output `z`: y"));
  options.output = "y";
  options.element = {0};
  EXPECT_THAT(DebugText(kVersine, {F32(1)}, DebuggedTransform::kNone, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "there is no element [0] of `y`, f32[]"));
  options.output = "";
  EXPECT_THAT(
      DebugText(kVersine, {F32(1), F32(1)}, DebuggedTransform::kJvp, options),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("of which output?")));
  EXPECT_THAT(DebugText(kVersine, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "0 tensors are given for 1 inputs"));
  EXPECT_THAT(
      DebugText(kVersine, {F32s({1})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 1 axes")));
}

TEST(Debug, TakesEmptyTensors) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[n] = exp(x)", {F32s({})}));
  EXPECT_FALSE(report.off());
  EXPECT_THAT(report.ToString(), HasSubstr("y has no elements"));
}

TEST(Debug, EndsWhereItIsCancelled) {
  const std::atomic<bool> cancelled{true};
  Limits limits;
  ASSERT_OK_AND_ASSIGN(const Debugged f, MakeDebugged(kVersine));
  limits.cancelled = &cancelled;
  const BudgetScope scope(limits);
  EXPECT_THAT(DebugGraph(f.primitives, {F32(1)}, {}),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
}

TEST(Debug, WritesJson) {
  ASSERT_OK_AND_ASSIGN(
      const DebugReport report,
      DebugText("fn f(x: f32[n]) -> f32[n] = exp(x) / (1 + exp(x))",
                {F32s({1, 100})}));
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["outputs"][0]["off"], true);
  EXPECT_EQ(json["outputs"][0]["error_ulp"], "inf");
  const auto& cause = json["outputs"][0]["cause"];
  EXPECT_EQ(cause["finding"], "overflow");
  EXPECT_EQ(cause["first"]["node"], "%1");
  EXPECT_EQ(cause["first"]["element"], nlohmann::json({1}));
  EXPECT_EQ(json["nodes"].size(), report.rows.size());
  const auto& node = json["nodes"][1];
  EXPECT_EQ(node["operation"], "exp(%x)");
  EXPECT_EQ(node["place"], "test.rules:2");
  EXPECT_EQ(node["computed"], "inf");
  EXPECT_THAT(json["bits"].get<int>(), Ge(256));
}

}  // namespace
}  // namespace cleave
