// Vmap and jvp in distinct nodes of their results per second, one core.
//
//   bazel run -c opt //transforms:transforms_benchmark

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "engine/ir/graph.h"
#include "ops/check.h"
#include "transforms/emit.h"
#include "transforms/jvp.h"
#include "transforms/test_rules.h"
#include "transforms/vmap.h"

namespace cleave {
namespace {

// A graph of about `size` nodes of 30 different ops: each node takes random
// ones of the last 64 values of a matrix's shape.
Graph RandomGraph(const std::shared_ptr<Context>& context, int64_t size) {
  const TensorType type{DType::kF32, {Dim(8), Dim(8)}};
  GraphBuilder b(context);
  b.SetProvenance(context->Intern(Provenance{"benchmark", "random.rules", 1}));
  std::vector<Value> values;
  for (int i = 0; i < 4; ++i) {
    values.push_back(b.Input(absl::StrCat("x", i), type));
  }
  const std::vector<Primitive> unary = {
      Primitive::kNeg,  Primitive::kExp,    Primitive::kLog,
      Primitive::kSqrt, Primitive::kSin,    Primitive::kCos,
      Primitive::kTan,  Primitive::kTanh,   Primitive::kSigmoid,
      Primitive::kErf,  Primitive::kAbs,    Primitive::kExpm1,
      Primitive::kCosh, Primitive::kAsinh,  Primitive::kLog1p,
      Primitive::kAtan, Primitive::kLgamma, Primitive::kRsqrt};
  const std::vector<Primitive> binary = {
      Primitive::kAdd, Primitive::kSub, Primitive::kMul, Primitive::kDiv,
      Primitive::kMax, Primitive::kMin, Primitive::kPow, Primitive::kAtan2};
  std::mt19937_64 random(20261121);
  while (b.graph().size() < size) {
    const size_t window = std::min<size_t>(values.size(), 64);
    const auto draw = [&] {
      return values[values.size() - 1 - random() % window];
    };
    const uint64_t kind = random() % 30;
    Value v;
    if (kind < 18) {
      v = b.Apply(unary[kind], {draw()});
    } else if (kind < 26) {
      v = b.Apply(binary[kind - 18], {draw(), draw()});
    } else if (kind == 26) {
      v = b.Transpose(draw(), {1, 0});
    } else if (kind == 27) {
      v = emit::Unreduce(b, emit::ReduceSum(b, draw(), {1}), type.shape, {1});
    } else if (kind == 28) {
      v = b.Apply(Primitive::kDotGeneral, {draw(), draw()},
                  {{"batch_a", StaticValue::Ints(std::vector<int>{})},
                   {"batch_b", StaticValue::Ints(std::vector<int>{})},
                   {"contract_a", StaticValue::Ints(std::vector<int>{1})},
                   {"contract_b", StaticValue::Ints(std::vector<int>{0})}});
    } else {
      v = b.Apply(Primitive::kReverse, {draw()},
                  {{"axes", StaticValue::Ints(std::vector<int>{0})}});
    }
    values.push_back(v);
  }
  std::vector<NamedValue> outputs;
  for (size_t i = values.size() > 64 ? values.size() - 64 : 0;
       i < values.size(); ++i) {
    outputs.push_back({absl::StrCat("y", i), values[i]});
  }
  return std::move(b).Build(std::move(outputs));
}

void BM_Vmap(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(context);
  const Graph graph = RandomGraph(context, state.range(0));
  const std::vector<int> in_axes(graph.inputs().size(), 0);
  const std::vector<int> out_axes(graph.outputs().size(), 0);
  int64_t nodes = 0;
  for (auto _ : state) {
    absl::StatusOr<Graph> batched =
        Vmap(graph, in_axes, Dim::Variable("B"), out_axes, *rules);
    CLEAVE_CHECK(batched.ok()) << batched.status();
    nodes += batched->size();
  }
  state.counters["nodes/s"] = benchmark::Counter(static_cast<double>(nodes),
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Vmap)->Arg(1000)->Arg(100000)->Arg(1000000);

void BM_Jvp(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(context);
  const Graph graph = RandomGraph(context, state.range(0));
  const std::vector<bool> active(graph.inputs().size(), true);
  int64_t nodes = 0;
  for (auto _ : state) {
    absl::StatusOr<JvpResult> jvp = Jvp(graph, active, *rules);
    CLEAVE_CHECK(jvp.ok()) << jvp.status();
    nodes += jvp->graph.size();
  }
  state.counters["nodes/s"] = benchmark::Counter(static_cast<double>(nodes),
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Jvp)->Arg(1000)->Arg(100000)->Arg(1000000);

}  // namespace
}  // namespace cleave

BENCHMARK_MAIN();
