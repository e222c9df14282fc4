#include "transforms/vjp/vjp.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/transpose.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class VjpTest : public ::testing::Test {
 protected:
  Graph Parse(const std::string& text) {
    absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    CLEAVE_CHECK(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  // The cotangents of all inputs, for the cotangent 1 of each output.
  std::vector<Tensor> Gradients(const Graph& graph, const RuleSet& rules,
                                std::vector<Tensor> inputs) {
    const std::vector<bool> active(graph.inputs().size(), true);
    absl::StatusOr<VjpResult> vjp = Vjp(graph, active, rules);
    EXPECT_THAT(vjp, IsOk());
    if (!vjp.ok()) return {};
    absl::StatusOr<Graph> expanded = Expand(vjp->graph, rules);
    EXPECT_THAT(expanded, IsOk());
    if (!expanded.ok()) return {};
    absl::StatusOr<std::vector<Tensor>> primal;
    for (size_t i = graph.inputs().size(); i < expanded->inputs().size(); ++i) {
      const TensorType& type = expanded->type(expanded->inputs()[i].value);
      const std::vector<int64_t> shape =
          type.shape.empty() ? std::vector<int64_t>() : inputs[0].shape();
      Tensor ones(type.dtype, shape);
      for (int64_t k = 0; k < ones.size(); ++k) ones.SetDouble(k, 1);
      inputs.push_back(std::move(ones));
    }
    absl::StatusOr<std::vector<Tensor>> results = Interpret(*expanded, inputs);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return {};
    return {results->begin() + graph.outputs().size(), results->end()};
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

// A branch that select does not take leaves no trace, though its slope is
// infinite.
TEST_F(VjpTest, NothingLeaksFromTheUntakenBranch) {
  const Graph graph = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %0: f64[] = constant(dtype: f64, value: 0.0)
  %1: f64[n] = broadcast_in_dim(%0, axes: [], shape: [n])
  %2: bool[n] = gt(%x, %1)
  %3: f64[n] = sqrt(%x)
  %4: f64[n] = log(%3)
  %5: f64[n] = select(%2, %4, %x)
  return y = %5
}
)");
  const std::vector<Tensor> once = Gradients(
      graph, *rules_, {Tensor::FromDoubles(DType::kF64, {3}, {0, 4, -1})});
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].GetDouble(0), 1);
  EXPECT_EQ(once[0].GetDouble(1), 0.125);
  EXPECT_EQ(once[0].GetDouble(2), 1);
}

// Nor does it through sums, reshapes and transposes.
TEST_F(VjpTest, NothingLeaksThroughMovement) {
  const Graph graph = Parse(R"(
graph (%x: f64[2, 3]) -> (y: f64[2]) {
  %0: f64[] = constant(dtype: f64, value: 0.0)
  %1: f64[2] = broadcast_in_dim(%0, axes: [], shape: [2])
  %2: f64[2, 3] = log(%x)
  %3: f64[3, 2] = transpose(%2, axes: [1, 0])
  %4: f64[2] = reduce_sum(%3, axes: [0])
  %5: f64[2] = reduce_sum(%x, axes: [1])
  %6: bool[2] = gt(%5, %1)
  %7: f64[2] = select(%6, %4, %1)
  return y = %7
}
)");
  const std::vector<bool> active = {true};
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, *rules_));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(vjp.graph,
                {Tensor::FromDoubles(DType::kF64, {2, 3}, {0, 0, 0, 1, 2, 4}),
                 Tensor::FromDoubles(DType::kF64, {2}, {1, 1})}));
  const double expected[] = {0, 0, 0, 1, 0.5, 0.25};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(results[1].GetDouble(i), expected[i]) << i;
  }
}

// At NaN the slope of max is NaN; elsewhere nothing of that is seen.
TEST_F(VjpTest, MaxGivesItsWinnerAll) {
  const Graph graph = Parse(R"(
graph (%a: f64[n], %b: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = max(%a, %b, tie: "even")
  return y = %1
}
)");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Tensor> slopes =
      Gradients(graph, *rules_,
                {Tensor::FromDoubles(DType::kF64, {4}, {1, 2, 3, nan}),
                 Tensor::FromDoubles(DType::kF64, {4}, {0, 2, 4, 1})});
  ASSERT_EQ(slopes.size(), 2u);
  EXPECT_EQ(slopes[0].GetDouble(0), 1);
  EXPECT_EQ(slopes[0].GetDouble(1), 0.5);
  EXPECT_EQ(slopes[0].GetDouble(2), 0);
  EXPECT_TRUE(std::isnan(slopes[0].GetDouble(3)));
  EXPECT_EQ(slopes[1].GetDouble(0), 0);
  EXPECT_EQ(slopes[1].GetDouble(1), 0.5);
  EXPECT_EQ(slopes[1].GetDouble(2), 1);
}

