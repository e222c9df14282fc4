#include "engine/runtime/kernel.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(Kernel, ComputesWhatTheInterpreterComputes) {
  for (const KernelCase& one : KernelCases())
    ExpectAgreement(one, CaseOptions());
}

TEST(Kernel, ComputesTheSameAtEveryLevel) {
  for (const TargetLevel level : HostLevels()) {
    if (level == HostLevel()) continue;
    SCOPED_TRACE(TargetLevelName(level));
    CompileOptions options = CaseOptions();
    options.level = level;
    for (const KernelCase& one : KernelCases()) ExpectAgreement(one, options);
  }
}

TEST(Kernel, ComputesTheSameByPlainLoops) {
  CompileOptions options = CaseOptions();
  options.plain_schedule = true;
  for (const KernelCase& one : KernelCases()) ExpectAgreement(one, options);
}

// Whatever the number of threads, the order of every sum is the same.
TEST(Kernel, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto pool = MakeThreadPool(4);
  for (const KernelCase& one : KernelCases()) {
    SCOPED_TRACE(one.text);
    const Graph graph = ParseCase(one.text);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), CaseOptions()));
    std::mt19937_64 random(11);
    const DimValues dims = {{"n", 1000}, {"b", 70}, {"m", 5}, {"k", 40}};
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph.inputs()) {
      inputs.push_back(
          SmallIndices(SampleCase(graph.type(input.value), dims, random), 3));
    }
    RunOptions serial;
    serial.call.serial = true;
    RunOptions parallel;
    parallel.call.pool = pool.get();
    ASSERT_OK_AND_ASSIGN(const auto a, kernel.Run(inputs, serial));
    ASSERT_OK_AND_ASSIGN(const auto b, kernel.Run(inputs, parallel));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(SameValue(a[i], b[i]));
  }
}

constexpr char kScale[] = R"(graph (%x: f32[b, n]) -> (y: f32[b, n]) {
  %1: f32[b, n] = add(%x, %x)
  return y = %1
})";

TEST(Kernel, ReadsAnyStrides) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(kScale), Numerics(), CaseOptions()));
  const std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> result(6);
  const MutableTensorView output = {
      result.data(), DType::kF32, {2, 3}, DenseStrides({2, 3})};
  // Rows backwards, columns forwards.
  EXPECT_OK(kernel.RunInto({{data.data() + 4, DType::kF32, {2, 3}, {-4, 1}}},
                           {output}));
  EXPECT_EQ(result, (std::vector<float>{10, 12, 14, 2, 4, 6}));
  // One element for a whole row.
  EXPECT_OK(
      kernel.RunInto({{data.data(), DType::kF32, {2, 3}, {2, 0}}}, {output}));
  EXPECT_EQ(result, (std::vector<float>{2, 2, 2, 6, 6, 6}));
  // Columns backwards.
  RunReport report;
  RunOptions options;
  options.report = &report;
  EXPECT_OK(kernel.RunInto({{data.data() + 2, DType::kF32, {2, 3}, {3, -1}}},
                           {output}, options));
  EXPECT_EQ(result, (std::vector<float>{6, 4, 2, 12, 10, 8}));
  EXPECT_EQ(report.packed_bytes, 24);
}

