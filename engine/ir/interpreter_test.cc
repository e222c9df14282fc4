#include "engine/ir/interpreter.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/substitute.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_THAT(graph, IsOk());
  if (!graph.ok()) return Graph();
  EXPECT_THAT(Verify(*graph), IsOk());
  return *std::move(graph);
}

Tensor F32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF32, std::move(shape), values);
}

// Both interpreters, which must agree on values that are exact in f32.
std::vector<std::string> RunBoth(const Graph& graph,
                                 const std::vector<Tensor>& inputs) {
  absl::StatusOr<std::vector<Tensor>> outputs = Interpret(graph, inputs);
  EXPECT_THAT(outputs, IsOk());
  std::vector<RealTensor> reals;
  for (const Tensor& input : inputs) {
    reals.push_back(RealTensor::FromTensor(input, 200));
  }
  absl::StatusOr<std::vector<RealTensor>> real_outputs =
      InterpretReal(graph, reals, 200);
  EXPECT_THAT(real_outputs, IsOk());
  std::vector<std::string> texts;
  if (!outputs.ok() || !real_outputs.ok()) return texts;
  EXPECT_EQ(outputs->size(), real_outputs->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    texts.push_back((*outputs)[i].ToString());
    EXPECT_EQ((*real_outputs)[i].RoundTo((*outputs)[i].dtype()).ToString(),
              texts.back());
  }
  return texts;
}

TEST(Interpret, EvaluatesInOrder) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n], %y: f32[n]) -> (s: f32[n], x: f32[n], s2: f32[n], t: f32[]) {
  %1: f32[n] = add(%x, %y)
  %2: f32[n] = mul(%1, %1)
  %3: f32[n] = sub(%2, %x)
  %4: f32[] = reduce_sum(%3, axes: [0])
  return s = %3, x = %x, s2 = %3, t = %4
}
)");
  EXPECT_THAT(RunBoth(graph, {F32({2}, {1, 2}), F32({2}, {3, 4})}),
              ElementsAre("f32[2] [15, 34]", "f32[2] [1, 2]", "f32[2] [15, 34]",
                          "f32[] [49]"));
}

