#include "engine/runtime/kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/codegen/numerics.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/file.h"
#include "engine/runtime/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// The rules of rules/numerics, loaded once.
const RuleSet& Numerics() {
  static const auto* const rules = [] {
    const auto sources = ReadRuleFiles({"rules/numerics"});
    CLEAVE_CHECK(sources.ok());
    LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
    CLEAVE_CHECK(loaded.diagnostics.empty());
    return new std::shared_ptr<const RuleSet>(loaded.rules);
  }();
  return **rules;
}

KernelCache& Cache() {
  static auto* const cache = new KernelCache({::testing::TempDir() + "/cache"});
  return *cache;
}

CompileOptions Options() {
  CompileOptions options;
  options.cache = &Cache();
  return options;
}

Graph Parse(absl::string_view text) {
  auto graph = ParseGraph(text, Numerics().context());
  CLEAVE_CHECK(graph.ok());
  return *std::move(graph);
}

// Numbers of every kind: small, large, special, subnormal, repeated.
Tensor Sample(const TensorType& type, const DimValues& dims,
              std::mt19937_64& random) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Evaluate(dims));
  Tensor tensor(type.dtype, shape);
  std::normal_distribution<double> normal(0, 3);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0,   -0.0, 1.0,     -1.0,   kInf, -kInf,
                            NAN,   0.5,  1e-40,   -1e-42, 3e38, -65519,
                            65520, 88.8, -103.98, 6e-8};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsFloat(type.dtype)) {
      const bool is_special = random() % 4 == 0;
      tensor.SetDouble(i, is_special ? special[random() % 16] : normal(random));
    } else if (IsBool(type.dtype)) {
      tensor.SetInt(i, static_cast<int64_t>(random() % 2));
    } else if (random() % 2 == 0) {
      std::memset(tensor.mutable_data() + i * ByteSize(type.dtype),
                  random() % 2 == 0 ? 0x80 : 0xff, ByteSize(type.dtype));
    } else {
      tensor.SetInt(i, static_cast<int64_t>(random() % 40));
    }
  }
  return tensor;
}

// Finite inputs, for results that are compared by their size.
Tensor Finite(Tensor tensor) {
  if (!IsFloat(tensor.dtype())) return tensor;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.GetDouble(i);
    if (!(std::abs(value) < 1e3)) tensor.SetDouble(i, i % 7 - 3);
  }
  return tensor;
}

std::string Difference(const Tensor& got, const Tensor& want,
                       double tolerance) {
  if (tolerance == 0) {
    if (SameValue(got, want)) return "";
    for (int64_t i = 0; i < got.size(); ++i) {
      const Tensor a = Tensor::Scalar(DType::kF64, got.GetDouble(i));
      const Tensor b = Tensor::Scalar(DType::kF64, want.GetDouble(i));
      if (SameValue(a, b)) continue;
      return absl::StrCat("element ", i, " is ", got.GetDouble(i), ", not ",
                          want.GetDouble(i));
    }
    return "another shape or dtype";
  }
  if (got.shape() != want.shape()) return "another shape";
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want.GetDouble(i)));
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::abs(got.GetDouble(i) - want.GetDouble(i)) > tolerance * largest) {
      return absl::StrCat("element ", i, " is ", got.GetDouble(i), ", not ",
                          want.GetDouble(i));
    }
  }
  return "";
}

// Indices that most axes have, for what fails on others.
Tensor Small(Tensor tensor, int64_t n) {
  if (tensor.dtype() != DType::kI64) return tensor;
  const auto limit = static_cast<uint64_t>(std::clamp<int64_t>(n, 1, 4));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetInt(i, static_cast<uint64_t>(tensor.GetInt(i)) % limit);
  }
  return tensor;
}