TEST(Kernel, WritesOverItsInput) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(kScale), Numerics(), CaseOptions()));
  std::vector<float> data(101);
  for (int i = 0; i < 101; ++i) data[i] = static_cast<float>(i);
  const auto strides = DenseStrides({1, 100});
  EXPECT_OK(
      kernel.RunInto({{data.data(), DType::kF32, {1, 100}, strides}},
                     {{data.data() + 1, DType::kF32, {1, 100}, strides}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(data[i + 1], 2.0f * i);
}

// Padding is absent: an infinite weight makes no NaN of it, whether it is an
// input or computed, and where the result is written over an input.
TEST(Kernel, LeavesPaddingOutOfProductsWithWhatIsNotFinite) {
  const Graph graph = ParseCase(R"(
graph (%x: f32[1, 1, 3, 4], %w: f32[1, 1, 3, 3]) -> (y: f32[1, 1, 3, 4]) {
  %1: f32[1, 1, 3, 3] = mul(%w, %w)
  %2: f32[1, 1, 3, 4] = conv(%x, %1, batch_groups: 1, groups: 1, high: [1, 1], lhs_dilation: [1, 1], low: [1, 1], rhs_dilation: [1, 1], stride: [1, 1])
  %3: f32[1, 1, 3, 4] = abs(%2)
  return y = %3
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  for (const double weight : {3.0, 1e30, static_cast<double>(NAN)}) {
    Tensor x(DType::kF32, {1, 1, 3, 4});
    for (int i = 0; i < 12; ++i) x.SetDouble(i, i + 1);
    Tensor w(DType::kF32, {1, 1, 3, 3});
    for (int i = 0; i < 9; ++i) w.SetDouble(i, 1);
    w.SetDouble(0, weight);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                         Interpret(graph, {x, w}));
    RunReport report;
    RunOptions options;
    options.report = &report;
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         kernel.Run({x, w}, options));
    EXPECT_EQ(got[0].ToString(), want[0].ToString());
    EXPECT_EQ(got[0].GetDouble(0), 1 + 2 + 5 + 6);
    EXPECT_EQ(report.steps.back().kind == "reference", weight != 3.0);
    const auto strides = DenseStrides(x.shape());
    void* const data = x.mutable_data();
    EXPECT_OK(kernel.RunInto(
        {{data, DType::kF32, x.shape(), strides},
         {w.data(), DType::kF32, w.shape(), DenseStrides(w.shape())}},
        {{data, DType::kF32, x.shape(), strides}}));
    EXPECT_EQ(x.ToString(), want[0].ToString());
  }
}

TEST(Kernel, RefusesWhatDoesNotFit) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(kScale), Numerics(), CaseOptions()));
  EXPECT_THAT(kernel.Run({}).status().message(),
              HasSubstr("0 tensors are given for 1 inputs"));
  EXPECT_THAT(
      kernel.Run({Tensor(DType::kF64, {2, 3})}).status().message(),
      HasSubstr("the input `x` is of dtype f64, but is declared f32[b, n]"));
  EXPECT_THAT(kernel.Run({Tensor(DType::kF32, {3})}).status().message(),
              HasSubstr("has 1 axes"));
  float data[6] = {};
  const TensorView input = {data, DType::kF32, {2, 3}, {3, 1}};
  float result[8] = {};
  EXPECT_THAT(kernel.RunInto({input}, {{result, DType::kF32, {2, 4}, {4, 1}}})
                  .message(),
              HasSubstr("the output `y` is f32[2, 3], but f32[2, 4] is given"));
  EXPECT_THAT(kernel.RunInto({input}, {{result, DType::kF32, {2, 3}, {4, 1}}})
                  .message(),
              HasSubstr("is not dense"));
  EXPECT_THAT(kernel
                  .RunInto({{data, DType::kF32, {-1, 3}, {3, 1}}},
                           {{result, DType::kF32, {2, 3}, {3, 1}}})
                  .message(),
              HasSubstr("has the extent -1"));
  // More bytes than an int64 counts.
  const int64_t most = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(kernel
                .RunInto({{data, DType::kF32, {most, most}, {0, 0}}},
                         {{result, DType::kF32, {2, 3}, {3, 1}}})
                .code(),
            absl::StatusCode::kResourceExhausted);
  // 2^31 elements along one axis, all of them the same.
  EXPECT_EQ(kernel
                .RunInto({{data, DType::kF32, {int64_t{1} << 31, 1}, {0, 0}}},
                         {{result, DType::kF32, {2, 3}, {3, 1}}})
                .code(),
            absl::StatusCode::kResourceExhausted);
}

