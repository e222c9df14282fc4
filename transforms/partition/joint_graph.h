// JointGraph: a function and its reverse mode in one graph, which a partitioner
// cuts into the two graphs that run.
//
//   MakeJointGraph(f, {.active = {true, false}}, rules)
//       inputs  x, w, y.cotangent        outputs  y, x.cotangent

#ifndef CLEAVE_TRANSFORMS_PARTITION_JOINT_GRAPH_H_
#define CLEAVE_TRANSFORMS_PARTITION_JOINT_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/transform_options.h"

namespace cleave::aot {

struct JointGraph {
  // Inputs: the primals, then `<name>.cotangent` for each inexact output.
  // Outputs: those of the function, then `<name>.cotangent` for each active
  // input.
  Graph graph;
  int primals = 0;
  int outputs = 0;
  // Per primal: whether it lives on from call to call whatever is saved, as
  // parameters and buffers do, so that saving it costs nothing.
  std::vector<bool> is_static;
  // Per active input, in order: whether an output depends on it; the cotangents
  // of others are zeros.
  std::vector<bool> depends;
};

struct JointGraphOptions {
  // Per input: whether its cotangent is asked for. Inexact inputs only.
  std::vector<bool> active;
  // Leading inputs that are static.
  int num_params_buffers = 0;
};

// Composite calls stay calls where reverse mode leaves them. InvalidArgument
// for options that do not fit; else errors as of Vjp.
absl::StatusOr<JointGraph> MakeJointGraph(
    const Graph& graph, const JointGraphOptions& options, const RuleSet& rules,
    const TransformOptions& transform = {});

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_JOINT_GRAPH_H_
