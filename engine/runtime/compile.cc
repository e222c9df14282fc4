#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/collapse_axes.h"
#include "engine/codegen/compile_group.h"
#include "engine/codegen/numerics.h"
#include "engine/codegen/replace_at_zero.h"
#include "engine/codegen/sink_gathers.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_impl.h"
#include "engine/runtime/kernel_plan.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_kernel::Operand;
using internal_kernel::Plan;
using internal_kernel::Step;

constexpr char kEntryName[] = "kernel";

// A group's dims in the terms of the whole graph.
absl::StatusOr<Shape> Outer(const Shape& shape, const ExtractedGroup& group) {
  std::map<std::string, Dim> values;
  for (size_t i = 0; i < group.dims.size(); ++i) {
    values.emplace(absl::StrCat("d", i), group.dims[i]);
  }
  Shape outer;
  for (const Dim& dim : shape) {
    CLEAVE_ASSIGN_OR_RETURN(outer.emplace_back(),
                            dim.CheckedSubstitute(values));
  }
  return outer;
}

// What the gathers of a group need checked; each gather is checked once, by the
// first group that evaluates it.
absl::Status AddChecks(const Graph& graph, const FusionGroup& group,
                       std::set<Value>& checked, Step& step) {
  for (const Value gather : CheckedGathers(graph, group.nodes)) {
    if (!CanLower(graph, gather).ok()) continue;  // its kernel checks
    if (!checked.insert(gather).second) continue;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<IndexCheck> checks,
                            IndexChecks(graph, gather));
    for (const IndexCheck& check : checks) {
      CLEAVE_CHECK(std::find(group.nodes.begin(), group.nodes.end(),
                             check.base) == group.nodes.end())
          << "indices are stored before they are checked";
      step.checks.push_back(
          {check, graph.type(gather).shape, IndexError(graph, gather)});
    }
  }
  return absl::OkStatus();
}

struct Prepared {
  Step step;
  Graph graph;  // of a kernel: collapsed, with numerics
};

absl::StatusOr<Prepared> Prepare(const Graph& graph, const FusionGroup& group,
                                 const RuleSet& rules,
                                 const CompileOptions& options,
                                 std::shared_ptr<Context> reference_context) {
  Prepared result;
  Step& step = result.step;
  step.kind = group.kind;
  step.why = group.why;
  for (const Value v : group.nodes) {
    step.ops.emplace_back(graph.context()->op_name(graph.node(v).op));
  }
  ExtractOptions extract;
  extract.generalize_extents = options.generalize_extents;
  const ExtractedGroup extracted = ExtractGroup(graph, group, extract);
  if (group.kind == GroupKind::kReference) {
    // In a context of its own: runs add to it.
    CLEAVE_ASSIGN_OR_RETURN(
        step.graph, ParseGraph(PrintGraph(extracted.graph), reference_context));
    for (size_t i = 0; i < extracted.inputs.size(); ++i) {
      step.inputs.push_back({extracted.inputs[i],
                             graph.type(extracted.inputs[i]).dtype,
                             extracted.input_shapes[i]});
    }
    for (const Value v : group.outputs) {
      step.outputs.push_back({v, graph.type(v).dtype, graph.type(v).shape});
    }
    return result;
  }
  const Graph collapsed = ReplaceAtZero(CollapseAxes(extracted.graph));
  CLEAVE_ASSIGN_OR_RETURN(result.graph, ApplyNumerics(collapsed, rules));
  CLEAVE_ASSIGN_OR_RETURN(step.dims,
                          Outer(KernelDims(result.graph), extracted));
  for (size_t i = 0; i < extracted.inputs.size(); ++i) {
    const TensorType& type = result.graph.type(result.graph.inputs()[i].value);
    CLEAVE_ASSIGN_OR_RETURN(Shape shape, Outer(type.shape, extracted));
    step.inputs.push_back({extracted.inputs[i], type.dtype, std::move(shape)});
  }
  for (const int i : OutputOrder(result.graph)) {
    const TensorType& type = result.graph.type(result.graph.outputs()[i].value);
    CLEAVE_ASSIGN_OR_RETURN(Shape shape, Outer(type.shape, extracted));
    step.outputs.push_back({group.outputs[i], type.dtype, std::move(shape)});
  }
  return result;
}

}  // namespace

absl::StatusOr<Kernel> Compile(const Graph& given, const RuleSet& rules,
                               const CompileOptions& options) {
  const Graph graph = SinkGathers(given);
  CLEAVE_ASSIGN_OR_RETURN(const FusionPlan fusion, PlanFusion(graph));
  auto plan = std::make_unique<Plan>();
  plan->graph = graph;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    plan->static_shapes &=
        graph.node(Value{id}).op != ToOpId(Primitive::kNonzero);
  }
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
  const auto reference_context = std::make_shared<Context>();
  std::set<Value> checked;
  for (const FusionGroup& group : fusion.groups) {
    CLEAVE_ASSIGN_OR_RETURN(
        Prepared prepared,
        Prepare(graph, group, rules, options, reference_context));
    CLEAVE_RETURN_IF_ERROR(AddChecks(graph, group, checked, prepared.step));
    if (group.kind != GroupKind::kReference) {
      const std::string key = absl::StrCat(
          version, "\n", GroupKindName(group.kind),
          schedule.plain ? ", plain\n" : "\n", PrintGraph(prepared.graph));
      CLEAVE_ASSIGN_OR_RETURN(prepared.step.library,
                              cache.Get(
                                  key, version,
                                  [&] {
                                    return CompileGroup(prepared.graph,
                                                        group.kind, kEntryName,
                                                        level, schedule);
                                  },
                                  [&] { return CompileRuntime(level); }));
      CLEAVE_ASSIGN_OR_RETURN(prepared.step.entry,
                              prepared.step.library->Find(kEntryName));
    }
    plan->steps.push_back(std::move(prepared.step));
  }
  return Kernel(std::make_unique<Kernel::Impl>(std::move(plan)));
}

}  // namespace cleave
