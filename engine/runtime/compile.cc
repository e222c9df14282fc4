#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/compile_group.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/kernel_plan.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::Plan;
using internal_kernel::PlannedGraph;
using internal_kernel::PlannedStep;
using internal_kernel::PlanSteps;

namespace {

constexpr char kEntryName[] = "kernel";

}  // namespace

absl::StatusOr<Kernel> Compile(const Graph& graph, const RuleSet& rules,
                               const CompileOptions& options) {
  const TargetLevel level = options.level.value_or(HostLevel());
  if (level > HostLevel()) {
    return absl::InvalidArgumentError(
        absl::StrCat("this machine has no ", TargetLevelName(level),
                     ", but at most ", TargetLevelName(HostLevel())));
  }
  KernelCache& cache =
      options.cache != nullptr ? *options.cache : DefaultKernelCache();
  const std::string version = CodeVersion(level);
  ScheduleOptions schedule;
  schedule.plain = options.plain_schedule;
  ExtractOptions extract;
  extract.generalize_extents = options.generalize_extents;
  CLEAVE_ASSIGN_OR_RETURN(PlannedGraph planned,
                          PlanSteps(graph, rules, extract));
  auto plan = std::make_unique<Plan>();
  plan->graph = std::move(planned.graph);
  plan->static_shapes = planned.static_shapes;
  for (PlannedStep& one : planned.steps) {
    const GroupKind kind = one.step.kind;
    if (kind != GroupKind::kReference) {
      const std::string key = absl::StrCat(version, "\n", GroupKindName(kind),
                                           schedule.plain ? ", plain\n" : "\n",
                                           PrintGraph(one.kernel));
      CLEAVE_ASSIGN_OR_RETURN(one.step.library,
                              cache.Get(
                                  key, version,
                                  [&] {
                                    return CompileGroup(one.kernel, kind,
                                                        kEntryName, level,
                                                        schedule);
                                  },
                                  [&] { return CompileRuntime(level); }));
      CLEAVE_ASSIGN_OR_RETURN(one.step.entry,
                              one.step.library->Find(kEntryName));
    }
    plan->steps.push_back(std::move(one.step));
  }
  return Kernel(std::make_unique<Kernel::Impl>(std::move(plan)));
}

}  // namespace cleave