class Refusing : public Allocator {
 public:
  void* Allocate(size_t, size_t) override { return nullptr; }
  void Free(void*, size_t) override {}
};

TEST(Kernel, ReportsMemoryThatIsRefused) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: f32[], z: f32[n]) {
  %1: f32[] = reduce_sum(%x, axes: [0])
  %2: f32[n] = cumulative_max(%x, axis: 0, reverse: false)
  return y = %1, z = %2
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  Refusing allocator;
  RunOptions options;
  options.call.allocator = &allocator;
  const auto result = kernel.Run({Tensor(DType::kF32, {1000000})}, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Kernel, SaysWhatRan) {
  const Graph graph = ParseCase(R"(graph (%x: c64[n]) -> (y: f32[n]) {
  %1: f32[n] = real(%x)
  %2: f32[n] = exp(%1)
  return y = %2
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  EXPECT_EQ(kernel.compiled_groups(), 1);
  EXPECT_EQ(kernel.reference_groups(), 1);
  RunReport report;
  RunOptions options;
  options.report = &report;
  EXPECT_OK(kernel.Run({Tensor(DType::kC64, {8})}, options).status());
  ASSERT_EQ(report.steps.size(), 2);
  EXPECT_EQ(report.steps[0].kind, "reference");
  EXPECT_THAT(report.steps[0].why, HasSubstr("no vector code for c64"));
  EXPECT_EQ(report.steps[1].bytes_read, 32);
  EXPECT_EQ(report.steps[1].bytes_written, 32);
  EXPECT_THAT(report.ToString(), HasSubstr("no kernel: `real`"));
}

TEST(Kernel, ChecksIndicesBeforeItReadsByThem) {
  const Graph graph =
      ParseCase(R"(graph (%x: f32[n], %i: i64[b]) -> (y: f32[b]) {
  %1: i64[b, 1] = reshape(%i, shape: [b, 1])
  %2: f32[] = constant(dtype: f32, value: 0.0)
  %3: f32[b] = gather(%x, %1, %2, axes: [0], batch: 0, mode: "error")
  %4: f32[b] = neg(%3)
  return y = %4
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  EXPECT_EQ(kernel.compiled_groups(), 1);
  EXPECT_EQ(kernel.reference_groups(), 0);
  const Tensor x = Tensor::FromDoubles(DType::kF32, {3}, {10, 20, 30});
  const auto run = [&](absl::Span<const int64_t> indices) {
    const auto size = static_cast<int64_t>(indices.size());
    return kernel.Run({x, Tensor::FromInts(DType::kI64, {size}, indices)});
  };
  ASSERT_OK_AND_ASSIGN(const auto y, run({2, 0, 1, 2}));
  EXPECT_EQ(y[0].ToString(), "f32[4] [-30, -10, -20, -30]");
  EXPECT_OK(run({}).status());
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t bad :
       {int64_t{3}, int64_t{-1}, kLeast, int64_t{1} << 32, int64_t{1} << 31}) {
    EXPECT_EQ(run({2, 0, bad, 1}).status(),
              absl::OutOfRangeError("`gather`: an index is out of range"));
  }
}

TEST(Kernel, ChecksDivisorsBeforeItDivides) {
  for (const char* op : {"rem", "floor_div", "floor_mod"}) {
    // The second divisor is computed, and stored to be checked.
    const Graph graph =
        ParseCase(absl::StrCat("graph (%x: i16[n], %y: i16[n]) -> (a: i16[n], "
                               "b: i16[n]) {\n  %1: i16[n] = ",
                               op,
                               "(%x, %y)\n  %2: i16[n] = sub(%x, %y)\n"
                               "  %3: i16[n] = ",
                               op, "(%1, %2)\n  return a = %1, b = %3\n}"));
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), CaseOptions()));
    EXPECT_EQ(kernel.reference_groups(), 0);
    const auto run = [&](absl::Span<const int64_t> x,
                         absl::Span<const int64_t> y) {
      const auto size = static_cast<int64_t>(x.size());
      const std::vector<Tensor> inputs = {
          Tensor::FromInts(DType::kI16, {size}, x),
          Tensor::FromInts(DType::kI16, {size}, y)};
      const auto expected = Interpret(graph, inputs);
      const auto got = kernel.Run(inputs);
      EXPECT_EQ(got.ok(), expected.ok());
      if (got.ok() && expected.ok()) {
        EXPECT_EQ((*got)[0].ToString(), (*expected)[0].ToString());
        EXPECT_EQ((*got)[1].ToString(), (*expected)[1].ToString());
      }
      return got.status();
    };
    EXPECT_OK(run({-32768, 7, -7, 7, -7}, {-1, 3, 3, -3, -2}));
    EXPECT_OK(run({}, {}));
    const absl::Status refused = absl::OutOfRangeError(
        absl::StrCat("`", op, "`: integer division by zero"));
    EXPECT_EQ(run({1, 2, 3}, {1, 0, 2}), refused);
    EXPECT_EQ(run({1, 2, 3}, {2, 3, 3}), refused);
  }
}

