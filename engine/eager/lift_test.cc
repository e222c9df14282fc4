#include "engine/eager/lift.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/eager/atomic.h"
#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

// Four nodes: a constant is one, and so is its broadcast.
TracedValue Wave(const TracedValue& x) { return trace::Sin(x) * 2; }

class LiftTest : public SessionTest {
 protected:
  const SessionStatistics& Statistics() { return session_.statistics(); }
};

TEST_F(LiftTest, IsAFunctionOnTensors) {
  const auto wave = Lift(Wave);
  const Tensor x = Floats({3}, {0, 1, 2});
  const Tensor y = wave(x);
  ExpectValue(y, CallOne("sin", {x}) * 2);
  EXPECT_EQ(y.shape(), Shape{3});
}

TEST_F(LiftTest, EagerlyEachNodeRunsAsAnOpDoes) {
  const auto f = Lift([](const TracedValue& x) {
    return trace::Exp(trace::Sin(trace::Cos(x)));
  });
  ASSERT_TRUE(f(Tensor(Floats({3}, {0, 1, 2}))).valid());
  EXPECT_EQ(Statistics().ops, 3);
  EXPECT_EQ(Statistics().graphs_run, 3);
  EXPECT_EQ(Statistics().kernels_run, 3);
}

TEST_F(LiftTest, WithinAtomicItsNodesJoin) {
  const auto f = Lift([](const TracedValue& x) {
    return trace::Exp(trace::Sin(trace::Cos(x)));
  });
  const Tensor x = Floats({3}, {0, 1, 2});
  const Tensor y = Atomic([&](const Tensor& v) { return f(v) + 1; })(x);
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_EQ(Statistics().kernels_run, 1);
  ExpectValue(y, f(x) + 1);
}

TEST_F(LiftTest, UnderATraceItAddsItsNodes) {
  const TensorType type{DType::kF32, {Dim::Variable("n"), 2}};
  const auto f = [](const TracedValue& x) {
    return trace::ReduceSum(Wave(x) - x, {1}, true);
  };
  std::string lifted;
  {
    TraceScope trace(SharedRules()->context());
    const Tensor x = trace.Input("x", type);
    ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(Lift(f)(x)));
    lifted = PrintGraph(*std::move(trace).Finish({{"y", out}}));
  }
  ASSERT_OK_AND_ASSIGN(const Graph plain,
                       Trace(SharedRules()->context(), f, {type}));
  EXPECT_EQ(lifted, PrintGraph(plain));
  EXPECT_EQ(Statistics().ops, 0);
}

TEST_F(LiftTest, OnGraphValuesItIsTheFunctionItself) {
  const auto wave = Lift(Wave);
  const TensorType type{DType::kF32, {4}};
  ASSERT_OK_AND_ASSIGN(
      const Graph lifted,
      Trace(SharedRules()->context(),
            [&](const TracedValue& x) { return wave(x); }, {type}));
  ASSERT_OK_AND_ASSIGN(const Graph plain,
                       Trace(SharedRules()->context(), Wave, {type}));
  EXPECT_EQ(PrintGraph(lifted), PrintGraph(plain));
}

TEST_F(LiftTest, TakesAndGivesSeveralAndVectors) {
  const auto f =
      Lift([](const std::vector<TracedValue>& xs, const TracedValue& scale) {
        std::vector<TracedValue> results;
        for (const TracedValue& x : xs) results.push_back(x * scale);
        return results;
      });
  const std::vector<Tensor> xs = {Floats({2}, {1, 2}), Floats({1}, {3})};
  const std::vector<Tensor> ys = f(xs, Tensor(Floats({1}, {10})));
  ASSERT_EQ(ys.size(), 2u);
  ExpectValue(ys[0], Floats({2}, {10, 20}));
  ExpectValue(ys[1], Floats({1}, {30}));
  // A number stays one: it takes the dtype of what it meets.
  ExpectValue(f(xs, 0.5)[0], Floats({2}, {0.5, 1}));
  ExpectValue(Lift(Wave)(xs[0].Reshape({2, 1})[{kAll, 0}]),
              CallOne("sin", {xs[0]}) * 2);
}

