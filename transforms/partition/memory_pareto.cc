#include "transforms/partition/memory_pareto.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/partition/memory_budget.h"
#include "transforms/partition/partition.h"
#include "transforms/partition/partition_figures.h"
#include "transforms/partition/saving_problem.h"

namespace cleave::aot {
namespace {

bool Beats(const ParetoPoint& a, const ParetoPoint& b) {
  return a.saved_bytes <= b.saved_bytes &&
         a.recomputed_operations <= b.recomputed_operations &&
         (a.saved_bytes < b.saved_bytes ||
          a.recomputed_operations < b.recomputed_operations);
}

}  // namespace

absl::StatusOr<std::vector<ParetoPoint>> MemoryPareto(
    const JointGraph& joint, const RuleSet& rules, const MinCutOptions& options,
    int steps) {
  if (steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps is ", steps, ", but must be at least 1"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const SavingProblem problem,
                          MakeSavingProblem(joint, rules, options));
  CLEAVE_ASSIGN_OR_RETURN(const SavedChoice choice, SolveMinCut(problem));
  CostModel costs(rules, options.cost);
  CLEAVE_ASSIGN_OR_RETURN(const double all, costs.Operations(joint.graph));
  std::vector<ParetoPoint> points;
  for (int step = 0; step <= steps; ++step) {
    ParetoPoint point;
    point.budget = static_cast<double>(step) / steps;
    CLEAVE_ASSIGN_OR_RETURN(
        const Partition partition,
        PartitionBySaved(
            joint, step == steps
                       ? choice.saved
                       : WithinBudget(problem, choice.saved, point.budget)));
    CLEAVE_ASSIGN_OR_RETURN(const PartitionFigures figures,
                            FiguresOf(joint, partition, costs));
    point.saved_bytes = figures.saved_bytes;
    point.recomputed_nodes = figures.recomputed_nodes;
    point.recomputed_operations = figures.recomputed_operations;
    point.recomputed_share = all > 0 ? figures.recomputed_operations / all : 0;
    points.push_back(point);
  }
  for (ParetoPoint& point : points) {
    for (const ParetoPoint& other : points) {
      if (Beats(other, point)) point.is_optimal = false;
    }
  }
  return points;
}

}  // namespace cleave::aot
