// MinCutRematerializationPartition: chooses the values to save for the backward
// half, and those to compute there again, such that the least memory moves.
//
//   joint       x, y.cotangent -> y = exp(sin(x)), x.cotangent
//   saved       x, and y, an output, which costs nothing
//
// The choice is a minimum cut. Each value of the joint graph that does not
// depend on a cotangent has two nodes, in and out:
//
//   in -> out         what saving it costs, in bytes: written and read once;
//                     or read alone, where it is in memory anyway: a primal, or
//                     what does not fuse with the nodes that read it; and once
//                     more (`memory_weight`) for being held in between. Nothing
//                     for outputs of the function and for static primals. Views
//                     are not saved: infinite
//   source -> in      what computing it again costs, in bytes (the table in
//                     recompute_cost.h): nothing where only the backward half
//                     needs it, since there it is computed once; infinite for
//                     primals and for what is not to be computed again. Its
//                     bytes are added where a node of the backward half that
//                     does not fuse reads it: it has to be written there
//   out -> in         of each user: infinite
//   out -> sink       infinite where what depends on a cotangent reads it
//
// A value is saved where the cut parts its two nodes. The distance from the
// backward half counts by this: of two cuts across a chain of the same bytes,
// the one nearer to it computes less again. A chain of `max_recompute_chain`
// fused operations is not computed again whole: its last one is saved, or what
// it feeds. With `activation_memory_budget` below 1 some of the choice is given
// up (memory_budget.h).

#ifndef CLEAVE_TRANSFORMS_PARTITION_MIN_CUT_H_
#define CLEAVE_TRANSFORMS_PARTITION_MIN_CUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/partition.h"
#include "transforms/partition/recompute_cost.h"
#include "transforms/partition/save_policy.h"

namespace cleave::aot {

struct MinCutOptions {
  CostOptions cost;
  SavePolicy policy;  // null: the costs alone decide
  // Within [0, 1]: how much of the memory that the cut would save beyond the
  // inputs may be saved.
  double activation_memory_budget = 1;
  // The cost of a byte that is held between the halves, in bytes moved.
  double memory_weight = 1;
  // Static primals live on anyway, and cost nothing to save.
  bool static_inputs_are_free = true;
  int max_recompute_chain = 100;
};

// A choice of values to save, and what it rests on.
struct SavedChoice {
  std::vector<Value> saved;      // ascending
  std::vector<Value> offloaded;  // those of `saved` that are
  // The total of the cut, in bytes (see above).
  double cost = 0;
};

// The choice for the whole budget. InvalidArgument for options that do not fit
// and where a policy contradicts itself; errors of the bodies of the rules.
absl::StatusOr<SavedChoice> ChooseByMinCut(const JointGraph& joint,
                                           const RuleSet& rules,
                                           const MinCutOptions& options = {});

// The partition by the choice, at the budget. Errors as of ChooseByMinCut.
absl::StatusOr<Partition> MinCutRematerializationPartition(
    const JointGraph& joint, const RuleSet& rules,
    const MinCutOptions& options = {});

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_MIN_CUT_H_