TEST_F(LiftTest, MistakesAreCarried) {
  const auto f =
      Lift([](const TracedValue& a, const TracedValue& b) { return a + b; });
  const Tensor x = Floats({2}, {1, 2});
  EXPECT_THAT(f(x, Tensor(Floats({3}, {1, 2, 3}))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(f(x, x[{9}]).status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_FALSE(f(1, 2).valid());
  const auto many = Lift([](const TracedValue& a) {
    return std::vector<TracedValue>{a, a};
  });
  EXPECT_FALSE(many(x[{9}])[0].valid());
}

// No fusion, no writes, nothing remembered: the function is called each time.
TEST_F(LiftTest, HasNoOtherMeaning) {
  int calls = 0;
  double factor = 2;
  const auto f = Lift([&](const TracedValue& x) {
    ++calls;
    return x * factor;
  });
  const Tensor x = Floats({2}, {1, 2});
  const uint64_t version = x.version();
  ExpectValue(f(x), Floats({2}, {2, 4}));
  factor = 3;
  ExpectValue(f(x), Floats({2}, {3, 6}));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(x.version(), version);
  EXPECT_FALSE(f(x).SharesStorage(x));
}

TEST_F(LiftTest, GraphsRunWithTheirOpsAndSizes) {
  // A composite op, two results, and a size that values decide.
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ParseGraph("graph (%x: i64[n]) -> (y: i64[k, 1], z: i64[n]) {\n"
                 "  %1: i64[n], i64[n] = sort(%x, axis: 0, descending: false)\n"
                 "  %2: i64[n] = result(%1, index: 0)\n"
                 "  %3: i64[k, 1] = nonzero(%2, size: k)\n"
                 "  return y = %3, z = %2\n"
                 "}\n",
                 SharedRules()->context()));
  const Tensor x = Ints({4}, {3, 0, 2, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> apart, CallGraph(graph, {x}));
  ExpectValue(apart[0], Ints({2, 1}, {2, 3}));
  ExpectValue(apart[1], Ints({4}, {0, 0, 2, 3}));
  EXPECT_EQ(Statistics().graphs_run, 2);
  {
    const AtomicScope scope;
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> together,
                         CallGraph(graph, {x}));
    EXPECT_EQ(together[0].shape(), (Shape{2, 1}));
    ExpectValue(together[0], Ints({2, 1}, {2, 3}));
  }
  EXPECT_EQ(Statistics().graphs_run, 3);
  EXPECT_THAT(CallGraph(graph, {Tensor(Floats({4}, {1, 2, 3, 4}))}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input x of a graph is i64[n]")));
  EXPECT_THAT(CallGraph(graph, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(LiftTest, GraphsMustMatchTheirTensors) {
  const auto context = SharedRules()->context();
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ParseGraph("graph (%x: f32[n, n + 1]) -> (y: f32[n, n + 1]) {\n"
                 "  %1: f32[n, n + 1] = sin(%x)\n"
                 "  guard n >= 2: \"two rows\"\n"
                 "  return y = %1\n"
                 "}\n",
                 context));
  const auto run = [&](int64_t a, int64_t b) {
    return CallGraph(graph, {Zeros(DType::kF32, {a, b})}).status();
  };
  EXPECT_OK(run(2, 3));
  EXPECT_THAT(run(2, 2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(run(1, 2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("two rows")));
  // Accumulated, the guard is the graph's, and checked when it runs.
  const AtomicScope scope;
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> late,
                       CallGraph(graph, {Zeros(DType::kF32, {3, 4})}));
  ExpectValue(late[0], Zeros(DType::kF32, {3, 4}));
}

TEST_F(LiftTest, ResultsAreStoragesOfTheirOwn) {
  const auto twice = Lift([](const TracedValue& x) {
    const TracedValue y = trace::Sin(x);
    return std::vector<TracedValue>{x, y, y};
  });
  Tensor x = Floats({2}, {0, 1});
  std::vector<Tensor> y = twice(x);
  y[0] += 1;
  y[1] += 1;
  ExpectValue(x, Floats({2}, {0, 1}));
  EXPECT_FALSE(y[1].SharesStorage(y[2]));
}

TEST_F(LiftTest, SymbolicExtentsAreNotTakenForNumbers) {
  const auto graph =
      ParseGraph("graph (%x: f32[2]) -> (y: f32[2]) {\n  return y = %x\n}\n",
                 session_.rules()->context());
  ASSERT_OK(graph);
  TraceScope trace(session_.rules());
  const Tensor x = trace.Input("x", {DType::kF32, {Dim::Variable("n")}});
  EXPECT_THAT(CallGraph(*graph, {x}).status().message(),
              HasSubstr("input x of a graph is f32[2], not f32[n]"));
}

}  // namespace
}  // namespace cleave::functional
