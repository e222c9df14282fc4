// Derivatives where functions have kinks, at NaN, and at zeros of products.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

class TieTest : public ::testing::Test {
 protected:
  // The tangent of the one output, all inputs active where `tangents` has as
  // many as there are; else the first ones.
  std::vector<double> TangentOf(const std::string& text,
                                std::vector<Tensor> primals,
                                const std::vector<Tensor>& tangents) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return {};
    std::vector<bool> active(primals.size(), false);
    for (size_t i = 0; i < tangents.size(); ++i) active[i] = true;
    const absl::StatusOr<JvpResult> jvp = Jvp(*graph, active, *rules_);
    EXPECT_THAT(jvp, IsOk());
    if (!jvp.ok()) return {};
    primals.insert(primals.end(), tangents.begin(), tangents.end());
    const absl::StatusOr<std::vector<Tensor>> results =
        Interpret(jvp->graph, primals);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return {};
    std::vector<double> values;
    for (int64_t i = 0; i < results->back().size(); ++i) {
      values.push_back(results->back().GetDouble(i));
    }
    return values;
  }

  static Tensor Vector(const std::vector<double>& values) {
    return Tensor::FromDoubles(DType::kF32,
                               {static_cast<int64_t>(values.size())}, values);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

std::string MaxText(const std::string& tie) {
  return "graph (%a: f32[n], %b: f32[n]) -> (y: f32[n]) {\n"
         "  %1: f32[n] = max(%a, %b, tie: \"" +
         tie +
         "\")\n"
         "  return y = %1\n}\n";
}

TEST_F(TieTest, Max) {
  const std::vector<Tensor> primals = {Vector({1, 2, 3}), Vector({2, 2, 2})};
  const std::vector<Tensor> tangents = {Vector({10, 20, 30}),
                                        Vector({1, 2, 3})};
  EXPECT_THAT(TangentOf(MaxText("even"), primals, tangents),
              ElementsAre(1, 11, 30));
  EXPECT_THAT(TangentOf(MaxText("first"), primals, tangents),
              ElementsAre(1, 20, 30));
  EXPECT_THAT(TangentOf(MaxText("second"), primals, tangents),
              ElementsAre(1, 2, 30));
}

// relu: an infinite tangent of what is cut off is not multiplied by 0.
TEST_F(TieTest, MaxKeepsInfinitiesApart) {
  EXPECT_THAT(TangentOf(MaxText("second"),
                        {Vector({-1, 0, 1, kNaN}), Vector({0, 0, 0, 0})},
                        {Vector({kInf, 1, kInf, 1})}),
              ElementsAre(0, 0, kInf, ::testing::IsNan()));
}

TEST_F(TieTest, ReduceMax) {
  const auto text = [](const std::string& tie) {
    return "graph (%x: f32[m, n]) -> (y: f32[m]) {\n"
           "  %1: f32[m] = reduce_max(%x, axes: [1], tie: \"" +
           tie + "\")\n  return y = %1\n}\n";
  };
  const Tensor x = Tensor::FromDoubles(
      DType::kF32, {4, 3}, {1, 3, 3, 5, 4, 5, -kInf, -kInf, -kInf, 1, kNaN, 2});
  const Tensor dx = Tensor::FromDoubles(DType::kF32, {4, 3},
                                        {1, 2, 4, 8, 16, 24, 1, 2, 6, 1, 2, 3});
  EXPECT_THAT(TangentOf(text("even"), {x}, {dx}),
              ElementsAre(3, 16, 3, ::testing::IsNan()));
  EXPECT_THAT(TangentOf(text("first"), {x}, {dx}), ElementsAre(2, 8, 1, 2));
  const Tensor none(DType::kF32, {2, 0});
  EXPECT_THAT(TangentOf(text("even"), {none}, {none}), ElementsAre(0, 0));
  EXPECT_THAT(TangentOf(text("first"), {none}, {none}), ElementsAre(0, 0));
}

TEST_F(TieTest, CumulativeMax) {
  const std::string text = R"(
graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = cumulative_max(%x, axis: 0, reverse: false)
  return y = %1
}
)";
  EXPECT_THAT(TangentOf(text, {Vector({2, 2, 1, 3, kNaN, 4})},
                        {Vector({1, 3, 5, 7, 9, 11})}),
              ElementsAre(1, 2, 2, 7, ::testing::IsNan(), ::testing::IsNan()));
  EXPECT_THAT(TangentOf(text, {Vector({})}, {Vector({})}), ElementsAre());
}

TEST_F(TieTest, ProductsAtZeros) {
  const std::string text = R"(
graph (%x: f32[m, n]) -> (y: f32[m]) {
  %1: f32[m] = reduce_prod(%x, axes: [1])
  return y = %1
}
)";
  const Tensor x =
      Tensor::FromDoubles(DType::kF32, {3, 3}, {2, 3, 4, 2, 0, 4, 0, 0, 4});
  const Tensor dx =
      Tensor::FromDoubles(DType::kF32, {3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(TangentOf(text, {x}, {dx}), ElementsAre(26, 8, 0));
}

TEST_F(TieTest, ScatterModes) {
  const auto text = [](const std::string& mode) {
    return "graph (%x: f32[3], %u: f32[4], %i: i64[4, 1]) -> (y: f32[3]) {\n"
           "  %1: f32[3] = scatter(%x, %i, %u, axes: [0], batch: 0, mode: \"" +
           mode + "\")\n  return y = %1\n}\n";
  };
  const Tensor at = Tensor::FromInts(DType::kI64, {4, 1}, {0, 0, 1, 7});
  const std::vector<Tensor> primals = {Vector({0, 5, 6}), Vector({0, 3, 5, 9}),
                                       at};
  const std::vector<Tensor> tangents = {Vector({1, 2, 3}),
                                        Vector({4, 5, 6, 7})};
  EXPECT_THAT(TangentOf(text("add"), primals, tangents), ElementsAre(10, 8, 3));
  EXPECT_THAT(TangentOf(text("set"), primals, tangents), ElementsAre(5, 6, 3));
  // 0 * 0 * 3: two zeros; 5 * 5.
  EXPECT_THAT(TangentOf(text("mul"), primals, tangents), ElementsAre(0, 40, 3));
  EXPECT_THAT(
      TangentOf(text("mul"), {Vector({2, kInf, 6}), Vector({0, 3, 5, 9}), at},
                tangents),
      ElementsAre(24, kInf, 3));
  EXPECT_THAT(TangentOf(text("max"), primals, tangents), ElementsAre(5, 4, 3));
  EXPECT_THAT(TangentOf(text("min"), primals, tangents),
              ElementsAre(2.5, 4, 3));
}

}  // namespace
}  // namespace cleave
