// The trade of memory against computing again: what each memory budget of the
// min-cut partitioner holds and costs.
//
//   auto points = MemoryPareto(joint, rules, options);
//   file << ParetoSvg(*points, "12 transformer blocks");

#ifndef CLEAVE_TRANSFORMS_PARTITION_MEMORY_PARETO_H_
#define CLEAVE_TRANSFORMS_PARTITION_MEMORY_PARETO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/min_cut.h"

namespace cleave::aot {

struct ParetoPoint {
  double budget = 0;
  // As in PartitionFigures.
  double saved_bytes = 0;
  int64_t recomputed_nodes = 0;
  double recomputed_operations = 0;
  // The same, of all operations of the joint graph.
  double recomputed_share = 0;
  // Whether no other point holds less and computes less again, or one of that
  // and as much of the other.
  bool is_optimal = true;
};

// One point for each of the budgets 0, 1/steps, .., 1, ascending; that of the
// options is not used. InvalidArgument for steps < 1; errors as of
// MinCutRematerializationPartition.
absl::StatusOr<std::vector<ParetoPoint>> MemoryPareto(
    const JointGraph& joint, const RuleSet& rules,
    const MinCutOptions& options = {}, int steps = 20);

// A picture of the points: memory to the right, what is computed again upwards,
// a line through the optimal ones. CHECKs that there is one.
std::string ParetoSvg(const std::vector<ParetoPoint>& points,
                      absl::string_view title);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_MEMORY_PARETO_H_
