#include "engine/pipeline/pipeline.h"

#include <utility>

#include "engine/codegen/collapse_axes.h"
#include "engine/codegen/numerics.h"
#include "engine/codegen/prepare_fusion.h"
#include "engine/codegen/replace_at_zero.h"
#include "engine/ir/graph_text.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Tells an observer, if there is one.
class Reporter {
 public:
  explicit Reporter(const PipelineObserver& observer) : observer_(observer) {}

  void Report(absl::string_view name, const Graph& graph,
              std::optional<int> kernel = std::nullopt) const {
    if (observer_) observer_({name, kernel, PrintGraph(graph)});
  }
  void Report(absl::string_view name, const Graph& graph,
              const FusionPlan& plan) const {
    if (observer_) {
      observer_({name, std::nullopt, PrintFusionPlan(graph, plan)});
    }
  }

 private:
  const PipelineObserver& observer_;
};

}  // namespace

absl::StatusOr<LoweredGraph> LowerPrimitives(const Graph& graph,
                                             const RuleSet& rules,
                                             const PipelineOptions& options,
                                             const PipelineObserver& observer) {
  const Reporter reporter(observer);
  LoweredGraph result;
  result.graph = PrepareFusion(graph, options.fusion, options.extract);
  reporter.Report("prepare", result.graph);
  CLEAVE_ASSIGN_OR_RETURN(FusionPlan plan,
                          PlanFusion(result.graph, options.fusion));
  reporter.Report("fuse", result.graph, plan);
  for (FusionGroup& group : plan.groups) {
    const int number = static_cast<int>(result.groups.size());
    LoweredGroup& lowered = result.groups.emplace_back();
    lowered.group = std::move(group);
    lowered.extracted =
        ExtractGroup(result.graph, lowered.group, options.extract);
    reporter.Report("extract", lowered.extracted.graph, number);
    if (!HasCode(lowered.group.kind)) continue;
    CLEAVE_ASSIGN_OR_RETURN(Graph kernel,
                            CollapseAxes(lowered.extracted.graph));
    reporter.Report("collapse", kernel, number);
    kernel = ReplaceAtZero(kernel);
    reporter.Report("zero", kernel, number);
    CLEAVE_ASSIGN_OR_RETURN(lowered.kernel, ApplyNumerics(kernel, rules));
    reporter.Report("numerics", *lowered.kernel, number);
  }
  return result;
}

absl::StatusOr<LoweredGraph> RunPipeline(const Graph& graph,
                                         const RuleSet& rules,
                                         const PipelineOptions& options,
                                         const PipelineObserver& observer) {
  const Reporter reporter(observer);
  if (observer) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph expanded,
                            Expand(graph, rules, options.primitives.expand));
    reporter.Report("expand", expanded);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                          InPrimitives(graph, rules, options.primitives));
  reporter.Report("simplify", primitives);
  return LowerPrimitives(primitives, rules, options, observer);
}

}  // namespace cleave
