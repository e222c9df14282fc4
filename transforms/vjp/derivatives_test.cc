#include "transforms/vjp/derivatives.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DerivativesTest : public ::testing::Test {
 protected:
  Graph Parse(const std::string& text) {
    absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    CLEAVE_CHECK(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  // The only output of a graph of primitives, as doubles.
  static std::vector<double> Run(const absl::StatusOr<Graph>& graph,
                                 const std::vector<Tensor>& inputs) {
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return {};
    const absl::StatusOr<std::vector<Tensor>> results =
        Interpret(*graph, inputs);
    EXPECT_THAT(results, IsOk());
    if (!results.ok() || results->size() != 1) return {};
    std::vector<double> values;
    for (int64_t i = 0; i < (*results)[0].size(); ++i) {
      values.push_back((*results)[0].GetDouble(i));
    }
    return values;
  }

  static Tensor Vector(const std::vector<double>& values) {
    return Tensor::FromDoubles(DType::kF64,
                               {static_cast<int64_t>(values.size())}, values);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
  // sum x^3 w
  Graph loss_ = Parse(R"(
graph (%x: f64[n], %w: f64[n]) -> (y: f64[]) {
  %1: f64[n] = mul(%x, %x)
  %2: f64[n] = mul(%1, %x)
  %3: f64[n] = mul(%2, %w)
  %4: f64[] = reduce_sum(%3, axes: [0])
  return y = %4
}
)");
  // x_i x_j, of symbolic extents.
  Graph outer_ = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n, n]) {
  %1: f64[n, n] = broadcast_in_dim(%x, axes: [0], shape: [n, n])
  %2: f64[n, n] = broadcast_in_dim(%x, axes: [1], shape: [n, n])
  %3: f64[n, n] = mul(%1, %2)
  return y = %3
}
)");
};

TEST_F(DerivativesTest, Gradients) {
  const std::vector<Tensor> at = {Vector({2, -1}), Vector({1, 10})};
  EXPECT_THAT(Run(Grad(loss_, {true, false}, *rules_), at),
              ElementsAre(12, 30));
  EXPECT_THAT(Run(Grad(loss_, {false, true}, *rules_), at), ElementsAre(8, -1));
  ASSERT_OK_AND_ASSIGN(const Graph both,
                       ValueAndGrad(loss_, {true, true}, *rules_));
  ASSERT_EQ(both.outputs().size(), 3u);
  EXPECT_EQ(both.outputs()[0].name, "y");
  EXPECT_EQ(both.outputs()[1].name, "x.gradient");
  EXPECT_EQ(both.outputs()[2].name, "w.gradient");
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results, Interpret(both, at));
  EXPECT_EQ(results[0].GetDouble(0), 8 - 10);
}

TEST_F(DerivativesTest, JacobiansAgree) {
  const std::vector<double> x = {2, 3};
  // y_ij = x_i x_j: dy_ij / dx_k.
  std::vector<double> want;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 2; ++k) {
        want.push_back((i == k ? x[j] : 0) + (j == k ? x[i] : 0));
      }
    }
  }
  const absl::StatusOr<Graph> forward = JacobianForward(outer_, 0, *rules_);
  EXPECT_EQ(Run(forward, {Vector(x)}), want);
  EXPECT_EQ(Run(JacobianReverse(outer_, 0, *rules_), {Vector(x)}), want);
  EXPECT_EQ(forward->outputs()[0].name, "y.jacobian");
  EXPECT_EQ(forward->type(forward->outputs()[0].value).rank(), 3);
}

// One graph serves every extent, 0 and 1 included.
TEST_F(DerivativesTest, JacobiansOfNothing) {
  const absl::StatusOr<Graph> forward = JacobianForward(outer_, 0, *rules_);
  EXPECT_TRUE(Run(forward, {Vector({})}).empty());
  EXPECT_THAT(Run(forward, {Vector({3})}), ElementsAre(6));
  EXPECT_THAT(Run(JacobianReverse(outer_, 0, *rules_), {Vector({3})}),
              ElementsAre(6));
}

TEST_F(DerivativesTest, Hessians) {
  const std::vector<Tensor> at = {Vector({2, -1}), Vector({1, 10})};
  EXPECT_THAT(Run(Hessian(loss_, 0, *rules_), at), ElementsAre(12, 0, 0, -60));
  ASSERT_OK_AND_ASSIGN(const Graph product,
                       HessianVectorProduct(loss_, {true, true}, *rules_));
  EXPECT_EQ(product.inputs()[2].name, "x.tangent");
  EXPECT_EQ(product.outputs()[0].name, "x.product");
  std::vector<Tensor> inputs = at;
  inputs.push_back(Vector({1, 2}));
  inputs.push_back(Vector({5, 0}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(product, inputs));
  EXPECT_EQ(results[0].GetDouble(0), 12 * 1 + 12 * 5);
  EXPECT_EQ(results[0].GetDouble(1), -60 * 2);
  EXPECT_EQ(results[1].GetDouble(0), 12 * 1);
  EXPECT_EQ(results[1].GetDouble(1), 3 * 2);
}

TEST_F(DerivativesTest, RefusesWhatIsNoScalar) {
  EXPECT_THAT(Grad(outer_, {true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no float scalar")));
  EXPECT_THAT(Hessian(loss_, 2, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no input 2")));
  EXPECT_THAT(JacobianReverse(outer_, -1, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no input -1")));
}

}  // namespace
}  // namespace cleave
