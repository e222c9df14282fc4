// Vmap, jvp and reverse mode in distinct nodes of their results per second, one
// core.
//
//   bazel run -c opt //transforms:transforms_benchmark

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "engine/ir/graph.h"
#include "ops/check.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/emit.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/transpose.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

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
  return *std::move(b).Build(std::move(outputs));
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

void BM_Vjp(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(context);
  const Graph graph = RandomGraph(context, state.range(0));
  const std::vector<bool> active(graph.inputs().size(), true);
  int64_t nodes = 0;
  for (auto _ : state) {
    absl::StatusOr<VjpResult> vjp = Vjp(graph, active, *rules);
    CLEAVE_CHECK(vjp.ok()) << vjp.status();
    nodes += vjp->graph.size();
  }
  state.counters["nodes/s"] = benchmark::Counter(static_cast<double>(nodes),
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Vjp)->Arg(1000)->Arg(100000)->Arg(1000000);

// The nodes are those of the two halves and of the transpose.
void BM_LinearizeAndTranspose(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(context);
  const Graph graph = RandomGraph(context, state.range(0));
  const std::vector<bool> active(graph.inputs().size(), true);
  int64_t nodes = 0;
  for (auto _ : state) {
    absl::StatusOr<Linearization> halves = Linearize(graph, active, *rules);
    CLEAVE_CHECK(halves.ok()) << halves.status();
    std::vector<bool> linear(halves->linear.inputs().size(), false);
    std::fill_n(linear.begin(), active.size(), true);
    absl::StatusOr<Graph> transposed =
        Transpose(halves->linear, linear, *rules);
    CLEAVE_CHECK(transposed.ok()) << transposed.status();
    nodes += halves->primal.size() + halves->linear.size() + transposed->size();
  }
  state.counters["nodes/s"] = benchmark::Counter(static_cast<double>(nodes),
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(BM_LinearizeAndTranspose)->Arg(1000)->Arg(100000);

constexpr char kNothing[] = "language 1\n";

// The shipped ops.
std::shared_ptr<const RuleSet> LoadShippedOps(
    const std::shared_ptr<Context>& context) {
  std::vector<NamedSource> sources;
  for (const char* folder : {"rules/core", "rules/derivative"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string path = file.path().string();
      sources.push_back({path, ReadText(path)});
    }
  }
  LoadResult loaded = LoadRules(sources, context, WithTransforms());
  CLEAVE_CHECK(loaded.rules != nullptr) << loaded.diagnostics[0];
  return loaded.rules;
}

// `count` calls, each of the one before: softmax, layer_norm (w and bias
// shared), or attention (of one query, key and value per example).
Graph ChainOfCalls(const std::string& op, int count, const RuleSet& rules) {
  GraphBuilder b(rules.context());
  const Dim n = Dim::Variable("n");
  const TensorType type{DType::kF32, {Dim(8), n, Dim(64)}};
  const Value first = b.Input("x", type);
  std::vector<Argument> rest;
  Attributes attributes;
  if (op == "softmax") {
    attributes.Set("axis", 1);
  } else if (op == "layer_norm") {
    const TensorType last{DType::kF32, {Dim(64)}};
    rest = {{"w", b.Input("w", last)}, {"bias", b.Input("bias", last)}};
    attributes.Set("N", StaticValue::Dims({Dim(64)}));
  } else {
    rest = {{"k", b.Input("k", type)}, {"v", b.Input("v", type)}};
  }
  Value x = first;
  for (int i = 0; i < count; ++i) {
    std::vector<Argument> arguments = {{"", x}};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    const auto results = rules.Call(b, op, arguments, attributes);
    CLEAVE_CHECK(results.ok()) << results.status();
    x = *(*results)[0];
  }
  return *std::move(b).Build({{"y", x}});
}

// Vmap of 100 calls that stay calls, and of the same calls expanded. The first
// one by some rules pays for finding out, and for compiling bodies; `again` has
// the same rules in each.
void BM_VmapCalls(benchmark::State& state, const std::string& op, bool keep,
                  bool again) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadShippedOps(context);
  const Graph graph = ChainOfCalls(op, 100, *rules);
  std::vector<int> in_axes(graph.inputs().size(), 0);
  if (op == "layer_norm") std::fill(in_axes.begin() + 1, in_axes.end(), -1);
  const TransformOptions options = {keep};
  int64_t nodes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    // The same rules, of which nothing is derived yet.
    LoadResult own;
    own.rules = rules;
    if (!again) own = ExtendRules(rules, {"none", kNothing});
    CLEAVE_CHECK(own.rules != nullptr) << own.diagnostics[0];
    state.ResumeTiming();
    absl::StatusOr<Graph> batched =
        Vmap(graph, in_axes, Dim::Variable("B"), {0}, *own.rules, options);
    CLEAVE_CHECK(batched.ok()) << batched.status();
    nodes = batched->size();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}

// 20 chained softmax, gelu and layer_norm, differentiated `order` times from
// nothing: the time and the size of what comes out stay those of a constant per
// call.
void BM_JvpOfCalls(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadShippedOps(context);
  GraphBuilder b(context);
  Value x = b.Input("x", {DType::kF32, {Dim::Variable("n"), Dim(64)}});
  for (int i = 0; i < 20; ++i) {
    const auto call = [&](const char* op, const Attributes& attributes) {
      const auto results = rules->Call(b, op, {{"x", x}}, attributes);
      CLEAVE_CHECK(results.ok()) << results.status();
      x = *(*results)[0];
    };
    if (i % 3 == 0) call("softmax", {});
    if (i % 3 == 1) call("gelu", {});
    if (i % 3 == 2) {
      call("layer_norm", {{"N", StaticValue::Dims(std::vector<Dim>{64})}});
    }
  }
  const Graph graph = *std::move(b).Build({{"y", x}});
  int64_t nodes = 0;
  for (auto _ : state) {
    Graph derivative = graph;
    for (int64_t order = 0; order < state.range(0); ++order) {
      const std::vector<bool> active(derivative.inputs().size(), true);
      absl::StatusOr<JvpResult> jvp = Jvp(derivative, active, *rules);
      CLEAVE_CHECK(jvp.ok()) << jvp.status();
      derivative = std::move(jvp->graph);
    }
    nodes = derivative.size();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(BM_JvpOfCalls)->DenseRange(1, 3)->Unit(benchmark::kMillisecond);

void RegisterVmapCalls() {
  for (const char* op :
       {"softmax", "layer_norm", "scaled_dot_product_attention"}) {
    for (const bool keep : {true, false}) {
      for (const bool again : {false, true}) {
        benchmark::RegisterBenchmark(
            absl::StrCat("BM_VmapCalls/", op, keep ? "/kept" : "/expanded",
                         again ? "/again" : "/first")
                .c_str(),
            BM_VmapCalls, op, keep, again)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace cleave

int main(int argc, char** argv) {
  cleave::RegisterVmapCalls();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
