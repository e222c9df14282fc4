#include "transforms/vjp/bounded_while.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
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

using ::testing::HasSubstr;

// y = y * sqrt(x) / k, x = x - 1, while x > 0: at the end sqrt is infinitely
// steep.
constexpr char kLoop[] = R"(
graph (%k: f64[], %x: f64[], %y: f64[], %n: i64[], %a: f64[m]) -> (x: f64[], y: f64[], n: i64[]) {
  %1: f64[], f64[], i64[] = while(%k, %x, %y, %n, cond: graph (%k: f64[], %x: f64[], %y: f64[], %n: i64[]) -> (p: bool[]) {
    %1: f64[] = constant(dtype: f64, value: 0.0)
    %2: bool[] = gt(%x, %1)
    return p = %2
  }, body: graph (%k: f64[], %x: f64[], %y: f64[], %n: i64[]) -> (x: f64[], y: f64[], n: i64[]) {
    %1: f64[] = sqrt(%x)
    %2: f64[] = mul(%y, %1)
    %3: f64[] = div(%2, %k)
    %4: f64[] = constant(dtype: f64, value: 1.0)
    %5: f64[] = sub(%x, %4)
    %6: i64[] = constant(dtype: i64, value: 1.0)
    %7: i64[] = add(%n, %6)
    return x = %5, y = %3, n = %7
  }, consts: 1, max: m)
  %2: f64[] = result(%1, index: 0)
  %3: f64[] = result(%1, index: 1)
  %4: i64[] = result(%1, index: 2)
  return x = %2, y = %3, n = %4
}
)";

// A key is carried, of which no constant can be made.
constexpr char kKeys[] = R"(
graph (%key: key[], %n: i64[]) -> (key: key[], n: i64[]) {
  %1: key[], i64[] = while(%key, %n, cond: graph (%key: key[], %n: i64[]) -> (p: bool[]) {
    %1: i64[] = constant(dtype: i64, value: 0.0)
    %2: bool[] = gt(%n, %1)
    return p = %2
  }, body: graph (%key: key[], %n: i64[]) -> (key: key[], n: i64[]) {
    %1: key[1] = random_split(%key, count: 1)
    %2: key[] = reshape(%1, shape: [])
    %3: i64[] = constant(dtype: i64, value: 1.0)
    %4: i64[] = sub(%n, %3)
    return key = %2, n = %4
  }, consts: 0, max: 3)
  %2: key[] = result(%1, index: 0)
  %3: i64[] = result(%1, index: 1)
  return key = %2, n = %3
}
)";

class BoundedWhileTest : public ::testing::Test {
 protected:
  Graph Parsed(absl::string_view text) {
    absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    EXPECT_THAT(graph, IsOk());
    return graph.ok() ? *std::move(graph) : Graph();
  }

  // The graph with each `while` as a scan.
  static absl::StatusOr<Graph> WithScans(const Graph& graph) {
    GraphBuilder builder(graph.context());
    std::vector<Value> copies(graph.size());
    std::map<Value, std::vector<Value>> loops;
    for (const NamedValue& input : graph.inputs()) {
      copies[input.value.id] =
          builder.Input(input.name, graph.type(input.value));
    }
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Value v{id};
      const Node& node = graph.node(v);
      if (node.op == ToOpId(Primitive::kInput)) continue;
      std::vector<Value> operands;
      for (Value operand : graph.operands(v)) {
        operands.push_back(copies[operand.id]);
      }
      const auto loop = node.op == ToOpId(Primitive::kResult)
                            ? loops.find(graph.operands(v)[0])
                            : loops.end();
      if (loop != loops.end()) {
        copies[id] = loop->second[graph.attributes(v).GetInt("index")];
      } else if (node.op == ToOpId(Primitive::kWhile)) {
        absl::StatusOr<std::vector<Value>> results =
            BoundedWhileAsScan(builder, graph.attributes(v), operands);
        if (!results.ok()) return results.status();
        copies[id] = (*results)[0];
        loops[v] = *std::move(results);
      } else {
        copies[id] = builder.AddTyped(node.op, node.attributes, node.type,
                                      operands, node.provenance);
      }
    }
    for (const ShapeGuard& guard : graph.guards()) builder.AddGuard(guard);
    std::vector<NamedValue> outputs;
    for (const NamedValue& output : graph.outputs()) {
      outputs.push_back({output.name, copies[output.value.id]});
    }
    Graph scans = *std::move(builder).Build(std::move(outputs));
    EXPECT_THAT(Verify(scans), IsOk());
    return scans;
  }

  Graph Derivative(const Graph& graph) {
    std::vector<bool> active;
    for (const NamedValue& input : graph.inputs()) {
      active.push_back(IsFloat(graph.type(input.value).dtype) &&
                       graph.type(input.value).rank() == 0);
    }
    absl::StatusOr<JvpResult> jvp = Jvp(graph, active, *rules_);
    EXPECT_THAT(jvp, IsOk());
    return jvp.ok() ? std::move(jvp->graph) : Graph();
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

// k, x, y, n and as many elements as there may be steps, then tangents.
std::vector<Tensor> Inputs(double x, int64_t max, int tangents) {
  const DType f64 = DType::kF64;
  std::vector<Tensor> inputs = {
      Tensor::Scalar(f64, 3), Tensor::Scalar(f64, x), Tensor::Scalar(f64, 2),
      Tensor::FromInts(DType::kI64, {}, {0}), Tensor(f64, {max})};
  for (int i = 0; i < tangents; ++i) {
    inputs.push_back(Tensor::Scalar(f64, 1 + i / 8.0));
  }
  return inputs;
}

void ExpectSame(const Graph& a, const Graph& b,
                const std::vector<Tensor>& inputs) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                       Interpret(a, inputs));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, Interpret(b, inputs));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(SameValue(got[i], expected[i]))
        << i << ": " << got[i].ToString() << ", not " << expected[i].ToString()
        << "\n"
        << PrintGraph(b);
    if (IsFloat(got[i].dtype())) {
      EXPECT_TRUE(std::isfinite(got[i].GetDouble(0))) << i;
    }
  }
}

