// BackwardState: what one call of an AotFunction leaves for its reverse mode.
// Internal to AotFunction.

#ifndef CLEAVE_TRANSFORMS_AOT_BACKWARD_STATE_H_
#define CLEAVE_TRANSFORMS_AOT_BACKWARD_STATE_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_graph.h"
#include "transforms/aot/traced_program.h"

namespace cleave::aot {

// The graph, and how the trees of the call map to its inputs and outputs.
class BackwardState {
 public:
  // A call that ran compiled.
  static std::shared_ptr<BackwardState> OfCompiled(
      const TracedProgram& program, std::shared_ptr<AotGraph> graph,
      AotGraph::Result run);
  // One that became nodes of a trace: `inputs` are its tensors.
  static std::shared_ptr<BackwardState> OfTraced(
      const TracedProgram& program, const std::vector<bool>& active,
      std::shared_ptr<TraceRules> rules,
      std::vector<functional::Tensor> inputs);

  // As AotBackward's.
  absl::StatusOr<AotResult> Run(
      const Tree& cotangents, const std::map<int, functional::Tensor>& updated);

 private:
  BackwardState() = default;
  void Describe(const TracedProgram& program, const Graph& graph);
  // Per output of the graph: its cotangent.
  absl::StatusOr<std::vector<std::optional<functional::Tensor>>> PerOutput(
      const Tree& cotangents,
      const std::map<int, functional::Tensor>& updated) const;
  absl::StatusOr<AotResult> RunCompiled(
      const std::vector<std::optional<functional::Tensor>>& cotangents);
  absl::StatusOr<AotResult> RunTraced(
      const std::vector<std::optional<functional::Tensor>>& cotangents);
  // The cotangents of the active inputs in the structure of the arguments.
  absl::StatusOr<Tree> InArguments(
      std::vector<functional::Tensor> gradients) const;
  // The description of the backward as a function.
  std::shared_ptr<BackwardState> Next() const;

  TreeShape arguments_ = TreeShape::Leaf();
  std::vector<int> leaf_inputs_;  // per leaf: the graph's input, or -1
  TreeShape results_ = TreeShape::Leaf();
  std::vector<int> leaf_outputs_;      // per leaf: the graph's output, or -1
  std::map<int, int> updated_;         // leaf of the arguments to output
  std::vector<bool> active_;           // per input of the graph
  std::vector<TensorType> out_types_;  // per output of the graph

  std::shared_ptr<AotGraph> graph_;  // null where traced
  // Of a backward's backward: its forward has not run before it is needed.
  std::optional<AotGraph::Result> run_;
  std::shared_ptr<AotGraph> parent_;  // whose backward as a function this is
  std::vector<cleave::Tensor> inputs_;

  std::shared_ptr<TraceRules> rules_;
  Graph traced_;
  std::vector<functional::Tensor> traced_inputs_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_BACKWARD_STATE_H_
