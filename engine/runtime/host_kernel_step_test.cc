// Steps of a kernel that the host computes.

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/ir/host_kernel.h"
#include "engine/ir/host_kernel_testing.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Results = absl::StatusOr<std::vector<Tensor>>;

CompileOptions With(absl::string_view op, HostFunction function) {
  CompileOptions options = CaseOptions();
  options.host_kernels.Set(op, std::move(function));
  return options;
}

// Kernels on both sides of the host's.
constexpr char kBetween[] = R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = add(%x, %x)
  %2: f32[n] = times(%1, by: n)
  %3: f32[n] = sub(%2, %1)
  return y = %3
})";

TEST(HostStep, RunsBetweenKernels) {
  for (const bool generalize : {false, true}) {
    CompileOptions compile = With("times", Times);
    compile.generalize_extents = generalize;
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(ParseCase(kBetween), Numerics(), compile));
    EXPECT_EQ(kernel.compiled_groups(), 2);
    EXPECT_EQ(kernel.reference_groups(), 0);
    EXPECT_EQ(kernel.host_groups(), 1);
    RunReport report;
    RunOptions options;
    options.report = &report;
    ASSERT_OK_AND_ASSIGN(const auto y,
                         kernel.Run({F32({3}, {1, 2, 3})}, options));
    EXPECT_EQ(y[0].ToString(), "f32[3] [4, 8, 12]");
    ASSERT_EQ(report.steps.size(), 3);
    EXPECT_EQ(report.steps[1].kind, "host");
    EXPECT_THAT(report.steps[1].ops, ElementsAre("times"));
    EXPECT_EQ(report.steps[1].bytes_read, 12);
    EXPECT_EQ(report.steps[1].bytes_written, 12);
    EXPECT_THAT(report.ToString(), HasSubstr("host"));
    // Memory for the sum alone: the host's result stays where it is.
    EXPECT_LE(report.temporary_bytes, 128);
  }
}

TEST(HostStep, ReadsAndReturnsWithoutCopies) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = look(%x)
  %2: f32[n] = add(%1, %1)
  return y = %2
})");
  const Tensor x = F32({3}, {1, 2, 3});
  const Tensor made = F32({3}, {4, 5, 6});
  const void* seen = nullptr;
  const auto look = [&](const HostCall& call) -> Results {
    seen = call.inputs[0].data();
    return std::vector<Tensor>{made};
  };
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), With("look", look)));
  ASSERT_OK_AND_ASSIGN(const auto y, kernel.Run({x}));
  EXPECT_EQ(seen, x.data());
  EXPECT_EQ(y[0].ToString(), "f32[3] [8, 10, 12]");
  EXPECT_EQ(made.ToString(), "f32[3] [4, 5, 6]");
}

// An operand that is returned lies in memory that later steps write.
TEST(HostStep, ReturnsItsOperand) {
  const Graph graph =
      ParseCase(R"(graph (%x: f32[n]) -> (y: f32[n], z: f32[n]) {
  %1: f32[n] = add(%x, %x)
  %2: f32[n] = same(%1)
  %3: f32[n] = cumulative_max(%2, axis: 0, reverse: false)
  %4: f32[n] = same(%3)
  %5: f32[n] = add(%4, %2)
  return y = %5, z = %4
})");
  const auto same = [](const HostCall& call) -> Results {
    return std::vector<Tensor>{call.inputs[0]};
  };
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), With("same", same)));
  ASSERT_OK_AND_ASSIGN(const auto y, kernel.Run({F32({3}, {1, 2, 3})}));
  EXPECT_EQ(y[0].ToString(), "f32[3] [4, 8, 12]");
  EXPECT_EQ(y[1].ToString(), "f32[3] [2, 4, 6]");
}

TEST(HostStep, RefusesThatAnInputIsKept) {
  std::vector<Tensor> kept;
  const auto keep = [&](const HostCall& call) -> Results {
    kept.push_back(call.inputs[0]);
    return Times(call);
  };
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kBetween), Numerics(), With("times", keep)));
  EXPECT_THAT(kernel.Run({F32({1}, {1})}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the host kernel of `times` keeps an input")));
}

TEST(HostStep, ReadsMemoryThatIsNotAligned) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = times(%x, by: 3)
  return y = %1
})"),
                               Numerics(), With("times", Times)));
  std::vector<float> data = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<float> result(3);
  for (int offset = 0; offset < 4; ++offset) {
    EXPECT_OK(
        kernel.RunInto({{data.data() + offset, DType::kF32, {3}, {1}}},
                       {{result.data(), DType::kF32, {3}, DenseStrides({3})}}));
    EXPECT_EQ(result[2], 3.0F * static_cast<float>(offset + 2));
  }
  ASSERT_OK_AND_ASSIGN(const auto none, kernel.Run({F32({0}, {})}));
  EXPECT_EQ(none[0].ToString(), "f32[0] []");
}

