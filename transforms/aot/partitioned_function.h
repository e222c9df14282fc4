// A function's graph differentiated in reverse and partitioned, before anything
// is compiled.

#ifndef CLEAVE_TRANSFORMS_AOT_PARTITIONED_FUNCTION_H_
#define CLEAVE_TRANSFORMS_AOT_PARTITIONED_FUNCTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/aot/aot_log.h"
#include "transforms/aot/aot_options.h"
#include "transforms/aot/decompositions.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/partition.h"
#include "transforms/table/transform_options.h"

namespace cleave::aot {

// The rules of a trace, and how it is transformed by them.
struct TraceRules {
  ResolvedDecompositions decompositions;
  TransformOptions transform;
};
// Errors as of Resolve.
absl::StatusOr<std::shared_ptr<TraceRules>> MakeTraceRules(
    const AotOptions& options, std::shared_ptr<const RuleSet> rules);

struct PartitionedFunction {
  // As it was traced, but for the ops that have another rule for their body.
  Graph graph;
  std::vector<bool> active;
  // Whether anything is active.
  bool differentiated = false;
  // Before ops are decomposed; empty where nothing is active.
  JointGraph joint;
  // The graphs that compilers see. If nothing is active: `forward` alone.
  Partition partition;
};

// Replaces ops, differentiates, decomposes, partitions. `active` marks the
// inputs whose cotangents can be asked for. Phases are added to `log`, if it is
// there. Errors of each; InvalidArgument where the partition function's halves
// do not fit (CheckPartition).
absl::StatusOr<PartitionedFunction> PartitionFunctionGraph(
    const Graph& graph, const std::vector<bool>& active,
    const AotOptions& options, TraceRules& rules, AotTrace* log);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_PARTITIONED_FUNCTION_H_
