// Nodes per second of the builder, on graphs of 30 different ops: additions of
// new nodes, of nodes that are there already, and copies of whole graphs. The
// counter items_per_second is nodes/s.
//
//   bazel run //engine/ir:graph_benchmark

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/ir/graph.h"
#include "ops/check.h"

namespace cleave {
namespace {

constexpr int kOps = 30;
const TensorType kType{DType::kF32, {Dim::Variable("n"), Dim(128)}};

// A call that AddTyped repeats: all distinct, as operands reach back by
// different distances, some far, as residuals do.
struct Call {
  OpId op;
  uint32_t operand_count;
  Value operands[2];
};

std::vector<Call> MakeCalls(int64_t count) {
  std::vector<Call> calls;
  calls.reserve(count);
  for (int64_t i = 1; i <= count; ++i) {
    Call call;
    const bool binary = i % 2 == 0;
    call.op = ToOpId(binary ? Primitive::kAdd : Primitive::kAbs) +
              static_cast<OpId>(i / 2 % (kOps / 2));
    call.operand_count = binary ? 2 : 1;
    const int64_t last = i - 1;
    const int64_t far = i % 7 == 0 ? i / 2 : (i > 13 ? i - 13 : 0);
    call.operands[0] = Value{static_cast<uint32_t>(last)};
    call.operands[1] = Value{static_cast<uint32_t>(far)};
    calls.push_back(call);
  }
  return calls;
}

void Run(const std::vector<Call>& calls, TypeId type, GraphBuilder* builder) {
  for (const Call& call : calls) {
    builder->AddTyped(call.op, kNoAttributes, type,
                      {call.operands, call.operand_count}, 1);
  }
}

GraphBuilder Built(const std::shared_ptr<Context>& context,
                   const std::vector<Call>& calls) {
  GraphBuilder builder(context);
  builder.Input("x", kType);
  Run(calls, context->Intern(kType), &builder);
  return builder;
}

void AddNew(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  context->Intern(Provenance{"rule", "file", 1});
  const std::vector<Call> calls = MakeCalls(state.range(0));
  for (auto _ : state) {
    GraphBuilder builder = Built(context, calls);
    CLEAVE_CHECK(builder.graph().size() == state.range(0) + 1)
        << "the calls are not distinct";
    benchmark::DoNotOptimize(builder);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void AddExisting(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const std::vector<Call> calls = MakeCalls(state.range(0));
  GraphBuilder builder = Built(context, calls);
  const TypeId type = context->Intern(kType);
  for (auto _ : state) {
    Run(calls, type, &builder);
    CLEAVE_CHECK(builder.graph().size() == state.range(0) + 1)
        << "a node was not found";
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void Inline(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  const std::vector<Call> calls = MakeCalls(state.range(0));
  GraphBuilder source = Built(context, calls);
  const Value last{static_cast<uint32_t>(source.graph().size() - 1)};
  const Graph graph = *std::move(source).Build({{"y", last}});
  for (auto _ : state) {
    GraphBuilder builder(context);
    const Value x = builder.Input("x", kType);
    benchmark::DoNotOptimize(builder.Inline(graph, {x}));
  }
  state.SetItemsProcessed(state.iterations() * (graph.size() - 1));
}

void AddInferred(benchmark::State& state) {
  auto context = std::make_shared<Context>();
  for (auto _ : state) {
    GraphBuilder builder(context);
    const Value x = builder.Input("x", kType);
    for (int64_t i = 0; i < state.range(0); ++i) {
      const Value last{static_cast<uint32_t>(builder.graph().size() - 1)};
      CLEAVE_CHECK(builder.Add(Primitive::kAdd, {}, {last, x}).ok());
    }
    benchmark::DoNotOptimize(builder);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

#define SIZES Arg(1'000)->Arg(100'000)->Arg(1'000'000)
BENCHMARK(AddNew)->SIZES;
BENCHMARK(AddExisting)->SIZES;
BENCHMARK(Inline)->SIZES;
BENCHMARK(AddInferred)->SIZES;

}  // namespace
}  // namespace cleave

BENCHMARK_MAIN();
