// The time from a traced function to its two halves, and what they hold and
// compute again: pre-LN transformer blocks of width 128, four heads, MLP 512, 8
// sequences of 128, f32. tools/benchmark/torch_partition.py has the same
// function in PyTorch.
//
//   bazel run -c opt //transforms/aot:partition_benchmark

#include <chrono>
#include <memory>
#include <utility>

#include "benchmark/benchmark.h"
#include "engine/rewrite/expand.h"
#include "ops/check.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/partition_figures.h"
#include "transforms/partition/transformer_testing.h"

namespace cleave::aot {
namespace {

Graph MakeTransformer(const RuleSet& rules, int64_t layers) {
  TransformerSizes sizes;
  sizes.layers = static_cast<int>(layers);
  absl::StatusOr<Graph> graph = Transformer(rules, sizes);
  CLEAVE_CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

// All inputs active, the weights static. The table of rules is new each time.
JointGraph MakeJoint(const Graph& graph, const RuleSet& rules) {
  JointGraphOptions options;
  options.active.assign(graph.inputs().size(), true);
  options.num_params_buffers = static_cast<int>(graph.inputs().size()) - 1;
  absl::StatusOr<JointGraph> joint = MakeJointGraph(graph, options, rules);
  CLEAVE_CHECK(joint.ok()) << joint.status();
  return *std::move(joint);
}

JointGraph Expanded(JointGraph joint, const RuleSet& rules) {
  absl::StatusOr<Graph> graph = Expand(joint.graph, rules);
  CLEAVE_CHECK(graph.ok()) << graph.status();
  joint.graph = *std::move(graph);
  return joint;
}

void ShowFigures(benchmark::State& state, const JointGraph& joint,
                 const Partition& partition, const RuleSet& rules) {
  CostModel costs(rules);
  const auto figures = FiguresOf(joint, partition, costs);
  CLEAVE_CHECK(figures.ok()) << figures.status();
  state.counters["saved_MB"] = figures->saved_bytes / 1e6;
  state.counters["nodes_again"] =
      static_cast<double>(figures->recomputed_nodes);
  state.counters["Mops_again"] = figures->recomputed_operations / 1e6;
  state.counters["nodes"] =
      static_cast<double>(figures->forward_nodes + figures->backward_nodes);
}

Partition Cut(const JointGraph& joint, const RuleSet& rules, double budget) {
  MinCutOptions options;
  options.activation_memory_budget = budget;
  absl::StatusOr<Partition> partition =
      MinCutRematerializationPartition(joint, rules, options);
  CLEAVE_CHECK(partition.ok()) << partition.status();
  return *std::move(partition);
}

// From the rules to the halves; `expanded`: calls are expanded before the cut.
// `first_ms` is the time of the first run, which compiles the bodies of rules.
void BM_TraceToHalves(benchmark::State& state, bool min_cut, bool expanded) {
  const auto rules = LoadTransformer(std::make_shared<Context>());
  JointGraph joint;
  Partition partition;
  const auto run = [&] {
    joint = MakeJoint(MakeTransformer(*rules, state.range(0)), *rules);
    if (expanded) joint = Expanded(std::move(joint), *rules);
    if (min_cut) {
      partition = Cut(joint, *rules, 1);
    } else {
      absl::StatusOr<Partition> plain = DefaultPartition(joint);
      CLEAVE_CHECK(plain.ok()) << plain.status();
      partition = *std::move(plain);
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::milli> first =
      std::chrono::steady_clock::now() - begin;
  for (auto _ : state) run();
  ShowFigures(state, joint, partition, *rules);
  state.counters["first_ms"] = first.count();
}
BENCHMARK_CAPTURE(BM_TraceToHalves, default, false, false)
    ->Arg(1)
    ->Arg(12)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TraceToHalves, default_expanded, false, true)
    ->Arg(1)
    ->Arg(12)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TraceToHalves, min_cut, true, false)
    ->Arg(1)
    ->Arg(12)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TraceToHalves, min_cut_expanded, true, true)
    ->Arg(1)
    ->Arg(12)
    ->Unit(benchmark::kMillisecond);

// The partition of twelve layers alone, at a budget in percent.
void BM_Budget(benchmark::State& state) {
  const auto rules = LoadTransformer(std::make_shared<Context>());
  const JointGraph joint = MakeJoint(MakeTransformer(*rules, 12), *rules);
  Partition partition;
  for (auto _ : state) {
    partition = Cut(joint, *rules, static_cast<double>(state.range(0)) / 100);
  }
  ShowFigures(state, joint, partition, *rules);
}
BENCHMARK(BM_Budget)->Arg(0)->Arg(25)->Arg(50)->Arg(75)->Arg(100)->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace cleave::aot

BENCHMARK_MAIN();
