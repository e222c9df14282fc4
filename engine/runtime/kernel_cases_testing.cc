#include "engine/runtime/kernel_cases_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/codegen/numerics.h"
#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

KernelCache& Cache() {
  static auto* const cache = new KernelCache({::testing::TempDir() + "/cache"});
  return *cache;
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

}  // namespace

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

CompileOptions CaseOptions() {
  CompileOptions options;
  options.cache = &Cache();
  return options;
}

Graph ParseCase(absl::string_view text) {
  auto graph = ParseGraph(text, Numerics().context());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

// Numbers of every kind: small, large, special, subnormal, repeated.
Tensor SampleCase(const TensorType& type, const DimValues& dims,
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

// Indices that most axes have, for what fails on others.
Tensor SmallIndices(Tensor tensor, int64_t n) {
  if (tensor.dtype() != DType::kI64) return tensor;
  const auto limit = static_cast<uint64_t>(std::clamp<int64_t>(n, 1, 4));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetInt(i, static_cast<uint64_t>(tensor.GetInt(i)) % limit);
  }
  return tensor;
}

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
      CLEAVE_CHECK(absl::ConsumePrefix(&lines[0], "within ")) << lines[0];
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
  const Graph graph = ParseCase(one.text);
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
        Tensor tensor = SampleCase(graph.type(input.value), dims, random);
        inputs.push_back(one.tolerance > 0 ? Finite(std::move(tensor))
                                           : std::move(tensor));
      }
      ExpectSameOutcome(kernel.Run(inputs), Interpret(arithmetic, inputs),
                        graph, one.tolerance);
      const bool has_indices =
          std::any_of(inputs.begin(), inputs.end(),
                      [](const Tensor& t) { return t.dtype() == DType::kI64; });
      if (!has_indices) continue;
      for (Tensor& tensor : inputs) tensor = SmallIndices(std::move(tensor), n);
      ExpectSameOutcome(kernel.Run(inputs), Interpret(arithmetic, inputs),
                        graph, one.tolerance);
    }
  }
}

}  // namespace cleave
