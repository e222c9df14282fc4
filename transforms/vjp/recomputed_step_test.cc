// Reverse mode through loops and branches that compute again what they need.

#include "transforms/vjp/recomputed_step.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

using ::testing::Each;
using ::testing::Le;
using ::testing::NanSensitiveDoubleNear;

constexpr char kFunctions[] = R"(language 1

fn recurrent(xs: f64[L, n], h: f64[n], w: f64[n, n], b: f64[n]) -> f64[L, n]
{
  let r = scan(h = h) over x in xs {
    let z[i] = sum[j](w[i, j] * h[j])
    let next = tanh(z + exp(-b) * x) * sigmoid(x)
    (h = next, y = next * h)
  }
  r.y
}

fn twice(xs: f64[L, n], h: f64[n]) -> f64[n]
{
  let r = scan(h = h) over x in xs {
    let inner = scan(g = x) over v in xs { (g = sin(g * v) + h) }
    (h = inner.g * cos(h))
  }
  r.h
}

fn rows(xs: f64[L, n]) -> f64[L]
{
  map(x in xs) { sum[i](exp(x[i]) * tanh(x[i])) }
}

fn halved(x: f64[n], limit: f64[]) -> f64[n]
{
  let r = while(h = x) sum[i](h[i]^2) > limit max 6 { (h = h * sigmoid(h)) }
  r.h
}

fn walked(first: f64[n], key: key) -> f64[n]
{
  let r = scan(at = first) over k in random_split(key, count: 4) {
    (at = at * exp(random_uniform(k, shape: [n], dtype: f64)) + sin(at))
  }
  r.at
}

fn near(x: f64[m, k], z: f64[n, k]) -> f64[m, n]
{
  let q[i, j] = sum[l]((x[i, l] - z[j, l])^2)
  sqrt(q)
}

fn far(x: f64[m, k], z: f64[n, k]) -> f64[m, n]
{
  let s[i, j] = nograd(max[l](abs(x[i, l] - z[j, l])))
  let q[i, j] = sum[l](((x[i, l] - z[j, l]) / s[i, j])^2)
  s * exp(q)
}

fn chosen(x: f64[m, k], z: f64[n, k], c: f64[]) -> f64[m, n]
{
  cond(c > 0) {
    let q[i, j] = sum[l]((x[i, l] - z[j, l])^2)
    sqrt(q)
  } else {
    let s[i, j] = nograd(max[l](abs(x[i, l] - z[j, l])))
    let q[i, j] = sum[l](((x[i, l] - z[j, l]) / s[i, j])^2)
    s * exp(q)
  }
}
)";

class RecomputedStepTest : public ::testing::Test {
 protected:
  static std::vector<bool> Active(const Graph& graph) {
    std::vector<bool> active;
    for (const NamedValue& input : graph.inputs()) {
      active.push_back(IsFloat(graph.type(input.value).dtype));
    }
    return active;
  }

  // Reverse mode, `order` times.
  Graph Reversed(const std::string& name, int order,
                 const TransformOptions& options) {
    absl::StatusOr<Graph> graph = rules_->Function(name);
    EXPECT_THAT(graph, IsOk());
    for (int i = 0; i < order; ++i) {
      absl::StatusOr<VjpResult> vjp =
          Vjp(*graph, Active(*graph), *rules_, options);
      EXPECT_THAT(vjp, IsOk());
      graph = std::move(vjp->graph);
    }
    graph = Expand(*graph, *rules_);
    EXPECT_THAT(graph, IsOk());
    return *std::move(graph);
  }

  // The inputs of a graph at extents 3 and 2, in order of their variables.
  static std::vector<Tensor> Inputs(const Graph& graph) {
    std::vector<Tensor> inputs;
    double value = 0.3;
    for (const NamedValue& input : graph.inputs()) {
      const TensorType& type = graph.type(input.value);
      std::vector<int64_t> shape;
      for (const Dim& extent : type.shape) {
        shape.push_back(
            extent.Value().value_or(extent == Dim::Variable("L") ? 3 : 2));
      }
      Tensor tensor(type.dtype, shape);
      for (int64_t i = 0; i < tensor.size(); ++i) {
        tensor.SetDouble(i, type.dtype == DType::kKey ? 7 : value);
        value = value > 1 ? value - 1.7 : value + 0.37;
      }
      inputs.push_back(std::move(tensor));
    }
    return inputs;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kFunctions);
  const TransformOptions saving_;
  const TransformOptions recomputing_{/*keep_identity=*/true,
                                      /*recompute_loops=*/true};
};

