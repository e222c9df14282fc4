// BackwardState: the tensors and graphs that one call of an AotFunction keeps
// for its reverse mode. Internal to AotFunction.

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

// How the trees of a call map to the inputs and outputs of its graph: the same
// for all calls of one trace.
struct BackwardTrees {
  // `active` marks the inputs of `graph`, the program's graph, that have
  // cotangents.
  static std::shared_ptr<const BackwardTrees> Of(const TracedProgram& program,
                                                 const Graph& graph,
                                                 std::vector<bool> active);

  TreeShape arguments = TreeShape::Leaf();
  std::vector<int> leaf_inputs;  // per leaf: the graph's input, or -1
  TreeShape results = TreeShape::Leaf();
  std::vector<int> leaf_outputs;      // per leaf: the graph's output, or -1
  std::map<int, int> updated;         // leaf of the arguments to output
  std::vector<bool> active;           // per input of the graph
  std::vector<TensorType> out_types;  // per output of the graph
};

class BackwardState {
 public:
  // A call that ran compiled.
  static std::shared_ptr<BackwardState> OfCompiled(
      std::shared_ptr<const BackwardTrees> trees,
      std::shared_ptr<AotGraph> graph, AotGraph::Result run);
  // One that became nodes of a trace: `inputs` are its tensors.
  static std::shared_ptr<BackwardState> OfTraced(
      std::shared_ptr<const BackwardTrees> trees, const Graph& graph,
      std::shared_ptr<TraceRules> rules,
      std::vector<functional::Tensor> inputs);

  // As AotBackward's.
  absl::StatusOr<AotResult> Run(
      const Tree& cotangents, const std::map<int, functional::Tensor>& updated);

 private:
  BackwardState() = default;
  static std::shared_ptr<BackwardState> Make();
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
  // The trees of the backward as a function, whose results have those types.
  std::shared_ptr<const BackwardTrees> Next(
      std::vector<TensorType> out_types) const;

  std::shared_ptr<const BackwardTrees> trees_;

  std::shared_ptr<AotGraph> graph_;  // null where traced
  // The forward run of a backward's backward, which has not run before it is
  // needed.
  std::optional<AotGraph::Result> run_;
  std::shared_ptr<AotGraph> parent_;  // whose backward as a function this is
  std::vector<cleave::Tensor> inputs_;

  struct Traced {
    std::shared_ptr<TraceRules> rules;
    Graph graph;
    std::vector<functional::Tensor> inputs;
  };
  std::unique_ptr<const Traced> traced_;  // null where compiled
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_BACKWARD_STATE_H_
