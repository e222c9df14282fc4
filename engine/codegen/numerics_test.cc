#include "engine/codegen/numerics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr absl::string_view kRules = R"(language 1

op twice(x: T[S..]) -> T[S..]
  where T: float
  = 2 * x

numeric exp(x: f32) within 1.5 ulp = fma(x, x, 3)

numeric sigmoid(x: f32) within 4 ulp = twice(exp(-x))

numeric pow(x: f32, y: f32) within 2 ulp = select(y < 0, x, y)

numeric sqrt(x: f64) within 1 ulp = x
)";

class NumericsTest : public testing::Test {
 protected:
  void SetUp() override {
    LoadResult loaded =
        LoadRules({{"in.rules", std::string(kRules), false}}, context_);
    ASSERT_TRUE(loaded.diagnostics.empty()) << loaded.diagnostics[0];
    rules_ = std::move(loaded.rules);
  }

  std::string Apply(absl::string_view text) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    if (!graph.ok()) return std::string(graph.status().message());
    const absl::StatusOr<Graph> result = ApplyNumerics(*graph, *rules_);
    if (!result.ok()) return std::string(result.status().message());
    return PrintGraph(*result);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_;
};

TEST_F(NumericsTest, BodiesAndTheirBounds) {
  ASSERT_OK_AND_ASSIGN(const NumericBody* exp,
                       rules_->Numeric(Primitive::kExp, DType::kF32));
  ASSERT_NE(exp, nullptr);
  EXPECT_EQ(exp->ulp, 1.5);
  EXPECT_EQ(PrintGraph(exp->graph),
            "graph (%x: f32[]) -> (y: f32[]) {\n"
            "  %1: f32[] = constant(dtype: f32, value: 3.0)\n"
            "  %2: f32[] = fma(%x, %x, %1)\n"
            "  return y = %2\n"
            "}\n");
  ASSERT_OK_AND_ASSIGN(const NumericBody* f64,
                       rules_->Numeric(Primitive::kExp, DType::kF64));
  EXPECT_EQ(f64, nullptr);
  ASSERT_OK_AND_ASSIGN(const NumericBody* log,
                       rules_->Numeric(Primitive::kLog, DType::kF32));
  EXPECT_EQ(log, nullptr);
  ASSERT_OK_AND_ASSIGN(const NumericBody* sqrt,
                       rules_->Numeric(Primitive::kSqrt, DType::kF64));
  EXPECT_NE(sqrt, nullptr);
}

// Ops and primitives that a body uses are replaced, too.
TEST_F(NumericsTest, BodiesAreClosed) {
  ASSERT_OK_AND_ASSIGN(const NumericBody* sigmoid,
                       rules_->Numeric(Primitive::kSigmoid, DType::kF32));
  const std::string text = PrintGraph(sigmoid->graph);
  EXPECT_THAT(text, HasSubstr("fma("));
  EXPECT_THAT(text, Not(HasSubstr("exp(")));
  EXPECT_THAT(text, Not(HasSubstr("twice(")));
}

// Bodies grow by the bodies that they use: there are limits.
TEST_F(NumericsTest, LimitsWhatTheyUse) {
  const char* const names[] = {"exp",  "log",  "sin",  "cos",  "tan",
                               "asin", "acos", "atan", "sinh", "cosh",
                               "tanh", "erf",  "erfc", "cbrt", "expm1"};
  std::string doubling = "language 1\n";
  for (size_t i = 0; i + 1 < std::size(names); ++i) {
    absl::StrAppend(&doubling, "\nnumeric ", names[i],
                    "(x: f32) within 1 ulp = ", names[i + 1], "(2 * ",
                    names[i + 1], "(x))\n");
  }
  const LoadResult wide =
      LoadRules({{"in.rules", doubling, false}}, std::make_shared<Context>());
  ASSERT_FALSE(wide.diagnostics.empty());
  EXPECT_THAT(wide.diagnostics[0], HasSubstr("at most 10000 operations"));

  std::string nested = "language 1\n";
  for (int i = 0; i < 102; ++i) {
    absl::StrAppend(&nested, "\nop f", i, "(x: T[S..]) -> T[S..]\n",
                    "  where T: float\n  = ",
                    i == 101 ? "2 * x" : absl::StrCat("f", i + 1, "(x)"), "\n");
  }
  absl::StrAppend(&nested, "\nnumeric exp(x: f32) within 1 ulp = f0(x)\n");
  const LoadResult deep =
      LoadRules({{"in.rules", nested, false}}, std::make_shared<Context>());
  ASSERT_EQ(deep.diagnostics.size(), 1);
  EXPECT_THAT(deep.diagnostics[0], HasSubstr("nested deeper than 100"));
}

