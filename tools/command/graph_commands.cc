// expand, explain, vmap, jvp and vjp: a declared function as a graph,
// transformed.

#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/prepare_fusion.h"
#include "engine/ir/graph_text.h"
#include "engine/pipeline/pipeline.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/status_macros.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

struct GraphOptions {
  std::vector<std::string> paths;
  std::string function;
  std::vector<std::string> preserve;
  std::string in_axes;
  std::string out_axes;
  TransformFlags transforms;
  bool expand = false;
  bool approx = false;
  bool fusion = false;
  bool stages = false;
};

using Transform = absl::StatusOr<Graph> (*)(const Graph&, const RuleSet&,
                                            const GraphOptions&);

void PrintStage(const PipelineStage& stage) {
  std::cout << "// " << stage.name;
  if (stage.kernel.has_value()) std::cout << ", kernel " << *stage.kernel;
  std::cout << "\n" << stage.text << "\n";
}

// Loads the rules, transforms the function and prints the result.
int PrintTransformed(const GraphOptions& options, Transform transform,
                     const PrintOptions& print) {
  const auto loaded = LoadRulePaths(options.paths);
  if (!loaded) return kExitUsage;
  if (!OpNames(*loaded->rules, options.preserve)) return kExitUsage;
  absl::StatusOr<Graph> graph =
      DeclaredFunction(*loaded->rules, options.function);
  if (!graph.ok()) return Complain(graph.status());
  graph = transform(*graph, *loaded->rules, options);
  InPrimitivesOptions in_primitives;
  in_primitives.expand.preserve =
      std::set<std::string>(options.preserve.begin(), options.preserve.end());
  in_primitives.simplify.approx = options.approx;
  if (graph.ok() && options.stages) {
    PipelineOptions pipeline;
    pipeline.primitives = in_primitives;
    const absl::StatusOr<LoweredGraph> lowered =
        RunPipeline(*graph, *loaded->rules, pipeline, PrintStage);
    return lowered.ok() ? kExitOk : Complain(lowered.status());
  }
  if (graph.ok() && options.expand) {
    graph = InPrimitives(*graph, *loaded->rules, in_primitives);
  }
  if (!graph.ok()) return Complain(graph.status());
  if (!options.fusion) {
    std::cout << PrintGraph(*graph, print);
    return kExitOk;
  }
  const Graph prepared = PrepareFusion(*graph, {}, {});
  const absl::StatusOr<FusionPlan> plan = PlanFusion(prepared);
  if (!plan.ok()) return Complain(plan.status());
  std::cout << PrintFusionPlan(prepared, *plan);
  return kExitOk;
}

absl::StatusOr<Graph> Identity(const Graph& graph, const RuleSet&,
                               const GraphOptions&) {
  return graph;
}

absl::StatusOr<Graph> Batched(const Graph& graph, const RuleSet& rules,
                              const GraphOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<int> in_axes,
      ParseAxes(options.in_axes, static_cast<int>(graph.inputs().size())));
  std::vector<int> out_axes(graph.outputs().size(), 0);
  if (!options.out_axes.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(
        out_axes,
        ParseAxes(options.out_axes, static_cast<int>(graph.outputs().size())));
  }
  return Vmap(graph, in_axes, Dim::Variable(FreshBatch(graph)), out_axes,
              rules);
}

absl::StatusOr<Graph> Transformed(const Graph& graph, const RuleSet& rules,
                                  const GraphOptions& options) {
  return ApplyTransforms(graph, rules, options.transforms);
}

// A verb with the flags that all of them share.
Verb AddGraphVerb(CommandLine& line, const char* name, const char* what,
                  std::shared_ptr<GraphOptions> options) {
  Verb verb = line.AddVerb(name, what);
  verb.Add("FILE", options->paths, "Rule files beside the shipped ones");
  verb.Add("--fn", options->function, "The declared function").Required();
  verb.Add("--preserve", options->preserve, "Ops that are not decomposed")
      .CommaSeparated();
  return verb;
}

}  // namespace

void AddExpand(CommandLine& line) {
  auto options = std::make_shared<GraphOptions>();
  options->expand = true;
  Verb verb = AddGraphVerb(
      line, "expand", "Print a function in primitives, simplified.", options);
  AddApproxFlag(verb, options->approx);
  verb.Runs([options] { return PrintTransformed(*options, Identity, {}); });
}

void AddExplain(CommandLine& line) {
  auto options = std::make_shared<GraphOptions>();
  options->expand = true;
  Verb verb = AddGraphVerb(
      line, "explain",
      "Print a function in primitives, simplified, each with the rule and line "
      "that it comes from.",
      options);
  const Option fusion =
      verb.AddFlag("--fusion", options->fusion,
                   "Print instead which primitives share a kernel, and why "
                   "others do not");
  verb.AddFlag("--stages", options->stages,
               "Print instead what each stage makes of it, from calls to the "
               "graphs that kernels are generated from")
      .Excludes(fusion);
  AddTransformFlags(verb, options->transforms);
  AddApproxFlag(verb, options->approx);
  verb.Runs([options] {
    PrintOptions print;
    print.provenance = true;
    return PrintTransformed(*options, Transformed, print);
  });
}

void AddVmap(CommandLine& line) {
  auto options = std::make_shared<GraphOptions>();
  Verb verb = AddGraphVerb(
      line, "vmap", "Print a function over a batch of examples.", options);
  verb.Add("--in-axes", options->in_axes,
           "The batch's axis in each input: `0,none,1`; `split` keys")
      .Required();
  verb.Add("--out-axes", options->out_axes,
           "The batch's axis in each output (0)");
  verb.AddFlag("--expand", options->expand, "In primitives, simplified");
  verb.Runs([options] { return PrintTransformed(*options, Batched, {}); });
}

namespace {

// `jvp` and `vjp`.
void AddDerivative(CommandLine& line, bool reverse) {
  auto options = std::make_shared<GraphOptions>();
  options->transforms.jvp = !reverse;
  options->transforms.vjp = reverse;
  Verb verb = AddGraphVerb(
      line, reverse ? "vjp" : "jvp",
      reverse ? "Print a function with its cotangents, reverse mode."
              : "Print a function with its tangents, forward mode.",
      options);
  verb.Add("--wrt", options->transforms.with_respect_to,
           reverse ? "The inputs whose cotangents are asked for (all "
                     "inexact ones)"
                   : "The inputs that have tangents (all inexact ones)")
      .CommaSeparated();
  if (reverse) AddRecomputeFlag(verb, options->transforms);
  verb.AddFlag("--expand", options->expand, "In primitives, simplified");
  verb.Runs([options] { return PrintTransformed(*options, Transformed, {}); });
}

}  // namespace

void AddJvp(CommandLine& line) { AddDerivative(line, /*reverse=*/false); }

void AddVjp(CommandLine& line) { AddDerivative(line, /*reverse=*/true); }

}  // namespace cleave
