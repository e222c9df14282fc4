// Distinct nodes per second of Expand: a chain of calls of 30 different ops,
// provenance on. `nodes` counts the nodes of the result.

#include <benchmark/benchmark.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "ops/check.h"

namespace cleave {
namespace {

NamedSource Read(const std::string& path) {
  std::ifstream file(path);
  CLEAVE_CHECK(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return {path, text.str(), false};
}

const std::shared_ptr<const RuleSet>& Rules() {
  static const auto& rules = *[] {
    LoadResult loaded = LoadRules({Read("rules/core/activation.rules"),
                                   Read("rules/core/elementwise.rules"),
                                   Read("rules/core/reduction.rules")},
                                  std::make_shared<Context>());
    CLEAVE_CHECK(loaded.rules != nullptr) << loaded.diagnostics[0];
    return new std::shared_ptr<const RuleSet>(loaded.rules);
  }();
  return rules;
}

// Calls of ops of one tensor, one after the other, until their expansion has
// about `nodes` nodes.
Graph Chain(int64_t nodes) {
  static const auto& ops = *new std::vector<std::string>{
      "relu",       "relu6",       "leaky_relu",   "elu",      "celu",
      "selu",       "entr",        "silu",         "softplus", "log_sigmoid",
      "mish",       "hardsigmoid", "hardswish",    "hardtanh", "logit",
      "softshrink", "softsign",    "sinc",         "frac",     "nan_to_num",
      "lerp",       "remainder",   "floor_divide", "hypot",    "logaddexp",
      "fmax",       "prelu",       "sqrt_at_zero", "addcmul",  "clamp"};
  const std::shared_ptr<const RuleSet>& rules = Rules();
  GraphBuilder builder(rules->context());
  const TensorType type{DType::kF32, {Dim::Variable("n")}};
  const Value other = builder.Input("other", type);
  Value x = builder.Input("x", type);
  std::vector<int64_t> sizes(ops.size());
  int64_t size = 0;
  for (size_t i = 0; size < nodes; ++i) {
    const size_t op = i % ops.size();
    std::vector<Argument> arguments{{"", x}};
    const Item& item = *rules->Find(ops[op]);
    for (size_t k = 1; k < item.inputs.size(); ++k) {
      if (!item.inputs[k].optional) arguments.push_back({"", other});
    }
    if (ops[op] == "clamp") arguments.push_back({"lo", other});
    const auto y = rules->Call(builder, ops[op], arguments, {});
    CLEAVE_CHECK(y.ok()) << ops[op] << ": " << y.status();
    x = *(*y)[0];
    if (sizes[op] == 0) {
      sizes[op] =
          (*rules->Body(RuleSet::SignatureOf(builder.graph(), x)))->size();
    }
    size += sizes[op];
  }
  return *std::move(builder).Build({{"y", x}});
}

void BM_Expand(benchmark::State& state) {
  const Graph graph = Chain(state.range(0));
  int64_t nodes = 0;
  for (auto _ : state) {
    const absl::StatusOr<Graph> expanded = Expand(graph, *Rules());
    CLEAVE_CHECK(expanded.ok()) << expanded.status();
    nodes += expanded->size();
  }
  state.counters["nodes"] =
      benchmark::Counter(static_cast<double>(nodes) / state.iterations());
  state.SetItemsProcessed(nodes);
}
BENCHMARK(BM_Expand)->Arg(1000)->Arg(100000)->Arg(1000000)->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace cleave

BENCHMARK_MAIN();
