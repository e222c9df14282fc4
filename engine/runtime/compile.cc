#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/codegen/compile_group.h"
#include "engine/codegen/device.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/cuda_blas.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/kernel_plan.h"
#include "engine/runtime/messages.h"
#include "engine/runtime/region_kernels.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::Plan;
using internal_kernel::PlannedGraph;
using internal_kernel::PlannedStep;
using internal_kernel::PlanSteps;
using internal_kernel::RegionKernels;
using internal_kernel::Step;

namespace {

constexpr char kEntryName[] = "kernel";

// A user should know once what is many times slower than was meant, and `why`.
void SayOnce(std::once_flag& said, absl::string_view why,
             absl::string_view instead) {
  std::call_once(said, [&] { Say(absl::StrCat(why, ": ", instead)); });
}

// Compiles what says, of the inputs that are to be finite of a step on a
// device, whether an element is not.
absl::Status AddFiniteChecks(const RuleSet& rules,
                             const CompileOptions& options, Step& step) {
  if (step.device != Device::kCuda) return absl::OkStatus();
  for (const int i : step.finite_inputs) {
    // An infinity or NaN is NaN when it is taken from itself.
    CLEAVE_ASSIGN_OR_RETURN(
        const Graph graph,
        ParseGraph(
            absl::StrReplaceAll(R"(
graph (%x: T[n]) -> (y: bool[]) {
  %1: T[n] = sub(%x, %x)
  %2: bool[n] = ne(%1, %1)
  %3: bool[] = reduce_any(%2, axes: [0])
  return y = %3
})",
                                {{"T", DTypeName(step.inputs[i].dtype)}}),
            rules.context()));
    CLEAVE_ASSIGN_OR_RETURN(Kernel kernel, Compile(graph, rules, options));
    step.finite_checks.push_back(
        std::make_shared<const Kernel>(std::move(kernel)));
  }
  return absl::OkStatus();
}

// A library that is there and does not work is said; one that is not there is
// none that a user meant to have.
bool HasLibraryProducts() {
  const absl::Status status = CudaBlas::Get().status();
  if (absl::IsInternal(status)) {
    static std::once_flag said;
    SayOnce(said, status.message(), "kernels compute products instead");
  }
  return status.ok();
}

// One library for the steps on the device: what they share stays there.
absl::Status AddDeviceCode(const std::vector<DeviceGroup>& groups,
                           Device device, TargetLevel level, KernelCache& cache,
                           Plan& plan) {
  const std::string version = CodeVersion(level, device);
  std::string key = version;
  for (const DeviceGroup& group : groups) {
    absl::StrAppend(&key, "\n", GroupKindName(group.kind), "\n",
                    PrintGraph(*group.graph));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const KernelLibrary> library,
      cache.Get(
          key, version, [&] { return CompileGroups(groups, level, device); },
          [&] { return CompileRuntime(level, device); }));
  CLEAVE_ASSIGN_OR_RETURN(plan.device, DeviceInterface::Open(library, device));
  size_t next = 0;
  for (Step& step : plan.steps) {
    if (step.device == Device::kCpu) continue;
    step.library = library;
    CLEAVE_ASSIGN_OR_RETURN(step.entry, library->Find(groups[next++].name));
  }
  return absl::OkStatus();
}

// Compiles the regions of a loop or a choice; makes it a reference kernel where
// that cannot be done.
absl::Status AddRegions(const RuleSet& rules, const CompileOptions& options,
                        Step& step) {
  absl::StatusOr<RegionKernels> regions =
      RegionKernels::Make(step.graph, rules, options);
  if (absl::IsUnimplemented(regions.status())) {
    step.kind = GroupKind::kReference;
    step.why = std::string(regions.status().message());
    return absl::OkStatus();
  }
  CLEAVE_RETURN_IF_ERROR(regions.status());
  step.regions = std::make_shared<const RegionKernels>(*std::move(regions));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Kernel> Compile(const Graph& graph, const RuleSet& rules,
                               const CompileOptions& options) {
  const BudgetScope scope;
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
  FusionOptions fusion;
  fusion.totals_with_rows = options.device == Device::kCpu;
  fusion.runtime_copies = options.device == Device::kCpu;
  fusion.branches = options.device == Device::kCpu;
  fusion.tables = options.device == Device::kCpu;
  fusion.library_products =
      options.device == Device::kCuda && HasLibraryProducts();
  fusion.host_kernels = &options.host_kernels;
  if (!CodeStatus().ok() && options.device == Device::kCpu) {
    fusion.no_code = std::string(CodeStatus().message());
    static std::once_flag said;
    SayOnce(said, fusion.no_code, "the interpreter computes instead");
  }
  CLEAVE_ASSIGN_OR_RETURN(PlannedGraph planned,
                          PlanSteps(graph, rules, fusion, extract));
  auto plan = std::make_unique<Plan>();
  plan->graph = std::move(planned.graph);
  plan->given = std::move(planned.given);
  plan->static_shapes = planned.static_shapes;
  plan->host_kernels = options.host_kernels;
  std::vector<DeviceGroup> on_device;
  for (PlannedStep& one : planned.steps) {
    // Between groups: the compiler of one cannot be stopped.
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    const GroupKind kind = one.step.kind;
    const absl::Status allowed = CanRunOn(options.device, kind);
    if (options.device != Device::kCpu && allowed.ok()) {
      one.step.device = options.device;
      on_device.push_back(
          {&one.kernel, kind, absl::StrCat(kEntryName, on_device.size())});
    } else if (HasCode(kind)) {
      one.step.why = std::string(allowed.message());
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
    if (kind == GroupKind::kLoop) {
      CLEAVE_RETURN_IF_ERROR(AddRegions(rules, options, plan->steps.back()));
    }
  }
  // A library's code reaches the arrays of a device, also those that steps of
  // the CPU read and write: where the device has no step, the code of this one.
  std::optional<Graph> none;
  if (on_device.empty() && options.device == Device::kCuda) {
    CLEAVE_ASSIGN_OR_RETURN(none, ParseGraph(R"(
graph (%x: f32[]) -> (y: f32[]) {
  %1: f32[] = neg(%x)
  return y = %1
})",
                                             rules.context()));
    on_device.push_back({&*none, GroupKind::kPointwise, kEntryName});
  }
  if (!on_device.empty()) {
    CLEAVE_RETURN_IF_ERROR(
        AddDeviceCode(on_device, options.device, level, cache, *plan));
  }
  for (Step& step : plan->steps) {
    CLEAVE_RETURN_IF_ERROR(AddFiniteChecks(rules, options, step));
  }
  return Kernel(std::make_unique<Kernel::Impl>(std::move(plan)));
}

}  // namespace cleave
