// A program that embeds Cleave: it loads the shipped rules, adds an op from a
// string, and runs the op's vmap and jvp.
//
//   host RULES...        prints the graphs and what they compute; 0 if that is
//                        what calculus says

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/rule_files.h"
#include "transforms/derived_bodies.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vmap/vmap.h"

namespace {

using cleave::DType;
using cleave::Graph;
using cleave::LoadResult;
using cleave::RuleSet;
using cleave::Tensor;

constexpr char kRule[] = R"(language 1

/// x^3, as a host's own op.
op cubed(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..]^3
  = x * x * x

fn f(x: f64[2]) -> f64[2] = cubed(x)
)";

// The program's own failure: prints why and ends.
template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << value.status() << "\n";
    std::exit(2);
  }
  return *std::move(value);
}

std::shared_ptr<const RuleSet> OrExit(LoadResult loaded) {
  for (const std::string& diagnostic : loaded.diagnostics) {
    std::cerr << diagnostic;
  }
  if (loaded.rules == nullptr) std::exit(2);
  return loaded.rules;
}

// Prints the graph and runs it; true if its last output is `want`.
bool Run(const Graph& graph, const RuleSet& rules,
         const std::vector<Tensor>& inputs, const Tensor& want) {
  std::cout << cleave::PrintGraph(graph);
  const Graph primitive = OrExit(cleave::Expand(graph, rules));
  const std::vector<Tensor> outputs =
      OrExit(cleave::Interpret(primitive, inputs));
  std::cout << outputs.back().ToString() << "\n\n";
  return outputs.back().ToString() == want.ToString();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> paths(argv + 1, argv + argc);
  const auto shipped = OrExit(cleave::LoadRules(
      OrExit(cleave::ReadRuleFiles(paths)), std::make_shared<cleave::Context>(),
      {cleave::MakeDerivedBodies()}));
  const auto rules = OrExit(cleave::ExtendRules(shipped, {"kRule", kRule}));
  const Graph f = OrExit(rules->Function("f"));
  const auto tensor = [](std::vector<int64_t> shape,
                         const std::vector<double>& values) {
    return Tensor::FromDoubles(DType::kF64, std::move(shape), values);
  };
  const Graph batched =
      OrExit(cleave::Vmap(f, {0}, cleave::Dim::Variable("B"), {0}, *rules));
  const bool vmap_agrees = Run(batched, *rules, {tensor({2, 2}, {1, 2, 3, 4})},
                               tensor({2, 2}, {1, 8, 27, 64}));
  const Graph derivative = OrExit(cleave::Jvp(f, {true}, *rules)).graph;
  const bool jvp_agrees =
      Run(derivative, *rules, {tensor({2}, {1, 2}), tensor({2}, {1, 10})},
          tensor({2}, {3, 120}));
  return vmap_agrees && jvp_agrees ? 0 : 1;
}
