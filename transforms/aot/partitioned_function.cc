#include "transforms/aot/partitioned_function.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

void Describe(const Graph& graph, const std::vector<bool>& active,
              const AotOptions& options,
              const ResolvedDecompositions& decompositions, AotTrace* log) {
  log->active = active;
  log->num_params_buffers = options.num_params_buffers;
  log->recompute_loops = options.recompute_loops;
  log->expand = options.expand;
  log->outputs = static_cast<int>(graph.outputs().size());
  log->decomposed = {decompositions.own.begin(), decompositions.own.end()};
  log->preserved = {decompositions.preserve.begin(),
                    decompositions.preserve.end()};
  log->replaced.clear();
  for (const auto& [op, by] : decompositions.replace) {
    const auto* other = std::get_if<std::string>(&by);
    log->replaced.emplace_back(op, other != nullptr ? *other : kByFunction);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<TraceRules>> MakeTraceRules(
    const AotOptions& options, std::shared_ptr<const RuleSet> rules) {
  auto made = std::make_shared<TraceRules>();
  CLEAVE_ASSIGN_OR_RETURN(made->decompositions,
                          Resolve(options.decompositions, std::move(rules)));
  made->transform.recompute_loops = options.recompute_loops;
  return made;
}

absl::StatusOr<PartitionedFunction> PartitionFunctionGraph(
    const Graph& graph, const std::vector<bool>& active,
    const AotOptions& options, TraceRules& rules, AotTrace* log) {
  const ResolvedDecompositions& decompositions = rules.decompositions;
  if (log != nullptr) Describe(graph, active, options, decompositions, log);
  PhaseClock clock(log);
  PartitionedFunction made;
  made.active = active;
  CLEAVE_ASSIGN_OR_RETURN(made.graph, ReplaceOps(graph, decompositions));
  clock.Phase("replace", &made.graph);
  const auto decompose = [&](const Graph& whole) -> absl::StatusOr<Graph> {
    if (options.expand) {
      ExpandOptions all;
      all.preserve = decompositions.preserve;
      return Expand(whole, *decompositions.rules, all);
    }
    return Decompose(whole, decompositions);
  };
  if (std::find(active.begin(), active.end(), true) == active.end()) {
    CLEAVE_ASSIGN_OR_RETURN(made.partition.forward, decompose(made.graph));
    clock.Phase("inference", &made.partition.forward);
    return made;
  }
  made.differentiated = true;
  JointGraphOptions joint_options;
  joint_options.active = active;
  joint_options.num_params_buffers = options.num_params_buffers;
  CLEAVE_ASSIGN_OR_RETURN(
      made.joint, MakeJointGraph(made.graph, joint_options,
                                 *decompositions.rules, rules.transform));
  clock.Phase("joint", &made.joint.graph);
  JointGraph decomposed = made.joint;
  CLEAVE_ASSIGN_OR_RETURN(decomposed.graph, decompose(made.joint.graph));
  clock.Phase("decompose", &decomposed.graph);
  const PartitionFunction& partition_fn =
      options.partition_fn ? options.partition_fn : DefaultPartition;
  CLEAVE_ASSIGN_OR_RETURN(made.partition, partition_fn(decomposed));
  CLEAVE_RETURN_IF_ERROR(CheckPartition(decomposed, made.partition));
  clock.Phase("partition");
  if (log != nullptr) log->saved = made.partition.saved;
  clock.Phase("forward", &made.partition.forward);
  clock.Phase("backward", &made.partition.backward);
  return made;
}

}  // namespace cleave::aot