TEST_F(RecomputedStepTest, GivesTheSameCotangents) {
  for (const char* name : {"recurrent", "twice", "rows", "halved", "walked"}) {
    for (int order : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(name, " order ", order));
      const Graph saving = Reversed(name, order, saving_);
      const Graph recomputing = Reversed(name, order, recomputing_);
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                           Interpret(saving, Inputs(saving)));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                           Interpret(recomputing, Inputs(recomputing)));
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(want[i].size(), got[i].size());
        for (int64_t k = 0; k < want[i].size(); ++k) {
          EXPECT_THAT(got[i].GetDouble(k),
                      NanSensitiveDoubleNear(
                          want[i].GetDouble(k),
                          1e-13 * (1 + std::fabs(want[i].GetDouble(k)))));
        }
      }
    }
  }
}

TEST_F(RecomputedStepTest, ChoicesGiveTheCotangentsOfTheBranchThatIsTaken) {
  const Graph chosen = Reversed("chosen", 1, saving_);
  for (const bool taken : {true, false}) {
    const Graph branch = Reversed(taken ? "near" : "far", 1, saving_);
    const std::vector<Tensor> inputs = Inputs(branch);
    const Tensor condition =
        Tensor::FromDoubles(DType::kF64, {}, {taken ? 1.0 : -1.0});
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                         Interpret(branch, inputs));
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> got,
        Interpret(chosen, {inputs[0], inputs[1], condition, inputs[2]}));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].ToString(), want[i].ToString());
    }
  }
}

// The differences of all pairs are computed from x and z again; what both
// branches save of pairs has one place for each.
TEST_F(RecomputedStepTest, ChoicesSaveWhatTheirBranchesShare) {
  ASSERT_OK_AND_ASSIGN(Graph graph, rules_->Function("chosen"));
  ASSERT_OK_AND_ASSIGN(graph, Expand(graph, *rules_));
  ASSERT_OK_AND_ASSIGN(const Linearization halves,
                       Linearize(graph, {true, true, false}, *rules_, saving_));
  std::vector<int> ranks;
  const std::vector<NamedValue>& outputs = halves.primal.outputs();
  for (size_t i = outputs.size() - halves.residuals; i < outputs.size(); ++i) {
    const Value residual = outputs[i].value;
    if (halves.primal.node(residual).op == ToOpId(Primitive::kInput)) continue;
    ranks.push_back(halves.primal.type(residual).rank());
  }
  // The condition; of one branch twice the root, of the other the maximum, the
  // exponential and the product of both.
  EXPECT_THAT(ranks, Each(Le(2))) << PrintGraph(halves.primal);
  EXPECT_THAT(ranks.size(), Le(6));
}

// Values that a linearization saves of each step: those with the axis L.
TEST_F(RecomputedStepTest, SavesTheCarriesAlone) {
  const auto saved = [&](const TransformOptions& options) {
    absl::StatusOr<Graph> graph = rules_->Function("recurrent");
    EXPECT_THAT(graph, IsOk());
    absl::StatusOr<Linearization> halves =
        Linearize(*graph, Active(*graph), *rules_, options);
    EXPECT_THAT(halves, IsOk());
    int count = 0;
    const std::vector<NamedValue>& outputs = halves->primal.outputs();
    for (size_t i = outputs.size() - halves->residuals; i < outputs.size();
         ++i) {
      const Shape& shape = halves->primal.type(outputs[i].value).shape;
      const bool is_input =
          halves->primal.node(outputs[i].value).op == ToOpId(Primitive::kInput);
      count += !is_input && !shape.empty() && shape[0] == Dim::Variable("L");
    }
    return count;
  };
  EXPECT_EQ(saved(recomputing_), 1);
  EXPECT_GT(saved(saving_), 3);
}

}  // namespace
}  // namespace cleave