// Index arithmetic that no input decides is computed when a graph is compiled,
// but for its errors.
TEST(Kernel, DividesByZeroWhenItRuns) {
  for (const char* op : {"rem", "floor_div", "floor_mod"}) {
    const Graph graph = ParseCase(absl::StrCat(R"(graph () -> (i: i64[3]) {
  %0: i64[3] = iota(size: 3)
  %1: i64[] = constant(dtype: i64, value: 0.0)
  %2: i64[3] = broadcast_in_dim(%1, axes: [], shape: [3])
  %3: i64[3] = )",
                                               op, R"((%0, %2)
  return i = %3
})"));
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), CaseOptions()));
    EXPECT_EQ(kernel.Run({}).status(),
              absl::OutOfRangeError(
                  absl::StrCat("`", op, "`: integer division by zero")));
  }
}

// A gather of one element per row is in the kernel of the rows: what it reads
// is not stored.
TEST(Kernel, PicksAnElementOfARowInTheKernelOfTheRows) {
  const Graph graph = ParseCase(R"(
graph (%x: f32[b, n], %t: i64[b]) -> (y: f32[b]) {
  %1: f32[b] = reduce_max(%x, axes: [1], tie: "even")
  %2: f32[b, n] = broadcast_in_dim(%1, axes: [0], shape: [b, n])
  %3: f32[b, n] = sub(%x, %2)
  %4: i64[b, 1] = reshape(%t, shape: [b, 1])
  %5: f32[] = constant(dtype: f32, value: 0.0)
  %6: f32[b] = gather(%3, %4, %5, axes: [1], batch: 1, mode: "error")
  return y = %6
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  const Tensor x = Tensor::FromDoubles(DType::kF32, {2, 3}, {1, 2, 4, 9, 8, 7});
  const Tensor t = Tensor::FromInts(DType::kI64, {2}, {1, 2});
  RunReport report;
  RunOptions options;
  options.report = &report;
  ASSERT_OK_AND_ASSIGN(const auto y, kernel.Run({x, t}, options));
  EXPECT_EQ(y[0].ToString(), "f32[2] [-2, -2]");
  ASSERT_EQ(report.steps.size(), 1);
  EXPECT_EQ(report.steps[0].kind, "reduction");
  EXPECT_EQ(report.temporary_bytes, 0);
}

// Extents that are known only when a value is.
TEST(Kernel, RunsWhatHasNoShapeBeforehand) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n]) -> (y: f32[k, 1]) {
  %1: i64[k, 1] = nonzero(%x, size: k)
  %2: f32[k, 1] = convert(%1, dtype: f32)
  %3: f32[k, 1] = exp(%2)
  return y = %3
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  const Tensor x = Tensor::FromDoubles(DType::kF32, {4}, {0, 2, 0, 3});
  ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
  EXPECT_EQ(got[0].shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_NEAR(got[0].GetDouble(0), std::exp(1.0), 1e-6);
}

TEST(Kernel, RunsOnManyThreadsAtManyExtents) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(kScale), Numerics(), CaseOptions()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const int64_t n = 1 + (i * 7 + t) % 400;
        Tensor x(DType::kF32, {2, n});
        x.SetDouble(n, t);
        const auto y = kernel.Run({x});
        if (!y.ok() || (*y)[0].GetDouble(n) != 2 * t) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// No vector code sorts; the scan's region names the extent, too.
constexpr char kSortAndScan[] =
    R"(graph (%x: f32[n]) -> (i: i64[n], s: f32[n]) {
  %1: f32[n], i64[n] = sort(%x, axis: 0, descending: false)
  %2: f32[n] = result(%1, index: 0)
  %3: i64[n] = result(%1, index: 1)
  %4: f32[] = constant(dtype: f32, value: 0.0)
  %5: f32[], f32[n] = scan(%4, %2, body: graph (%c: f32[], %e: f32[]) -> (c: f32[], e: f32[]) {
    %3: i64[] = extent(value: n)
    %4: f32[] = convert(%3, dtype: f32)
    %5: f32[] = add(%c, %e)
    %6: f32[] = add(%5, %4)
    return c = %6, e = %6
  }, carries: 1, consts: 0, length: n, reverse: false)
  %6: f32[n] = result(%5, index: 1)
  return i = %3, s = %6
})";