// Both fail alike or agree.
void ExpectSameOutcome(const absl::StatusOr<std::vector<Tensor>>& got,
                       const absl::StatusOr<std::vector<Tensor>>& want,
                       const Graph& graph, double tolerance) {
  if (!want.ok()) {
    ASSERT_EQ(got.status().code(), want.status().code()) << want.status();
    // The interpreter says which node, too.
    const std::string text(want.status().message());
    EXPECT_THAT(std::string(got.status().message()),
                HasSubstr(text.substr(text.find('`'))));
    return;
  }
  ASSERT_OK(got.status());
  ASSERT_EQ(got->size(), want->size());
  for (size_t i = 0; i < got->size(); ++i) {
    ASSERT_EQ(Difference((*got)[i], (*want)[i], tolerance), "")
        << "output " << graph.outputs()[i].name;
  }
}

struct KernelCase {
  std::string text;
  double tolerance = 0;
};

std::vector<KernelCase> KernelCases() {
  const auto text = ReadFile("engine/runtime/testdata/kernels.graphs");
  CLEAVE_CHECK(text.ok());
  std::vector<KernelCase> cases;
  for (absl::string_view block : absl::StrSplit(*text, "\n\n")) {
    KernelCase one;
    std::vector<absl::string_view> lines = absl::StrSplit(block, '\n');
    while (!lines.empty() && absl::StartsWith(lines[0], "//")) {
      absl::ConsumePrefix(&block, lines[0]);
      absl::ConsumePrefix(&block, "\n");
      lines.erase(lines.begin());
    }
    if (lines.empty()) continue;
    if (lines[0] != "exact") {
      if (!absl::ConsumePrefix(&lines[0], "within ")) continue;
      CLEAVE_CHECK(absl::SimpleAtod(lines[0], &one.tolerance));
    }
    one.text = std::string(block.substr(block.find('\n') + 1));
    cases.push_back(std::move(one));
  }
  CLEAVE_CHECK(cases.size() > 25);
  return cases;
}

// Runs the kernel at many extents and compares it with the interpreter.
void ExpectAgreement(const KernelCase& one, const CompileOptions& options) {
  SCOPED_TRACE(one.text);
  const Graph graph = Parse(one.text);
  ASSERT_OK_AND_ASSIGN(const Graph arithmetic,
                       ApplyNumerics(graph, Numerics()));
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), options));
  std::mt19937_64 random(7);
  for (const int64_t n : {0, 1, 3, 31, 32, 33, 100, 257}) {
    for (const int64_t b : {1, 2, 5, 0, 17}) {
      const DimValues dims = {{"n", n}, {"b", b}, {"m", 5}, {"k", n}};
      SCOPED_TRACE(absl::StrCat("n = ", n, ", b = ", b));
      std::vector<Tensor> inputs;
      for (const NamedValue& input : graph.inputs()) {
        Tensor tensor = Sample(graph.type(input.value), dims, random);
        inputs.push_back(one.tolerance > 0 ? Finite(std::move(tensor))
                                           : std::move(tensor));
      }
      ExpectSameOutcome(kernel.Run(inputs), Interpret(arithmetic, inputs),
                        graph, one.tolerance);
      const bool has_indices =
          std::any_of(inputs.begin(), inputs.end(),
                      [](const Tensor& t) { return t.dtype() == DType::kI64; });
      if (!has_indices) continue;
      for (Tensor& tensor : inputs) tensor = Small(std::move(tensor), n);
      ExpectSameOutcome(kernel.Run(inputs), Interpret(arithmetic, inputs),
                        graph, one.tolerance);
    }
  }
}

TEST(Kernel, ComputesWhatTheInterpreterComputes) {
  for (const KernelCase& one : KernelCases()) ExpectAgreement(one, Options());
}

TEST(Kernel, ComputesTheSameAtEveryLevel) {
  for (const TargetLevel level : HostLevels()) {
    if (level == HostLevel()) continue;
    SCOPED_TRACE(TargetLevelName(level));
    CompileOptions options = Options();
    options.level = level;
    for (const KernelCase& one : KernelCases()) ExpectAgreement(one, options);
  }
}

TEST(Kernel, ComputesTheSameByPlainLoops) {
  CompileOptions options = Options();
  options.plain_schedule = true;
  for (const KernelCase& one : KernelCases()) ExpectAgreement(one, options);
}

