// PlanPrograms: the programs of a library, which are its function and the
// regions of the loops and choices in it, each in steps of its own.

#ifndef CLEAVE_ENGINE_C_LIBRARY_PROGRAMS_H_
#define CLEAVE_ENGINE_C_LIBRARY_PROGRAMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/c_library/c_interface.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_plan.h"

namespace cleave {

// Code of one step: entries[i] is the symbol of its kernel for levels[i].
// Empty where the driver's own code computes it.
struct DriverKernel {
  std::vector<std::string> entries;
};

struct DriverProgram {
  internal_kernel::PlannedGraph plan;
  // The programs of each step's regions: the body of a scan; then and else of a
  // cond; cond and body of a while.
  std::vector<std::vector<int>> regions;
  std::vector<DriverKernel> kernels;  // of each step
};

// The function first, then its regions and theirs, without kernels. Their
// extents are those of the function's parameters. Errors of PlanSteps.
// Unimplemented, with all reasons, where only a reference kernel computes a
// step, and for an extent that the function's parameters do not give.
absl::StatusOr<std::vector<DriverProgram>> PlanPrograms(
    const Graph& graph, const RuleSet& rules, const CInterface& interface);

// The loop or choice of a step; nullopt where it is none. Each of its operands
// is an input of the step's graph.
std::optional<Value> ControlOf(const internal_kernel::Step& step);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_PROGRAMS_H_