constexpr char kOverrides[] = R"(language 1

/// Its vjp is wrong on purpose, so that it is seen where it is used.
op reversed(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  vjp (dy) = (x = 10 * dy)
}

/// Its jvp, too: reverse mode transposes it.
op pushed(x: T[S..]) -> T[S..]
  where T: float
{
  sin(x)
  jvp x = 7 * dx
}

op nested(x: T[S..]) -> T[S..]
  where T: float
  = pushed(reversed(x, x))

/// In terms of its result, as `jvp` lines may be.
op by_result(x: T[S..]) -> T[S..]
  where T: float
{
  exp(x)
  vjp (dy) = (x = dy * y)
}

op pulled(x: T[S..], dy: T[S..]) -> T[S..]
  where T: float
  = vjp reversed(x, x)(dy).w + vjp reversed(x, 2 * x)(dy).x

op last_gradient(x: T[S..]) -> T[S..]
  where T: float
  = vjp first_of(x, 3 * x)(first: x).b

op first_of(a: T[S..], b: T[S..]) -> (first: T[S..], second: T[S..])
  where T: float
  = (first = a * b, second = b)
)";

double GradientAt(const std::vector<Tensor>& slopes) {
  return slopes.empty() ? std::nan("") : slopes[0].GetDouble(0);
}

TEST_F(VjpTest, OverridesReplaceReverseModeAlone) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph reversed = Parse(R"(
graph (%x: f64[n], %w: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = reversed(%x, %w)
  return y = %1
}
)");
  const Tensor three = Tensor::FromDoubles(DType::kF64, {1}, {3});
  const Tensor five = Tensor::FromDoubles(DType::kF64, {1}, {5});
  const std::vector<Tensor> slopes = Gradients(reversed, *rules, {three, five});
  ASSERT_EQ(slopes.size(), 2u);
  EXPECT_EQ(slopes[0].GetDouble(0), 10);  // given
  EXPECT_EQ(slopes[1].GetDouble(0), 3);   // derived
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp,
                       Jvp(reversed, {true, true}, *rules));
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(jvp.graph, *rules));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(expanded, {three, five, three, five}));
  EXPECT_EQ(results[1].GetDouble(0), 3 * 5 + 3 * 5);
}

TEST_F(VjpTest, ReverseModeTransposesTheJvpOverride) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph nested = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = nested(%x)
  return y = %1
}
)");
  EXPECT_EQ(GradientAt(Gradients(nested, *rules,
                                 {Tensor::FromDoubles(DType::kF64, {1}, {3})})),
            7 * (10 + 3));
}

// Where a call is linear in what an override covers, that is its transpose: the
// derivative of a body may have less digits, or none. An override that reads
// the linear operand says what happens at a point, and the body is transposed.
TEST_F(VjpTest, TransposesALinearCallByItsOverride) {
  const auto rules = LoadTestRules(context_, R"(language 1

op scaled_by(k: T[S..], x: T[S..]) -> T[S..]
  where T: float
{
  k * x
  vjp (dy) = (x = scaled_by(k, dy))
}

op scaled_at(k: T[S..], x: T[S..]) -> T[S..]
  where T: float
{
  k * x
  vjp (dy) = (x = scaled_by(k, select(x == x, dy, dy)))
}
)");
  const auto transposed = [&](const char* op) {
    const Graph graph = Parse(absl::StrCat(
        "graph (%k: f64[n], %x: f64[n]) -> (y: f64[n]) {\n  %1: f64[n] = ", op,
        "(%k, %x)\n  return y = %1\n}\n"));
    const absl::StatusOr<Graph> result =
        Transpose(graph, {false, true}, *rules);
    EXPECT_OK(result);
    return result.ok() ? PrintGraph(*result) : "";
  };
  EXPECT_THAT(transposed("scaled_by"),
              HasSubstr("= scaled_by(%k, %y.cotangent)"));
  const std::string by_body = transposed("scaled_at");
  EXPECT_THAT(by_body, HasSubstr("= mul(%y.cotangent, %k)"));
  EXPECT_THAT(by_body, Not(HasSubstr("scaled_by")));
}

