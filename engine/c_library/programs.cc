#include "engine/c_library/programs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/ir/copy_graph.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_kernel::Operand;
using internal_kernel::PlannedGraph;
using internal_kernel::PlannedStep;
using internal_kernel::PlanSteps;
using internal_kernel::Step;
using internal_kernel::StepCheck;

std::vector<absl::string_view> RegionNames(Primitive primitive) {
  if (primitive == Primitive::kScan) return {"body"};
  if (primitive == Primitive::kCond) return {"then", "else"};
  return {"cond", "body"};
}

// The extents that the driver evaluates for a program.
std::vector<Dim> DimsOf(const PlannedGraph& plan) {
  std::vector<Dim> dims;
  const auto add = [&](const Shape& shape) {
    dims.insert(dims.end(), shape.begin(), shape.end());
  };
  for (const NamedValue& input : plan.graph.inputs()) {
    add(plan.graph.type(input.value).shape);
  }
  for (const ShapeGuard& guard : plan.graph.guards()) {
    add({guard.lhs, guard.rhs});
  }
  for (const PlannedStep& one : plan.steps) {
    const Step& step = one.step;
    add(step.dims);
    for (const auto* operands : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *operands) add(operand.shape);
    }
    for (const StepCheck& check : step.checks) {
      add(check.result);
      add(check.check.repeats);
      add({check.check.first, check.check.count, check.check.extent});
    }
    const std::optional<Value> control = ControlOf(step);
    if (!control.has_value()) continue;
    for (const char* name : {"length", "max"}) {
      const StaticValue* const value =
          step.graph.attributes(*control).Find(name);
      if (value != nullptr) dims.push_back(value->AsDim());
    }
  }
  return dims;
}

absl::Status CheckSupported(const std::vector<DriverProgram>& programs,
                            const CInterface& interface) {
  std::set<std::string> known;
  for (const CInterface::Dimension& dim : interface.dims) {
    known.insert(dim.variable);
  }
  std::vector<std::string> reasons;
  bool static_shapes = true;
  for (const DriverProgram& program : programs) {
    for (const PlannedStep& one : program.plan.steps) {
      const GroupKind kind = one.step.kind;
      if (HasCode(kind) || kind == GroupKind::kRuntime ||
          kind == GroupKind::kLoop) {
        continue;
      }
      if (std::count(reasons.begin(), reasons.end(), one.step.why) == 0) {
        reasons.push_back(one.step.why);
      }
    }
    static_shapes &= program.plan.static_shapes;
    for (const Dim& dim : DimsOf(program.plan)) {
      for (const std::string& name : dim.Variables()) {
        static_shapes &= known.count(name) > 0;
      }
    }
  }
  if (!reasons.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: a library with `", interface.function,
                     "`, which needs what only a reference kernel computes: ",
                     absl::StrJoin(reasons, "; ")));
  }
  if (!static_shapes) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: a library with `", interface.function,
                     "`, the extents of which depend on its data"));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Value> ControlOf(const Step& step) {
  if (step.kind != GroupKind::kLoop) return std::nullopt;
  for (uint32_t id = 0; id < step.graph.size(); ++id) {
    const Primitive primitive = ToPrimitive(step.graph.node(Value{id}).op);
    if (ClassOf(primitive) == PrimitiveClass::kControl) return Value{id};
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<DriverProgram>> PlanPrograms(
    const Graph& graph, const RuleSet& rules, const CInterface& interface) {
  FusionOptions fusion;
  fusion.runtime_code = false;
  fusion.tables = false;
  std::vector<DriverProgram> programs(1);
  CLEAVE_ASSIGN_OR_RETURN(programs[0].plan,
                          PlanSteps(graph, rules, fusion, {}));
  for (size_t p = 0; p < programs.size(); ++p) {
    const size_t steps = programs[p].plan.steps.size();
    programs[p].regions.resize(steps);
    for (size_t s = 0; s < steps; ++s) {
      const std::optional<Value> control =
          ControlOf(programs[p].plan.steps[s].step);
      if (!control.has_value()) continue;
      // By value: adding a program moves the others.
      const Graph around = programs[p].plan.steps[s].step.graph;
      const auto names = RegionNames(ToPrimitive(around.node(*control).op));
      for (const absl::string_view name : names) {
        const Region& region = around.attributes(*control).Get(name).AsRegion();
        // Numerics are graphs of the context of the rules.
        DriverProgram program;
        CLEAVE_ASSIGN_OR_RETURN(
            program.plan, PlanSteps(CopyGraph(*region.graph, rules.context()),
                                    rules, fusion, {}));
        programs[p].regions[s].push_back(static_cast<int>(programs.size()));
        programs.push_back(std::move(program));
      }
    }
  }
  CLEAVE_RETURN_IF_ERROR(CheckSupported(programs, interface));
  return programs;
}

}  // namespace cleave
