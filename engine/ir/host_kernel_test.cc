#include "engine/ir/host_kernel.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/host_kernel_testing.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Results = absl::StatusOr<std::vector<Tensor>>;

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? *std::move(graph) : Graph();
}

InterpretOptions With(absl::string_view op, HostFunction function) {
  InterpretOptions options;
  options.host_kernels.Set(op, std::move(function));
  return options;
}

TEST(HostKernels, KnowsItsOps) {
  HostKernels kernels;
  EXPECT_TRUE(kernels.empty());
  kernels.Set("b", Times);
  kernels.Set("aten.a.default", Times);
  EXPECT_TRUE(kernels.Has("b"));
  EXPECT_FALSE(kernels.Has("c"));
  EXPECT_THAT(kernels.Ops(), UnorderedElementsAre("aten.a.default", "b"));
}

TEST(HostKernels, ComputeCallsOfTheirOps) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = add(%x, %x)
  %2: f32[n] = times(%1, by: n)
  %3: f32[n] = add(%2, %x)
  return y = %3
})");
  int64_t calls = 0;
  const auto times = [&](const HostCall& call) -> Results {
    ++calls;
    EXPECT_EQ(call.op, "times");
    EXPECT_EQ(call.results.size(), 1);
    EXPECT_EQ(call.results[0].ToString(), "f32[3]");
    return Times(call);
  };
  ASSERT_OK_AND_ASSIGN(const auto y, Interpret(graph, {F32({3}, {1, 2, 3})},
                                               With("times", times)));
  EXPECT_EQ(y[0].ToString(), "f32[3] [7, 14, 21]");
  EXPECT_EQ(calls, 1);
}

TEST(HostKernels, GiveSeveralResults) {
  const Graph graph = Parsed(R"(graph (%x: f32[2]) -> (a: f32[2], b: i64[]) {
  %1: f32[2], i64[] = both(%x)
  %2: f32[2] = result(%1, index: 0)
  %3: i64[] = result(%1, index: 1)
  return a = %2, b = %3
})");
  // The first is the operand itself.
  const auto both = [](const HostCall& call) -> Results {
    return std::vector<Tensor>{call.inputs[0],
                               Tensor::FromInts(DType::kI64, {}, {7})};
  };
  ASSERT_OK_AND_ASSIGN(
      const auto y, Interpret(graph, {F32({2}, {1, 2})}, With("both", both)));
  EXPECT_EQ(y[0].ToString(), "f32[2] [1, 2]");
  EXPECT_EQ(y[1].ToString(), "i64[] [7]");
}

TEST(HostKernels, ComputeCallsInRegions) {
  const Graph graph = Parsed(
      R"(graph (%x: f32[n], %p: bool[]) -> (s: f32[], c: f32[], w: f32[]) {
  %2: f32[] = constant(dtype: f32, value: 0.0)
  %3: f32[] = scan(%2, %x, body: graph (%c: f32[], %e: f32[]) -> (c: f32[]) {
    %2: f32[] = times(%e, by: n)
    %3: f32[] = add(%c, %2)
    return c = %3
  }, carries: 1, consts: 0, length: n, reverse: false)
  %4: f32[] = cond(%p, %3, else: graph (%a: f32[]) -> (a: f32[]) {
    return a = %a
  }, then: graph (%a: f32[]) -> (a: f32[]) {
    %1: f32[] = times(%a, by: 10)
    return a = %1
  })
  %5: f32[] = while(%4, body: graph (%a: f32[]) -> (a: f32[]) {
    %1: f32[] = times(%a, by: 2)
    return a = %1
  }, cond: graph (%a: f32[]) -> (p: bool[]) {
    %1: f32[] = constant(dtype: f32, value: 1000.0)
    %2: bool[] = lt(%a, %1)
    return p = %2
  }, consts: 0)
  return s = %3, c = %4, w = %5
})");
  const Tensor yes = Tensor::FromInts(DType::kBool, {}, {1});
  ASSERT_OK_AND_ASSIGN(
      const auto y,
      Interpret(graph, {F32({3}, {1, 2, 3}), yes}, With("times", Times)));
  EXPECT_EQ(y[0].ToString(), "f32[] [18]");
  EXPECT_EQ(y[1].ToString(), "f32[] [180]");
  EXPECT_EQ(y[2].ToString(), "f32[] [1440]");
}

