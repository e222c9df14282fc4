// The cost of an eager op beside its kernel: x + x and softmax of 4 x 5
// elements as a session runs them, and their kernels alone. The difference is
// the session's.

#include <cstdint>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"

namespace cleave::functional {
namespace {

Tensor Add(const Tensor& x) { return x + x; }
Tensor Softmax(const Tensor& x) {
  return CallOne("softmax", {x}, {{"axis", 1}});
}

template <Tensor (*op)(const Tensor&)>
void BM_Eager(benchmark::State& state) {
  SessionOptions options;
  options.cache = &TestKernelCache();
  Session session(SharedRules(), options);
  const SessionScope scope(session);
  const Tensor x = cleave::Tensor(DType::kF32, {4, 5});
  CLEAVE_CHECK(op(x).valid()) << op(x);
  for (auto _ : state) benchmark::DoNotOptimize(op(x).valid());
  CLEAVE_CHECK(session.statistics().graphs_compiled == 1);
}
BENCHMARK_TEMPLATE(BM_Eager, Add);
BENCHMARK_TEMPLATE(BM_Eager, Softmax);

// A result that is written, as an optimiser does.
void BM_EagerInPlace(benchmark::State& state) {
  SessionOptions options;
  options.cache = &TestKernelCache();
  Session session(SharedRules(), options);
  const SessionScope scope(session);
  Tensor x = cleave::Tensor(DType::kF32, {4, 5});
  const Tensor y = cleave::Tensor(DType::kF32, {4, 5});
  for (auto _ : state) x += y;
  CLEAVE_CHECK_OK(x.write_status());
}
BENCHMARK(BM_EagerInPlace);

template <Tensor (*op)(const Tensor&)>
void BM_Kernel(benchmark::State& state) {
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF32, {4, 5}});
  const auto y = trace.Read(op(x));
  CLEAVE_CHECK(y.ok()) << y.status();
  const auto graph = std::move(trace).Finish({{"y", *y}});
  CLEAVE_CHECK(graph.ok()) << graph.status();
  const auto expanded = Expand(*graph, *SharedRules());
  CLEAVE_CHECK(expanded.ok()) << expanded.status();
  CompileOptions options;
  options.cache = &TestKernelCache();
  options.generalize_extents = true;
  const auto kernel =
      Compile(Simplify(*expanded, *SharedRules()), *SharedRules(), options);
  CLEAVE_CHECK(kernel.ok()) << kernel.status();
  std::vector<float> from(20, 1), to(20);
  const std::vector<int64_t> shape = {4, 5};
  const std::vector<TensorView> inputs = {
      {from.data(), DType::kF32, shape, DenseStrides(shape)}};
  const std::vector<MutableTensorView> outputs = {
      {to.data(), DType::kF32, shape, DenseStrides(shape)}};
  for (auto _ : state) {
    CLEAVE_CHECK(kernel->RunInto(inputs, outputs).ok());
  }
}
BENCHMARK_TEMPLATE(BM_Kernel, Add);
BENCHMARK_TEMPLATE(BM_Kernel, Softmax);

}  // namespace
}  // namespace cleave::functional

BENCHMARK_MAIN();
