// SavingProblem: the costs of saving and of computing again, for each value of
// a joint graph. Internal to transforms/aot.

#ifndef CLEAVE_TRANSFORMS_PARTITION_SAVING_PROBLEM_H_
#define CLEAVE_TRANSFORMS_PARTITION_SAVING_PROBLEM_H_

#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/save_policy.h"

namespace cleave::aot {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

// One entry per node of the joint graph. A partitioner does not decide about
// some nodes: `decides` is false, and the other entries mean nothing. These are
// nodes that depend on a cotangent, nodes that the backward half does not need,
// and constants.
struct SavingProblem {
  const JointGraph* joint = nullptr;
  std::vector<bool> decides;
  std::vector<bool> is_primal;
  // Whether the backward half reads it as it is, whatever is computed again.
  std::vector<bool> is_target;
  // Costs of the cut, kInfinite included; see min_cut.h.
  std::vector<double> save;
  std::vector<double> recompute;
  // The work of computing it again, whether or not that is worth while.
  std::vector<double> again;
  // The memory that saving it holds: none for outputs and static primals.
  std::vector<double> bytes;
  // Whether a memory budget may have it computed again.
  std::vector<bool> may_drop;
  std::vector<bool> offload;
};

// Errors as of ChooseByMinCut.
absl::StatusOr<SavingProblem> MakeSavingProblem(const JointGraph& joint,
                                                const RuleSet& rules,
                                                const MinCutOptions& options);

// The values that the backward half takes when `saved` are saved: those of them
// that it needs, and the primals that it comes down to. Ascending.
std::vector<Value> NeededOf(const SavingProblem& problem,
                            const std::vector<Value>& saved);

// The memory that those hold.
double MemoryOf(const SavingProblem& problem, const std::vector<Value>& values);

// A choice with a minimal sum of costs. Internal where none is finite.
absl::StatusOr<SavedChoice> SolveMinCut(const SavingProblem& problem);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_SAVING_PROBLEM_H_