TEST(Interpret, SubstitutesExtents) {
  const Graph graph = Parsed(R"(
graph (%x: f32[2*n + 1]) -> (y: f32[n, 3], n: i64[]) {
  %1: f32[n] = slice(%x, start: [n + 1], size: [n], stride: [1])
  %2: f32[n, 3] = broadcast_in_dim(%1, shape: [n, 3], axes: [0])
  %3: i64[] = extent(value: n)
  return y = %2, n = %3
}
)");
  EXPECT_THAT(RunBoth(graph, {F32({5}, {0, 1, 2, 3, 4})}),
              ElementsAre("f32[2, 3] [3, 3, 3, 4, 4, 4]", "i64[] [2]"));
  EXPECT_THAT(Interpret(graph, {F32({4}, {0, 1, 2, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("axis 0 of the input `x` is 4, but must be "
                                 "2*n + 1")));
}

TEST(Interpret, ChecksInputs) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n, 3], %y: f32[n]) -> (y: f32[n]) {
  return y = %y
}
)");
  const Tensor y = F32({2}, {1, 2});
  EXPECT_THAT(Interpret(graph, {F32({2, 3}, std::vector<double>(6)), y}),
              IsOk());
  EXPECT_THAT(Interpret(graph, {y}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 tensors are given for 2 inputs")));
  EXPECT_THAT(Interpret(graph, {y, y}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`x` has 1 axes")));
  EXPECT_THAT(Interpret(graph, {F32({2, 4}, std::vector<double>(8)), y}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("axis 1 of the input `x` is 4, but must be "
                                 "3")));
  EXPECT_THAT(Interpret(graph, {F32({3, 3}, std::vector<double>(9)), y}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("axis 0 of the input `y` is 2, but must be n, "
                                 "which is 3")));
  EXPECT_THAT(
      Interpret(graph, {Tensor(DType::kF64, {2, 3}), y}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dtype f64")));
}

TEST(Interpret, BindsDims) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n + m, 3*m], %y: f32[n // 2], %z: f32[m]) -> (z: f32[m]) {
  return z = %z
}
)");
  auto bind = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
    return BindDims(graph,
                    {Tensor(DType::kF32, {a, b}), Tensor(DType::kF32, {c}),
                     Tensor(DType::kF32, {d})});
  };
  ASSERT_OK_AND_ASSIGN(const DimValues values, bind(7, 6, 2, 2));
  EXPECT_THAT(values, ElementsAre(Pair("m", 2), Pair("n", 5)));
  EXPECT_THAT(bind(7, 5, 2, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("integer m")));
  EXPECT_THAT(bind(1, 6, 2, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("integer n")));
  EXPECT_THAT(bind(7, 6, 3, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("which is 2")));
  const Graph open = Parsed(R"(
graph (%x: f32[n // 2]) -> (x: f32[n // 2]) {
  return x = %x
}
)");
  EXPECT_THAT(BindDims(open, {Tensor(DType::kF32, {2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not determine n")));
}

TEST(Interpret, ChecksGuards) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n], %y: f32[m]) -> (z: f32[n]) {
  %1: f32[n] = add(%x, %y)
  return z = %1
}
)");
  ASSERT_EQ(graph.guards().size(), 1u);
  EXPECT_THAT(RunBoth(graph, {F32({1}, {1}), F32({1}, {2})}),
              ElementsAre("f32[1] [3]"));
  EXPECT_THAT(Interpret(graph, {F32({1}, {1}), F32({2}, {2, 3})}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(Interpret, RefusesCompositesAndUnknownExtents) {
  EXPECT_THAT(Interpret(Parsed(R"(
graph (%x: f32[]) -> (y: f32[]) {
  %1: f32[] = softplus(%x)
  return y = %1
}
)"),
                        {F32({}, {1})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`softplus` is no primitive")));
  EXPECT_THAT(Interpret(Parsed(R"(
graph () -> (y: i64[n]) {
  %1: i64[n] = iota(size: n)
  return y = %1
}
)"),
                        {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

constexpr char kScan[] = R"(
graph (%k: f32[], %a: f32[2], %xs: f32[n, 2]) -> (last: f32[2], all: f32[n, 2], i: i64[n]) {
  %1: f32[2], f32[n, 2], i64[n] = scan(%k, %a, %xs, body: graph (%k: f32[], %c: f32[2], %x: f32[2]) -> (c: f32[2], y: f32[2], i: i64[]) {
    %1: f32[2] = broadcast_in_dim(%k, shape: [2], axes: [])
    %2: f32[2] = mul(%c, %1)
    %3: f32[2] = add(%2, %x)
    %4: i64[] = extent(value: n)
    return c = %3, y = %2, i = %4
  }, consts: 1, carries: 1, length: n, reverse: $0)
  %2: f32[2] = result(%1, index: 0)
  %3: f32[n, 2] = result(%1, index: 1)
  %4: i64[n] = result(%1, index: 2)
  return last = %2, all = %3, i = %4
}
)";

TEST(Interpret, Scans) {
  const Graph forward = Parsed(absl::Substitute(kScan, "false"));
  const Graph backward = Parsed(absl::Substitute(kScan, "true"));
  const std::vector<Tensor> inputs = {F32({}, {2}), F32({2}, {1, 10}),
                                      F32({3, 2}, {1, 2, 3, 4, 5, 6})};
  EXPECT_THAT(
      RunBoth(forward, inputs),
      ElementsAre("f32[2] [23, 102]", "f32[3, 2] [2, 20, 6, 44, 18, 96]",
                  "i64[3] [3, 3, 3]"));
  EXPECT_THAT(
      RunBoth(backward, inputs),
      ElementsAre("f32[2] [35, 114]", "f32[3, 2] [34, 112, 14, 52, 2, 20]",
                  "i64[3] [3, 3, 3]"));
  // No steps: the carries stay, the stacks are empty.
  EXPECT_THAT(
      RunBoth(forward, {F32({}, {2}), F32({2}, {1, 10}), F32({0, 2}, {})}),
      ElementsAre("f32[2] [1, 10]", "f32[0, 2] []", "i64[0] []"));
}

// Euclid's algorithm, at most n steps; i64 has no bound of its own.
constexpr char kWhile[] = R"(
graph (%a: i64[], %b: i64[], %xs: f32[n]) -> (a: i64[], left: i64[]) {
  %1: i64[], i64[], i64[] = while(%xs, %a, %b, %a, cond: graph (%xs: f32[n], %a: i64[], %b: i64[], %left: i64[]) -> (p: bool[]) {
    %1: i64[] = constant(dtype: i64, value: 0.0)
    %2: bool[] = ne(%b, %1)
    return p = %2
  }, body: graph (%xs: f32[n], %a: i64[], %b: i64[], %left: i64[]) -> (a: i64[], b: i64[], left: i64[]) {
    %1: i64[] = floor_mod(%a, %b)
    %2: i64[] = extent(value: n)
    return a = %b, b = %1, left = %2
  }, consts: 1$0)
  %2: i64[] = result(%1, index: 0)
  %3: i64[] = result(%1, index: 2)
  return a = %2, left = %3
}
)";

TEST(Interpret, RunsALoopAsLongAsItsConditionHolds) {
  auto inputs = [](int64_t a, int64_t b, int64_t n) {
    return std::vector<Tensor>{Tensor::FromInts(DType::kI64, {}, {a}),
                               Tensor::FromInts(DType::kI64, {}, {b}),
                               Tensor(DType::kF32, {n})};
  };
  const Graph bounded = Parsed(absl::Substitute(kWhile, ", max: n"));
  const Graph unbounded = Parsed(absl::Substitute(kWhile, ""));
  for (const Graph* graph : {&bounded, &unbounded}) {
    // (12, 18), (18, 12), (12, 6), (6, 0).
    EXPECT_THAT(RunBoth(*graph, inputs(12, 18, 3)),
                ElementsAre("i64[] [6]", "i64[] [3]"));
    // No step: the carries stay.
    EXPECT_THAT(RunBoth(*graph, inputs(12, 0, 0)),
                ElementsAre("i64[] [12]", "i64[] [12]"));
  }
  EXPECT_THAT(RunBoth(unbounded, inputs(12, 18, 2)),
              ElementsAre("i64[] [6]", "i64[] [2]"));
  EXPECT_THAT(
      Interpret(bounded, inputs(12, 18, 2)),
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("`while`: the condition still holds after 2 steps, "
                         "its `max`")));
}

constexpr char kForEver[] = R"(
graph (%a: i64[]) -> (a: i64[]) {
  %1: i64[] = while(%a, cond: graph (%a: i64[]) -> (p: bool[]) {
    %1: bool[] = eq(%a, %a)
    return p = %1
  }, body: graph (%a: i64[]) -> (a: i64[]) {
    return a = %a
  }, consts: 0)
  return a = %1
}
)";

absl::StatusOr<std::vector<Tensor>> InterpretWithin(
    const Limits& limits, const Graph& graph,
    const std::vector<Tensor>& inputs) {
  const BudgetScope scope(limits);
  return Interpret(graph, inputs);
}

absl::Status InterpretRealWithin(const Limits& limits, const Graph& graph,
                                 const Tensor& input) {
  constexpr int kBits = 64;
  const BudgetScope scope(limits);
  return InterpretReal(graph, {RealTensor::FromTensor(input, kBits)}, kBits)
      .status();
}

TEST(Interpret, LimitsTheStepsOfLoops) {
  const Graph graph = Parsed(kForEver);
  const Tensor a = Tensor::FromInts(DType::kI64, {}, {1});
  Limits limits;
  limits.loop_steps = 1000;
  const auto limited =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("more than 1000 steps of loops; Limits::loop_steps "
                         "(--max-steps) allows more"));
  EXPECT_THAT(InterpretWithin(limits, graph, {a}), limited);
  EXPECT_THAT(InterpretRealWithin(limits, graph, a), limited);
  // Each evaluation counts from zero, also within one scope.
  const Graph scan = Parsed(absl::Substitute(kScan, "false"));
  const std::vector<Tensor> inputs = {F32({}, {2}), F32({2}, {1, 10}),
                                      F32({3, 2}, {1, 2, 3, 4, 5, 6})};
  limits.loop_steps = 3;
  const BudgetScope scope(limits);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Interpret(scan, inputs).ok());
  EXPECT_THAT(Interpret(scan, {F32({}, {2}), F32({2}, {1, 10}),
                               Tensor(DType::kF32, {4, 2})}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(Interpret, EndsWhenItIsCancelled) {
  const Graph graph = Parsed(kForEver);
  const Tensor a = Tensor::FromInts(DType::kI64, {}, {1});
  std::atomic<bool> cancelled{false};
  Limits limits;
  limits.loop_steps = INT64_MAX;
  limits.cancelled = &cancelled;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
  });
  EXPECT_THAT(InterpretWithin(limits, graph, {a}),
              StatusIs(absl::StatusCode::kCancelled));
  other.join();
  EXPECT_THAT(InterpretRealWithin(limits, graph, a),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(Interpret, LimitsTheBytesOfTensors) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n, m]) -> (y: f32[n]) {
  %1: f32[] = constant(value: 1.0, dtype: f32)
  %2: f32[n] = broadcast_in_dim(%1, shape: [n], axes: [])
  return y = %2
}
)");
  // An empty array has any extents.
  const Tensor x(DType::kF32, {4'000'000'000, 0});
  const auto limited =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("Limits::tensor_bytes (--max-memory)"));
  Limits limits;
  limits.tensor_bytes = int64_t{4} << 30;
  EXPECT_THAT(InterpretWithin(limits, graph, {x}), limited);
  EXPECT_THAT(InterpretRealWithin(limits, graph, x), limited);
  limits.tensor_bytes = 100'000;
  EXPECT_TRUE(
      InterpretWithin(limits, graph, {Tensor(DType::kF32, {1000, 0})}).ok());
  EXPECT_THAT(
      InterpretWithin(limits, graph, {Tensor(DType::kF32, {10'000, 0})}),
      limited);
}

TEST(Interpret, TakesOneRegion) {
  const Graph graph = Parsed(R"(
graph (%p: bool[], %a: i64[], %b: i64[]) -> (q: i64[], ok: bool[]) {
  %1: i64[], bool[] = cond(%p, %a, %b, then: graph (%a: i64[], %b: i64[]) -> (q: i64[], ok: bool[]) {
    %1: i64[] = floor_div(%a, %b)
    %2: bool[] = constant(value: true, dtype: bool)
    return q = %1, ok = %2
  }, else: graph (%a: i64[], %b: i64[]) -> (q: i64[], ok: bool[]) {
    %1: bool[] = constant(value: false, dtype: bool)
    return q = %a, ok = %1
  })
  %2: i64[] = result(%1, index: 0)
  %3: bool[] = result(%1, index: 1)
  return q = %2, ok = %3
}
)");
  auto inputs = [](bool p, int64_t a, int64_t b) {
    return std::vector<Tensor>{Tensor::Scalar(DType::kBool, p),
                               Tensor::FromInts(DType::kI64, {}, {a}),
                               Tensor::FromInts(DType::kI64, {}, {b})};
  };
  EXPECT_THAT(RunBoth(graph, inputs(true, 7, 2)),
              ElementsAre("i64[] [3]", "bool[] [true]"));
  // The other region, which would divide by zero, is not run.
  EXPECT_THAT(RunBoth(graph, inputs(false, 7, 0)),
              ElementsAre("i64[] [7]", "bool[] [false]"));
  EXPECT_THAT(Interpret(graph, inputs(true, 7, 0)),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(Interpret, BindsTheSizeOfNonzero) {
  const Graph graph = Parsed(R"(
graph (%x: f32[n], %y: f32[m]) -> (at: i64[k, 1], zeros: f32[k], sum: f32[k]) {
  %1: i64[k, 1] = nonzero(%x, size: k)
  %2: f32[] = constant(value: 0.0, dtype: f32)
  %3: f32[k] = broadcast_in_dim(%2, shape: [k], axes: [])
  %4: f32[k] = add(%3, %y)
  return at = %1, zeros = %3, sum = %4
}
)");
  EXPECT_THAT(
      RunBoth(graph, {F32({4}, {0, 3, NAN, 0}), F32({2}, {5, 6})}),
      ElementsAre("i64[2, 1] [1, 2]", "f32[2] [0, 0]", "f32[2] [5, 6]"));
  EXPECT_THAT(Interpret(graph, {F32({4}, {0, 3, 1, 1}), F32({2}, {5, 6})}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(Interpret, SaysWhereAKernelFails) {
  auto context = std::make_shared<Context>();
  GraphBuilder b(context);
  const Value x = b.Input("x", {DType::kI64, {}});
  const Value zero = b.Constant(Exact(0), DType::kI64);
  b.SetProvenance(context->Intern(Provenance{"quotient", "a.rules", 7}));
  const Value q = b.Apply(Primitive::kFloorDiv, {x, zero});
  const Graph graph = *std::move(b).Build({{"q", q}});
  EXPECT_THAT(Interpret(graph, {Tensor::FromInts(DType::kI64, {}, {1})}),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("(quotient, a.rules:7)")));
}

}  // namespace
}  // namespace cleave