TEST_F(VjpTest, OverridesMayUseTheResult) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph by_result = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = by_result(%x)
  return y = %1
}
)");
  EXPECT_EQ(GradientAt(Gradients(by_result, *rules,
                                 {Tensor::FromDoubles(DType::kF64, {1}, {0})})),
            1);
}

TEST_F(VjpTest, IsAnExpressionOfRules) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph pulled = Parse(R"(
graph (%x: f64[n], %dy: f64[n]) -> (y: f64[n], z: f64[n]) {
  %1: f64[n] = pulled(%x, %dy)
  %2: f64[n] = last_gradient(%x)
  return y = %1, z = %2
}
)");
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(pulled, *rules));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(expanded, {Tensor::FromDoubles(DType::kF64, {1}, {3}),
                           Tensor::FromDoubles(DType::kF64, {1}, {2})}));
  EXPECT_EQ(results[0].GetDouble(0), 3 * 2 + 10 * 2);
  EXPECT_EQ(results[1].GetDouble(0), 3 * 3);
}

// The litmus of the language differentiates: its gradient by reverse mode, and
// a product with its Hessian by forward mode over that.
TEST_F(VjpTest, RunsTheLitmus) {
  auto context = std::make_shared<Context>();
  // The shipped derivatives of primitives and rewrites stand for the litmus's
  // own, which are one-line items, or a line and a body in braces.
  std::string litmus;
  bool skips = false;
  for (absl::string_view line :
       absl::StrSplit(ReadText("engine/lang/testdata/litmus.rules"), '\n')) {
    if (absl::StartsWith(line, "rewrite ")) continue;
    const bool item = absl::StartsWith(line, "jvp ");
    skips = skips || item;
    if (!skips) absl::StrAppend(&litmus, line, "\n");
    if (line == "}" || (item && absl::StrContains(line, " = "))) skips = false;
  }
  const auto rules = LoadTestRules(context, litmus);
  const auto run = [&](const char* name, const std::vector<Tensor>& inputs) {
    absl::StatusOr<Graph> graph = rules->Function(name);
    EXPECT_THAT(graph, IsOk());
    if (graph.ok()) graph = Expand(*graph, *rules);
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return std::vector<double>();
    const auto results = Interpret(*graph, inputs);
    EXPECT_THAT(results, IsOk());
    std::vector<double> values;
    for (int64_t i = 0; results.ok() && i < (*results)[0].size(); ++i) {
      values.push_back((*results)[0].GetDouble(i));
    }
    return values;
  };
  const auto tensor = [](const std::vector<int64_t>& shape,
                         const std::vector<double>& values) {
    return Tensor::FromDoubles(DType::kF32, shape, values);
  };
  // logsumexp(x w): of one output column it is x w itself.
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Tensor w = tensor({2, 1}, {5, 7});
  const Tensor dy = tensor({2}, {1, 2});
  EXPECT_THAT(run("gradient", {x, w, dy}), ElementsAre(5, 7, 10, 14));
  EXPECT_THAT(run("curvature", {x, w, dy, x}), ElementsAre(0, 0, 0, 0));
}

TEST_F(VjpTest, SymbolicZerosAndNames) {
  const Graph graph = Parse(R"(
graph (%x: f32[n], %w: f32[n]) -> (y: f32[n], i: i32[n]) {
  %1: f32[n] = neg(%x)
  %2: i32[n] = convert(%w, dtype: i32)
  return y = %1, i = %2
}
)");
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, {true, true}, *rules_));
  EXPECT_THAT(vjp.depends, ElementsAre(true, false));
  ASSERT_EQ(vjp.graph.inputs().size(), 3u);
  EXPECT_EQ(vjp.graph.inputs()[2].name, "y.cotangent");
  ASSERT_EQ(vjp.graph.outputs().size(), 4u);
  EXPECT_EQ(vjp.graph.outputs()[2].name, "x.cotangent");
  EXPECT_EQ(vjp.graph.outputs()[3].name, "w.cotangent");
}

TEST_F(VjpTest, RefusesWhatHasNoCotangents) {
  const Graph graph = Parse(R"(
graph (%x: i32[n]) -> (y: i32[n]) {
  %1: i32[n] = neg(%x)
  return y = %1
}
)");
  EXPECT_THAT(Vjp(graph, {true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no cotangent")));
  EXPECT_THAT(Vjp(graph, {true, true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 entries for 1 inputs")));
  EXPECT_THAT(Transpose(graph, {true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no cotangents")));
}

}  // namespace
}  // namespace cleave
