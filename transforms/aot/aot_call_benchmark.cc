// The cost of a call of an AotFunction beside its kernels: the compiler here
// makes a function that gives tensors that are there already.
//
//   bazel run -c opt //transforms/aot:aot_call_benchmark
//
// Compiled is that function alone, Call the call around it, of N inputs of
// f32[8], with one output that is their sum: their difference is the overhead.
// Inference and Dynamic are the same without gradients, and with symbols for
// extents.

#include <cstdint>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/eager/tensor.h"
#include "ops/check.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/call_cost_testing.h"
#include "transforms/testing/test_rules.h"

namespace cleave::aot {
namespace {

std::shared_ptr<const RuleSet> Rules() {
  static const auto* rules = new std::shared_ptr<const RuleSet>(
      LoadTestRules(std::make_shared<Context>(), "", {"core", "numerics"}));
  return *rules;
}

void Measure(benchmark::State& state, bool dynamic, bool inference) {
  AotOptions options;
  options.dynamic = dynamic;
  const absl::StatusOr<AotFunction> f =
      AotFunction::Make(SumOf, CompileNothing, Rules(), options);
  CLEAVE_CHECK(f.ok()) << f.status();
  const Tree arguments = SumArguments(state.range(0));
  AotCallOptions call;
  call.inference = inference;
  for (auto _ : state) {
    const absl::StatusOr<AotResult> y = f->Call(arguments, call);
    CLEAVE_CHECK(y.ok()) << y.status();
    benchmark::DoNotOptimize(y);
  }
}

void Call(benchmark::State& state) { Measure(state, false, false); }
BENCHMARK(Call)->Arg(2)->Arg(100);
void Inference(benchmark::State& state) { Measure(state, false, true); }
BENCHMARK(Inference)->Arg(2)->Arg(100);
void Dynamic(benchmark::State& state) { Measure(state, true, false); }
BENCHMARK(Dynamic)->Arg(2)->Arg(100);

// Many specializations, called in turn: each is found by its hash.
void Alternating(benchmark::State& state) {
  const absl::StatusOr<AotFunction> f =
      AotFunction::Make(SumOf, CompileNothing, Rules());
  CLEAVE_CHECK(f.ok()) << f.status();
  std::vector<Tree> arguments;
  for (int64_t count = 1; count <= state.range(0); ++count) {
    arguments.push_back(SumArguments(count));
  }
  size_t next = 0;
  for (auto _ : state) {
    const absl::StatusOr<AotResult> y = f->Call(arguments[next]);
    CLEAVE_CHECK(y.ok()) << y.status();
    next = (next + 1) % arguments.size();
  }
}
BENCHMARK(Alternating)->Arg(2)->Arg(50);

void Compiled(benchmark::State& state) {
  std::vector<Tensor> inputs;
  const Tree arguments = SumArguments(state.range(0));
  for (const functional::Tensor& x : arguments.leaves()) {
    inputs.push_back(*x.Concrete());
  }
  const std::vector<Tensor> results = {Tensor(DType::kF32, {8})};
  const CompiledGraph run = [results](absl::Span<const Tensor>) {
    return results;
  };
  for (auto _ : state) {
    const absl::StatusOr<std::vector<Tensor>> y = run(inputs);
    benchmark::DoNotOptimize(y);
  }
}
BENCHMARK(Compiled)->Arg(2)->Arg(100);

}  // namespace
}  // namespace cleave::aot

BENCHMARK_MAIN();
