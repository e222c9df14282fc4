// The pipeline: a graph of calls becomes the graphs that kernels are generated
// from. Every stage takes and gives graphs with the same values; the list below
// says in which order they run, and why in this one.
//
//   expand    Calls become the bodies of their ops. First, since all that
//             follows knows primitives alone.
//   simplify  `rewrite` items, and movement of movement. After expanding, since
//             a broadcast that one body leaves for another shows only side by
//             side.
//   prepare   Nodes that share more kernels: contractions that are sums, and
//             gathers that read what a row is computed from. Before fusing,
//             which plans the nodes that it finds.
//   fuse      Which nodes share a kernel. On the whole graph; what follows sees
//             one kernel at a time.
//   extract   A kernel's nodes as a graph whose extents are d0, d1, ..: equal
//             kernels of different graphs are equal from here on.
//   collapse  Axes that every node treats alike become one. After extracting,
//             since the nodes of other kernels do not hinder it.
//   zero      Functions that are chosen only at 0 go. Before numerics, which
//             would make arithmetic of them.
//   numerics  Pointwise primitives become arithmetic, by the rules' `numeric`
//             items. Last, since no stage before it would know exp again.
//
// engine/codegen generates code from what comes out (compile_group.h).
//
//   RunPipeline(graph, *rules, {}, [](const PipelineStage& stage) {
//     std::cout << stage.text;
//   });

#ifndef CLEAVE_ENGINE_PIPELINE_PIPELINE_H_
#define CLEAVE_ENGINE_PIPELINE_PIPELINE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct PipelineOptions {
  InPrimitivesOptions primitives;
  FusionOptions fusion;
  ExtractOptions extract;
};

// The result of one stage, as text for a reader.
struct PipelineStage {
  absl::string_view name;
  // The number of the kernel in the plan, for a stage that sees one kernel.
  std::optional<int> kernel;
  // The graph, as PrintGraph prints it; of `fuse`, the plan.
  std::string text;
};
// Called behind each stage, in the order in which they run.
using PipelineObserver = std::function<void(const PipelineStage& stage)>;

struct LoweredGroup {
  FusionGroup group;
  ExtractedGroup extracted;
  // As code is generated from it; nullopt where no code is (HasCode).
  std::optional<Graph> kernel;
};

struct LoweredGraph {
  Graph graph;                       // prepared; the groups' values are its
  std::vector<LoweredGroup> groups;  // in an order that they can run in
};

// From `prepare` on. InvalidArgument for a composite node without a host
// kernel; errors of ApplyNumerics. Nothing is printed without an observer.
absl::StatusOr<LoweredGraph> LowerPrimitives(
    const Graph& graph, const RuleSet& rules, const PipelineOptions& options,
    const PipelineObserver& observer = nullptr);

// All of it. Errors of Expand, too.
absl::StatusOr<LoweredGraph> RunPipeline(
    const Graph& graph, const RuleSet& rules, const PipelineOptions& options,
    const PipelineObserver& observer = nullptr);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_PIPELINE_PIPELINE_H_