// n .. 1: the sum of the smallest i + 1 of them, and n at each step.
bool IsSortedAndSummed(const std::vector<Tensor>& outputs, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(i + 1 + n);
    if (outputs[0].GetInt(i) != n - 1 - i) return false;
    if (outputs[1].GetDouble(i) != sum) return false;
  }
  return true;
}

Tensor Descending(int64_t n) {
  Tensor x(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i) x.SetDouble(i, static_cast<double>(n - i));
  return x;
}

TEST(Kernel, SaysWhichStepsAreTheRuntimesAndLoops) {
  const Graph graph = ParseCase(R"(graph (%x: f32[n, m]) -> (y: f32[m]) {
  %1: f32[n, m], i64[n, m] = sort(%x, axis: 0, descending: true)
  %2: f32[n, m] = result(%1, index: 0)
  %3: f32[] = constant(dtype: f32, value: 0.0)
  %4: f32[m] = broadcast_in_dim(%3, axes: [], shape: [m])
  %5: f32[m] = scan(%4, %2, body: graph (%c: f32[m], %s: f32[m]) -> (y0: f32[m]) {
    %1: f32[m] = mul(%c, %s)
    %2: f32[m] = add(%1, %s)
    return y0 = %2
  }, carries: 1, consts: 0, length: n, reverse: false)
  return y = %5
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  RunReport report;
  RunOptions options;
  options.report = &report;
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      kernel.Run({Tensor::FromDoubles(DType::kF32, {3, 1}, {1, 3, 2})},
                 options));
  // ((3) * 2 + 2) * 1 + 1
  EXPECT_EQ(outputs[0].GetDouble(0), 9);
  std::vector<std::string> kinds;
  for (const StepReport& step : report.steps) {
    kinds.push_back(step.kind);
    EXPECT_EQ(step.why, "");
  }
  EXPECT_THAT(kinds, ::testing::IsSupersetOf({"runtime", "loop"}));
  EXPECT_EQ(kernel.reference_groups(), 0);
}