// Whatever the number of threads, the order of every sum is the same.
TEST(Kernel, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto pool = MakeThreadPool(4);
  for (const KernelCase& one : KernelCases()) {
    SCOPED_TRACE(one.text);
    const Graph graph = Parse(one.text);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, Numerics(), Options()));
    std::mt19937_64 random(11);
    const DimValues dims = {{"n", 1000}, {"b", 70}, {"m", 5}, {"k", 40}};
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph.inputs()) {
      inputs.push_back(Small(Sample(graph.type(input.value), dims, random), 3));
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
                       Compile(Parse(kScale), Numerics(), Options()));
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
                       Compile(Parse(kScale), Numerics(), Options()));
  std::vector<float> data(101);
  for (int i = 0; i < 101; ++i) data[i] = static_cast<float>(i);
  const auto strides = DenseStrides({1, 100});
  EXPECT_OK(
      kernel.RunInto({{data.data(), DType::kF32, {1, 100}, strides}},
                     {{data.data() + 1, DType::kF32, {1, 100}, strides}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(data[i + 1], 2.0f * i);
}

TEST(Kernel, RefusesWhatDoesNotFit) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(Parse(kScale), Numerics(), Options()));
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
  const Graph graph = Parse(R"(graph (%x: f32[n]) -> (y: f32[], z: f32[n]) {
  %1: f32[] = reduce_sum(%x, axes: [0])
  %2: f32[n] = cumulative_max(%x, axis: 0, reverse: false)
  return y = %1, z = %2
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), Options()));
  Refusing allocator;
  RunOptions options;
  options.call.allocator = &allocator;
  const auto result = kernel.Run({Tensor(DType::kF32, {1000000})}, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Kernel, SaysWhatRan) {
  const Graph graph = Parse(R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n], i64[n] = sort(%x, axis: 0, descending: false)
  %2: f32[n] = result(%1, index: 0)
  %3: f32[n] = exp(%2)
  return y = %3
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), Options()));
  EXPECT_EQ(kernel.compiled_groups(), 1);
  EXPECT_EQ(kernel.reference_groups(), 1);
  RunReport report;
  RunOptions options;
  options.report = &report;
  EXPECT_OK(kernel.Run({Tensor(DType::kF32, {8})}, options).status());
  ASSERT_EQ(report.steps.size(), 2);
  EXPECT_EQ(report.steps[0].kind, "reference");
  EXPECT_THAT(report.steps[0].why, HasSubstr("several results"));
  EXPECT_EQ(report.steps[1].bytes_read, 32);
  EXPECT_EQ(report.steps[1].bytes_written, 32);
  EXPECT_THAT(report.ToString(), HasSubstr("no kernel: `sort`"));
}

TEST(Kernel, ChecksIndicesBeforeItReadsByThem) {
  const Graph graph = Parse(R"(graph (%x: f32[n], %i: i64[b]) -> (y: f32[b]) {
  %1: i64[b, 1] = reshape(%i, shape: [b, 1])
  %2: f32[] = constant(dtype: f32, value: 0.0)
  %3: f32[b] = gather(%x, %1, %2, axes: [0], batch: 0, mode: "error")
  %4: f32[b] = neg(%3)
  return y = %4
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), Options()));
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

// A gather of one element per row is in the kernel of the rows: what it reads
// is not stored.
TEST(Kernel, PicksAnElementOfARowInTheKernelOfTheRows) {
  const Graph graph = Parse(R"(
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
                       Compile(graph, Numerics(), Options()));
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
  const Graph graph = Parse(R"(graph (%x: f32[n]) -> (y: f32[k, 1]) {
  %1: i64[k, 1] = nonzero(%x, size: k)
  %2: f32[k, 1] = convert(%1, dtype: f32)
  %3: f32[k, 1] = exp(%2)
  return y = %3
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), Options()));
  const Tensor x = Tensor::FromDoubles(DType::kF32, {4}, {0, 2, 0, 3});
  ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
  EXPECT_EQ(got[0].shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_NEAR(got[0].GetDouble(0), std::exp(1.0), 1e-6);
}

TEST(Kernel, RunsOnManyThreadsAtManyExtents) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(Parse(kScale), Numerics(), Options()));
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

}  // namespace
}  // namespace cleave