TEST_F(NumericsTest, ReplacesAtAnyShape) {
  EXPECT_EQ(Apply("graph (%x: f32[n, 3]) -> (y: f32[n, 3]) {\n"
                  "  %1: f32[n, 3] = exp(%x)\n"
                  "  %2: f32[n, 3] = log(%1)\n"
                  "  return y = %2\n"
                  "}\n"),
            "graph (%x: f32[n, 3]) -> (y: f32[n, 3]) {\n"
            "  %1: f32[] = constant(dtype: f32, value: 3.0)\n"
            "  %2: f32[n, 3] = broadcast_in_dim(%1, axes: [], shape: [n, 3])\n"
            "  %3: f32[n, 3] = fma(%x, %x, %2)\n"
            "  %4: f32[n, 3] = log(%3)\n"
            "  return y = %4\n"
            "}\n");
}

TEST_F(NumericsTest, NarrowFloatsGoByWayOfF32) {
  EXPECT_EQ(Apply("graph (%x: bf16[]) -> (y: bf16[]) {\n"
                  "  %1: bf16[] = exp(%x)\n"
                  "  return y = %1\n"
                  "}\n"),
            "graph (%x: bf16[]) -> (y: bf16[]) {\n"
            "  %1: f32[] = convert(%x, dtype: f32)\n"
            "  %2: f32[] = constant(dtype: f32, value: 3.0)\n"
            "  %3: f32[] = fma(%1, %1, %2)\n"
            "  %4: bf16[] = convert(%3, dtype: bf16)\n"
            "  return y = %4\n"
            "}\n");
  // f64 has a numeric of its own or none.
  const std::string f64 =
      "graph (%x: f64[]) -> (y: f64[]) {\n"
      "  %1: f64[] = exp(%x)\n"
      "  return y = %1\n"
      "}\n";
  EXPECT_EQ(Apply(f64), f64);
}

TEST_F(NumericsTest, TwoOperands) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph("graph (%x: f16[2], %y: f16[2]) -> "
                                  "(z: f16[2]) {\n"
                                  "  %2: f16[2] = pow(%x, %y)\n"
                                  "  return z = %2\n"
                                  "}\n",
                                  context_));
  ASSERT_OK_AND_ASSIGN(const Graph applied, ApplyNumerics(graph, *rules_));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(applied, {Tensor::FromDoubles(DType::kF16, {2}, {7, 8}),
                          Tensor::FromDoubles(DType::kF16, {2}, {-1, 1})}));
  EXPECT_EQ(results[0].GetDouble(0), 7);
  EXPECT_EQ(results[0].GetDouble(1), 1);
}

TEST_F(NumericsTest, Regions) {
  const std::string text = Apply(
      "graph (%p: bool[], %x: f32[n]) -> (y: f32[n]) {\n"
      "  %1: f32[n] = cond(%p, %x, then: graph (%a: f32[n]) -> (y: f32[n]) {\n"
      "    %1: f32[n] = exp(%a)\n"
      "    return y = %1\n"
      "  }, else: graph (%a: f32[n]) -> (y: f32[n]) {\n"
      "    return y = %a\n"
      "  })\n"
      "  return y = %1\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("fma(%a, %a"));
  EXPECT_THAT(text, Not(HasSubstr("exp(")));
}

TEST_F(NumericsTest, CompositeCallsAreExpandedFirst) {
  GraphBuilder builder(context_);
  const Value x = builder.Input("x", {DType::kF32, {}});
  ASSERT_OK_AND_ASSIGN(const auto results,
                       rules_->Call(builder, "twice", {{"x", x}}, {}));
  const Graph graph = *std::move(builder).Build({{"y", *results[0]}});
  EXPECT_THAT(ApplyNumerics(graph, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`twice` is no primitive")));
}

}  // namespace
}  // namespace cleave