// Scores of 4 MiB a head, of four heads.
TEST(Kernel, RunsLargeBatchesOfProductsInRounds) {
  const Graph graph = ParseCase(
      R"(graph (%q: f32[2, 2, 1024, 2], %k: f32[2, 2, 1024, 2]) -> (y: f32[2, 2, 1024, 2]) {
  %1: f32[2, 2, 1024, 1024] = dot_general(%q, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [3])
  %2: f32[2, 2, 1024] = reduce_max(%1, axes: [3], tie: "even")
  %3: f32[2, 2, 1024, 1024] = broadcast_in_dim(%2, axes: [0, 1, 2], shape: [2, 2, 1024, 1024])
  %4: f32[2, 2, 1024, 1024] = sub(%1, %3)
  %5: f32[2, 2, 1024, 2] = dot_general(%4, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [2])
  return y = %5
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  // Sums of small numbers are exact.
  std::vector<Tensor> inputs;
  for (int i = 0; i < 2; ++i) {
    Tensor& tensor =
        inputs.emplace_back(DType::kF32, std::vector<int64_t>{2, 2, 1024, 2});
    for (int64_t j = 0; j < tensor.size(); ++j) {
      tensor.SetDouble(j, static_cast<double>(j * (i + 3) % 7) - 3);
    }
  }
  RunReport report;
  RunOptions options;
  options.report = &report;
  ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run(inputs, options));
  ASSERT_OK_AND_ASSIGN(const auto want, Interpret(graph, inputs));
  EXPECT_TRUE(SameValue(got[0], want[0]));
  EXPECT_EQ(report.steps[0].kind, "loop");
}

TEST(Kernel, RunsReferenceStepsOnManyThreadsAtManyExtents) {
  constexpr int kThreads = 16;
  constexpr int64_t kExtents = 320;  // more than a kernel keeps instances of
  for (int repetition = 0; repetition < 3; ++repetition) {
    const Graph graph = ParseCase(kSortAndScan);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), CaseOptions()));
    // The body has the extent of what it is in.
    ASSERT_EQ(kernel.reference_groups(), 1);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int64_t i = 0; i < kExtents / 2; ++i) {
          const int64_t n = 1 + (i * 7 + t * 20) % kExtents;
          const auto outputs = kernel.Run({Descending(n)});
          if (!outputs.ok() || !IsSortedAndSummed(*outputs, n)) ++wrong;
        }
      });
    }
    // Meanwhile the host goes on in the context of the graph.
    for (int64_t i = 0; i < kExtents; ++i) {
      graph.context()->Intern(TensorType{DType::kI8, {Dim(i + 1), Dim(i)}});
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

// The number that the next type of a context gets: one that it has not seen.
TypeId NextType(Context& context) {
  static int64_t unseen = int64_t{1} << 40;
  return context.Intern(TensorType{DType::kBool, {Dim(unseen++)}});
}
AttributesId NextAttributes(Context& context) {
  static int64_t unseen = int64_t{1} << 40;
  return context.Intern(Attributes{{"unseen", unseen++}});
}

TEST(Kernel, AddsNothingToContextsWhereItRuns) {
  // The second one has extents that only a run knows.
  for (const char* text : {kSortAndScan, R"(graph (%x: f32[n]) -> (y: f32[k]) {
  %1: i64[k, 1] = nonzero(%x, size: k)
  %2: f32[k, 1] = convert(%1, dtype: f32)
  %3: f32[k] = reshape(%2, shape: [k])
  %4: f32[k], i64[k] = sort(%3, axis: 0, descending: true)
  %5: f32[k] = result(%4, index: 0)
  return y = %5
})"}) {
    const Graph graph = ParseCase(text);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), CaseOptions()));
    const std::vector<std::shared_ptr<Context>> contexts = {
        graph.context(), kernel.graph().context()};
    EXPECT_NE(contexts[0], contexts[1]) << "a kernel reads what hosts fill";
    for (const auto& context : contexts) {
      const TypeId types = NextType(*context);
      const AttributesId attributes = NextAttributes(*context);
      for (int64_t n = 1; n <= 20; ++n) {
        EXPECT_OK(kernel.Run({Descending(n)}));
      }
      EXPECT_EQ(NextType(*context), types + 1);
      EXPECT_EQ(NextAttributes(*context), attributes + 1);
    }
  }
}

}  // namespace
}  // namespace cleave
