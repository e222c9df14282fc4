// The cost of a run beside the work of its kernels: a function of 4 x 5
// elements through RunInto and Run, and the same with a check of indices.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"

namespace cleave {
namespace {

Kernel Compiled(absl::string_view text) {
  static auto* const cache = new KernelCache(KernelCacheOptions());
  const auto sources = ReadRuleFiles({"rules/numerics"});
  CLEAVE_CHECK(sources.ok());
  const LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
  CLEAVE_CHECK(loaded.diagnostics.empty());
  const auto graph = ParseGraph(text, loaded.rules->context());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  CompileOptions options;
  options.cache = cache;
  auto kernel = Compile(*graph, *loaded.rules, options);
  CLEAVE_CHECK(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

constexpr char kAdd[] = R"(graph (%x: f32[b, n]) -> (y: f32[b, n]) {
  %1: f32[b, n] = add(%x, %x)
  return y = %1
})";

void BM_RunInto(benchmark::State& state) {
  const Kernel kernel = Compiled(kAdd);
  std::vector<float> x(20, 1);
  std::vector<float> y(20);
  const std::vector<int64_t> shape = {4, 5};
  const std::vector<TensorView> inputs = {
      {x.data(), DType::kF32, shape, DenseStrides(shape)}};
  const std::vector<MutableTensorView> outputs = {
      {y.data(), DType::kF32, shape, DenseStrides(shape)}};
  for (auto _ : state) {
    CLEAVE_CHECK(kernel.RunInto(inputs, outputs).ok());
  }
}
BENCHMARK(BM_RunInto);

void BM_Run(benchmark::State& state) {
  const Kernel kernel = Compiled(kAdd);
  const std::vector<Tensor> inputs = {Tensor(DType::kF32, {4, 5})};
  for (auto _ : state) CLEAVE_CHECK(kernel.Run(inputs).ok());
}
BENCHMARK(BM_Run);

// By the number of indices, of which each reads one element.
void BM_RunGather(benchmark::State& state) {
  const Kernel kernel = Compiled(R"(
graph (%x: f32[n], %i: i64[b]) -> (y: f32[b]) {
  %1: i64[b, 1] = reshape(%i, shape: [b, 1])
  %2: f32[] = constant(dtype: f32, value: 0.0)
  %3: f32[b] = gather(%x, %1, %2, axes: [0], batch: 0, mode: "error")
  return y = %3
})");
  const std::vector<Tensor> inputs = {Tensor(DType::kF32, {1000}),
                                      Tensor(DType::kI64, {state.range(0)})};
  for (auto _ : state) CLEAVE_CHECK(kernel.Run(inputs).ok());
}
BENCHMARK(BM_RunGather)->Arg(16)->Arg(16384);

}  // namespace
}  // namespace cleave

BENCHMARK_MAIN();