TEST(HostStep, GivesSeveralResultsOfWhichOneIsRead) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: i64[]) {
  %1: f32[n], i64[] = both(%x)
  %2: i64[] = result(%1, index: 1)
  return y = %2
})");
  const auto both = [](const HostCall& call) -> Results {
    EXPECT_EQ(call.results.size(), 2);
    return std::vector<Tensor>{call.inputs[0],
                               Tensor::FromInts(DType::kI64, {}, {7})};
  };
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), With("both", both)));
  ASSERT_OK_AND_ASSIGN(const auto y, kernel.Run({F32({2}, {1, 2})}));
  EXPECT_EQ(y[0].ToString(), "i64[] [7]");
}

TEST(HostStep, RunsInRegions) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: f32[]) {
  %1: f32[] = constant(dtype: f32, value: 0.0)
  %2: f32[] = scan(%1, %x, body: graph (%c: f32[], %e: f32[]) -> (c: f32[]) {
    %2: f32[] = times(%e, by: n)
    %3: f32[] = add(%c, %2)
    return c = %3
  }, carries: 1, consts: 0, length: n, reverse: false)
  return y = %2
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), With("times", Times)));
  EXPECT_EQ(kernel.reference_groups(), 1);
  ASSERT_OK_AND_ASSIGN(const auto y, kernel.Run({F32({3}, {1, 2, 3})}));
  EXPECT_EQ(y[0].ToString(), "f32[] [18]");
}

TEST(HostStep, DecidesExtents) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: f32[k]) {
  %1: f32[n] = add(%x, %x)
  %2: f32[k] = positive(%1)
  %3: f32[k] = mul(%2, %2)
  %4: f32[k] = times(%3, by: k)
  return y = %4
})");
  CompileOptions compile = With("times", Times);
  compile.host_kernels.Set("positive", [](const HostCall& call) -> Results {
    std::vector<double> found;
    for (int64_t i = 0; i < call.inputs[0].size(); ++i) {
      const double x = call.inputs[0].GetDouble(i);
      if (x > 0) found.push_back(x);
    }
    if (static_cast<int64_t>(found.size()) == call.inputs[0].size()) {
      return std::vector<Tensor>{call.inputs[0]};
    }
    const auto count = static_cast<int64_t>(found.size());
    return std::vector<Tensor>{F32({count}, found)};
  });
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), compile));
  ASSERT_OK_AND_ASSIGN(const auto some, kernel.Run({F32({3}, {1, -2, 3})}));
  EXPECT_EQ(some[0].ToString(), "f32[2] [8, 72]");
  ASSERT_OK_AND_ASSIGN(const auto all, kernel.Run({F32({2}, {1, 2})}));
  EXPECT_EQ(all[0].ToString(), "f32[2] [8, 32]");
}

TEST(HostStep, SaysWhatIsWrongWithAResult) {
  const auto failure = [](HostFunction function) {
    const auto kernel =
        Compile(ParseCase(kBetween), Numerics(), With("times", function));
    EXPECT_THAT(kernel, IsOk());
    return kernel->Run({F32({2}, {1, 2})}).status();
  };
  EXPECT_THAT(failure([](const HostCall&) -> Results {
                return std::vector<Tensor>{Tensor(DType::kF64, {2})};
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the host kernel of `times` gave f64[2] for "
                                 "result 0, which is f32[2]")));
  EXPECT_THAT(failure([](const HostCall&) -> Results {
                return std::vector<Tensor>{Tensor(DType::kF32, {3})};
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gave f32[3] for result 0")));
  EXPECT_THAT(
      failure([](const HostCall&) -> Results {
        return absl::AbortedError("out of paper");
      }),
      StatusIs(absl::StatusCode::kAborted, HasSubstr("`times`: out of paper")));
}

TEST(HostStep, IsNeededForACompositeOp) {
  EXPECT_THAT(
      Compile(ParseCase(kBetween), Numerics(), With("others", Times)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("`times` is no primitive: a graph is expanded before "
                         "it is compiled, but for what has a host kernel")));
}

// Equal graphs with other functions are other kernels, though they share code.
TEST(HostStep, IsNoPartOfTheCache) {
  KernelCache cache({});
  const auto result = [&](HostFunction function) {
    CompileOptions compile = With("times", std::move(function));
    compile.cache = &cache;
    const auto kernel = Compile(ParseCase(kBetween), Numerics(), compile);
    EXPECT_THAT(kernel, IsOk());
    return kernel->Run({F32({1}, {5})}).value()[0].ToString();
  };
  EXPECT_EQ(result(Times), "f32[1] [0]");
  const int64_t compiled = cache.stats().compiled;
  EXPECT_EQ(result([](const HostCall& call) -> Results {
              return std::vector<Tensor>{F32({1}, {100})};
            }),
            "f32[1] [90]");
  EXPECT_EQ(cache.stats().compiled, compiled);
}

TEST(HostStep, RunsOnManyThreads) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kBetween), Numerics(), With("times", Times)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t n = 1 + (i * 7 + t) % 300;
        Tensor x(DType::kF32, {n});
        x.SetDouble(n - 1, t);
        const auto y = kernel.Run({x});
        const double want = 2.0 * t * static_cast<double>(n - 1);
        if (!y.ok() || (*y)[0].GetDouble(n - 1) != want) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cleave