// As of `nonzero`: the results say how many there are.
TEST(HostKernels, DecideExtents) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[k], z: f32[k]) {
  %1: f32[k] = positive(%x)
  %2: f32[k] = times(%1, by: k)
  guard k >= 1: "nothing is positive"
  return y = %1, z = %2
})");
  InterpretOptions options = With("times", Times);
  options.host_kernels.Set("positive", [](const HostCall& call) -> Results {
    EXPECT_EQ(call.results[0].ToString(), "f32[k]");
    std::vector<double> found;
    for (int64_t i = 0; i < call.inputs[0].size(); ++i) {
      const double x = call.inputs[0].GetDouble(i);
      if (x > 0) found.push_back(x);
    }
    const auto count = static_cast<int64_t>(found.size());
    return std::vector<Tensor>{F32({count}, found)};
  });
  ASSERT_OK_AND_ASSIGN(const auto y,
                       Interpret(graph, {F32({3}, {1, -2, 3})}, options));
  EXPECT_EQ(y[0].ToString(), "f32[2] [1, 3]");
  EXPECT_EQ(y[1].ToString(), "f32[2] [2, 6]");
  EXPECT_THAT(Interpret(graph, {F32({1}, {-1})}, options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("nothing is positive")));
}

TEST(HostKernels, AreChecked) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = times(%x, by: 2)
  return y = %1
})");
  const Tensor x = F32({2}, {1, 2});
  const auto failure = [&](HostFunction function) {
    const Results results = Interpret(graph, {x}, With("times", function));
    EXPECT_FALSE(results.ok());
    return results.status();
  };
  const auto giving = [](std::vector<Tensor> results) {
    return [results](const HostCall&) -> Results { return results; };
  };
  EXPECT_THAT(failure(giving({Tensor(DType::kF64, {2})})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 1: the host kernel of `times` gave "
                                 "f64[2] for result 0, which is f32[2]")));
  EXPECT_THAT(failure(giving({Tensor(DType::kF32, {3})})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gave f32[3] for result 0, which is f32[2]")));
  EXPECT_THAT(failure(giving({Tensor(DType::kF32, {2, 1})})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gave f32[2, 1] for result 0")));
  EXPECT_THAT(failure(giving({})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`times` gave 0 results, not 1")));
  EXPECT_THAT(failure(giving({x, x})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`times` gave 2 results, not 1")));
  // A mistake in making a tensor, whatever type it then has.
  EXPECT_THAT(failure([](const HostCall&) -> Results {
                return std::vector<Tensor>{F32({2}, {1, 2, 3})};
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`times`: result 0: 3 values for f32[2]")));
  EXPECT_THAT(failure([](const HostCall&) -> Results {
                return absl::UnavailableError("the device is gone");
              }),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("`times`: the device is gone")));
  EXPECT_THAT(failure(nullptr), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("`times` is no function")));
  EXPECT_THAT(
      Interpret(graph, {x}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("`times` is no primitive: a graph is expanded before "
                         "it is run, but for what has a host kernel")));
}

TEST(HostKernels, ChecksTheExtentsThatTheyDecide) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[2*k], z: f32[k]) {
  %1: f32[2*k], f32[k] = halves(%x)
  %2: f32[2*k] = result(%1, index: 0)
  %3: f32[k] = result(%1, index: 1)
  return y = %2, z = %3
})");
  const auto halves = [](const HostCall& call) -> Results {
    return std::vector<Tensor>{Tensor(DType::kF32, {6}),
                               Tensor(DType::kF32, {2})};
  };
  EXPECT_THAT(
      Interpret(graph, {F32({1}, {1})}, With("halves", halves)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the host kernel of `halves`: axis 0 of result")));
}

TEST(HostKernels, RunOnManyThreads) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = times(%x, by: n)
  return y = %1
})");
  std::atomic<int> wrong{0};
  const InterpretOptions options = With("times", Times);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t n = 1; n < 100; ++n) {
        Tensor x(DType::kF32, {n});
        x.SetDouble(n - 1, t);
        const Results y = Interpret(graph, {x}, options);
        if (!y.ok() || (*y)[0].GetDouble(n - 1) != double(t) * double(n)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cleave