TEST_F(BoundedWhileTest, HasTheLoopsValuesAndDerivatives) {
  const Graph loop = Parsed(kLoop);
  ASSERT_OK_AND_ASSIGN(const Graph scan, WithScans(loop));
  const Graph once = Derivative(loop);
  const Graph twice = Derivative(once);
  // The joint loops as scans, and the scan's own derivatives.
  ASSERT_OK_AND_ASSIGN(const Graph once_scan, WithScans(once));
  ASSERT_OK_AND_ASSIGN(const Graph twice_scan, WithScans(twice));
  // 3 steps, none, and all of them; after the end x is 0, where the body's
  // derivative is infinite.
  for (const auto& [x, max] : {std::pair{3.0, 8}, {0.0, 4}, {2.5, 3}}) {
    ExpectSame(loop, scan, Inputs(x, max, 0));
    ExpectSame(once, once_scan, Inputs(x, max, 3));
    ExpectSame(once, Derivative(scan), Inputs(x, max, 3));
    ExpectSame(twice, twice_scan, Inputs(x, max, 9));
    ExpectSame(twice, Derivative(Derivative(scan)), Inputs(x, max, 9));
  }
}

TEST_F(BoundedWhileTest, FailsWhereTheLoopHasNotEnded) {
  const auto unfinished =
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("`while`: the condition still holds after"));
  const Graph loop = Parsed(kLoop);
  const Graph once = Derivative(loop);
  ASSERT_OK_AND_ASSIGN(const Graph scan, WithScans(loop));
  ASSERT_OK_AND_ASSIGN(const Graph once_scan, WithScans(once));
  EXPECT_THAT(Interpret(loop, Inputs(3, 2, 0)), unfinished);
  EXPECT_THAT(Interpret(scan, Inputs(3, 2, 0)), unfinished);
  EXPECT_THAT(Interpret(scan, Inputs(3, 0, 0)), unfinished);
  EXPECT_THAT(Interpret(once_scan, Inputs(3, 2, 3)), unfinished);
}

TEST_F(BoundedWhileTest, CarriesKeys) {
  const Graph loop = Parsed(kKeys);
  ASSERT_OK_AND_ASSIGN(const Graph scan, WithScans(loop));
  Tensor key(DType::kKey, {});
  key.SetInt(0, 42);
  ExpectSame(loop, scan, {key, Tensor::FromInts(DType::kI64, {}, {2})});
  EXPECT_THAT(Interpret(scan, {key, Tensor::FromInts(DType::kI64, {}, {4})}),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(BoundedWhileTest, RefusesALoopWithoutABound) {
  std::string text = kKeys;
  text.replace(text.find(", max: 3"), 8, "");
  EXPECT_THAT(WithScans(Parsed(text)).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("impossible: unbounded loop in reverse")));
}

}  // namespace
}  // namespace cleave
