// An operand that a select, a max or a min does not take leaves no trace in
// reverse mode, though its slope is infinite: nowhere is 0 multiplied by it.

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;

class GuardedTest : public ::testing::Test {
 protected:
  // The cotangents of the one input x, f64, for ones.
  std::vector<double> Cotangents(const std::string& text,
                                 std::vector<int64_t> shape,
                                 const std::vector<double>& x) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    EXPECT_OK(graph);
    if (!graph.ok()) return {};
    const absl::StatusOr<VjpResult> vjp = Vjp(*graph, {true}, *rules_);
    EXPECT_OK(vjp);
    if (!vjp.ok()) return {};
    const Tensor at = Tensor::FromDoubles(DType::kF64, shape, x);
    const absl::StatusOr<std::vector<Tensor>> values = Interpret(*graph, {at});
    EXPECT_OK(values);
    if (!values.ok()) return {};
    Tensor ones(DType::kF64, (*values)[0].shape());
    for (int64_t i = 0; i < ones.size(); ++i) ones.SetDouble(i, 1);
    const absl::StatusOr<std::vector<Tensor>> results =
        Interpret(vjp->graph, {at, ones});
    EXPECT_OK(results);
    if (!results.ok()) return {};
    std::vector<double> cotangents;
    for (int64_t i = 0; i < results->back().size(); ++i) {
      cotangents.push_back(results->back().GetDouble(i));
    }
    return cotangents;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

// Both selects take from the logarithm, each elsewhere; at 0 neither does.
TEST_F(GuardedTest, SelectsOfOneValue) {
  EXPECT_THAT(Cotangents(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %0: f64[] = constant(dtype: f64, value: 0.0)
  %1: f64[n] = broadcast_in_dim(%0, axes: [], shape: [n])
  %2: f64[] = constant(dtype: f64, value: 2.0)
  %3: f64[n] = broadcast_in_dim(%2, axes: [], shape: [n])
  %4: f64[n] = log(%x)
  %5: bool[n] = gt(%x, %3)
  %6: bool[n] = gt(%x, %1)
  %7: f64[n] = mul(%3, %4)
  %8: f64[n] = select(%6, %7, %1)
  %9: f64[n] = select(%5, %4, %8)
  return y = %9
}
)",
                         {3}, {0, 1, 4}),
              ElementsAre(0, 2, 0.25));
}

// The larger of log(x) and -100: the cut that losses make.
TEST_F(GuardedTest, MaxAndMin) {
  for (const std::string tie : {"even", "first", "second"}) {
    EXPECT_THAT(Cotangents(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %0: f64[] = constant(dtype: f64, value: -100.0)
  %1: f64[n] = broadcast_in_dim(%0, axes: [], shape: [n])
  %2: f64[n] = log(%x)
  %3: f64[n] = max(%2, %1, tie: ")" +
                               tie + R"(")
  return y = %3
}
)",
                           {2}, {0, 4}),
                ElementsAre(0, 0.25));
    EXPECT_THAT(Cotangents(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %0: f64[] = constant(dtype: f64, value: 100.0)
  %1: f64[n] = broadcast_in_dim(%0, axes: [], shape: [n])
  %2: f64[n] = log(%x)
  %3: f64[n] = neg(%2)
  %4: f64[n] = min(%1, %3, tie: ")" +
                               tie + R"(")
  return y = %4
}
)",
                           {2}, {0, 4}),
                ElementsAre(0, -0.25));
  }
}

}  // namespace
}  // namespace cleave
