#include "transforms/partition/joint_graph.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/vjp/vjp.h"

namespace cleave::aot {

absl::StatusOr<JointGraph> MakeJointGraph(const Graph& graph,
                                          const JointGraphOptions& options,
                                          const RuleSet& rules,
                                          const TransformOptions& transform) {
  const int inputs = static_cast<int>(graph.inputs().size());
  if (options.num_params_buffers < 0 || options.num_params_buffers > inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_params_buffers is ", options.num_params_buffers,
                     ", the function has ", inputs, " inputs"));
  }
  CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp,
                          Vjp(graph, options.active, rules, transform));
  JointGraph joint;
  joint.graph = std::move(vjp.graph);
  joint.primals = inputs;
  joint.outputs = static_cast<int>(graph.outputs().size());
  joint.is_static.resize(inputs);
  for (int i = 0; i < options.num_params_buffers; ++i) {
    joint.is_static[i] = true;
  }
  joint.depends = std::move(vjp.depends);
  return joint;
}

}  // namespace cleave::aot
