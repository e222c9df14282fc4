// The shipped numerics as compiled kernels on one core, on arrays that the
// first cache holds, beside the C library's functions of f32. Items are
// elements: 1e9 / items_per_second is ns per element, the call of the kernel
// with it.
//
//   bazel run -c opt //testing/numerics:numerics_benchmark

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/tensor.h"
#include "testing/numerics/numeric_call.h"

namespace cleave {
namespace {

constexpr int64_t kSize = 4096;

const RuleSet& Rules() {
  static const auto* rules = [] {
    const auto sources = ReadRuleFiles({"rules"});
    CLEAVE_CHECK(sources.ok()) << sources.status();
    LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
    CLEAVE_CHECK(loaded.rules != nullptr) << loaded.diagnostics[0];
    return new std::shared_ptr<const RuleSet>(std::move(loaded.rules));
  }();
  return **rules;
}

// Where the functions do their work: not denormal, not saturated.
Tensor Arguments(Primitive primitive, int operand) {
  double low = -3, high = 3;
  if (primitive == Primitive::kLog || primitive == Primitive::kRsqrt ||
      primitive == Primitive::kPow) {
    low = 0.01;
    high = 10;
  } else if (primitive == Primitive::kLog1p) {
    low = -0.9;
  }
  if (operand == 1) low = -high;
  std::vector<double> values;
  for (int64_t i = 0; i < kSize; ++i) {
    values.push_back(low + (high - low) * static_cast<double>(i) / kSize);
  }
  return Tensor::FromDoubles(DType::kF32, {kSize}, values);
}

void BM_Kernel(benchmark::State& state, const std::string& name) {
  const Primitive primitive = *FindPrimitive(name);
  const Graph graph =
      NumericCalls(primitive, DType::kF32, Rules().context())[0].graph;
  std::vector<Tensor> x;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    x.push_back(Arguments(primitive, static_cast<int>(i)));
  }
  const absl::StatusOr<Kernel> kernel = Compile(graph, Rules());
  if (!kernel.ok()) {
    state.SkipWithError(kernel.status().ToString().c_str());
    return;
  }
  std::vector<TensorView> inputs;
  for (const Tensor& operand : x) inputs.push_back(ViewOf(operand));
  Tensor result(DType::kF32, {kSize});
  const MutableTensorView output{
      result.mutable_data(), DType::kF32, {kSize}, {1}};
  for (auto _ : state) {
    const absl::Status status = kernel->RunInto(inputs, {output});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * kSize);
}

template <typename Function>
void BM_Library(benchmark::State& state, Primitive primitive,
                Function function) {
  const Tensor x = Arguments(primitive, 0);
  const Tensor y = Arguments(primitive, 1);
  std::vector<float> a(kSize), b(kSize), result(kSize);
  std::memcpy(a.data(), x.data(), kSize * sizeof(float));
  std::memcpy(b.data(), y.data(), kSize * sizeof(float));
  for (auto _ : state) {
    for (int64_t i = 0; i < kSize; ++i) result[i] = function(a[i], b[i]);
    benchmark::DoNotOptimize(result.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kSize);
}

void RegisterAll() {
  for (const std::string& name : Rules().Names(ItemKind::kNumeric)) {
    benchmark::RegisterBenchmark(
        ("kernel/" + name).c_str(),
        [name](benchmark::State& state) { BM_Kernel(state, name); });
  }
  const auto library = [](const char* name, auto function) {
    const Primitive primitive = *FindPrimitive(name);
    benchmark::RegisterBenchmark(
        (std::string("library/") + name).c_str(),
        [primitive, function](benchmark::State& state) {
          BM_Library(state, primitive, function);
        });
  };
  library("exp", [](float x, float) { return std::exp(x); });
  library("expm1", [](float x, float) { return std::expm1(x); });
  library("log", [](float x, float) { return std::log(x); });
  library("log1p", [](float x, float) { return std::log1p(x); });
  library("tanh", [](float x, float) { return std::tanh(x); });
  library("sigmoid", [](float x, float) { return 1 / (1 + std::exp(-x)); });
  library("erf", [](float x, float) { return std::erf(x); });
  library("erfc", [](float x, float) { return std::erfc(x); });
  library("sin", [](float x, float) { return std::sin(x); });
  library("cos", [](float x, float) { return std::cos(x); });
  library("pow", [](float x, float y) { return std::pow(x, y); });
  library("rsqrt", [](float x, float) { return 1 / std::sqrt(x); });
}

}  // namespace
}  // namespace cleave

int main(int argc, char** argv) {
  cleave::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
