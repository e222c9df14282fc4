// AotGraph: a function's graph, differentiated in reverse, partitioned and
// compiled: what one trace of an AotFunction becomes.
//
//   AotGraph f = *AotGraph::Make(graph, {true, false}, examples, compiler,
//                                options, rules);
//   AotGraph::Result y = *f.Run({x, w});
//   std::vector<Tensor> dx = *f.Backward(y, {dy});

#ifndef CLEAVE_TRANSFORMS_AOT_AOT_GRAPH_H_
#define CLEAVE_TRANSFORMS_AOT_AOT_GRAPH_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "transforms/aot/aot_log.h"
#include "transforms/aot/aot_options.h"
#include "transforms/aot/checked_graph.h"
#include "transforms/aot/partitioned_function.h"
#include "transforms/partition/partition.h"

namespace cleave::aot {

class AotGraph {
 public:
  // The outputs of a call, and the tensors that its backward needs.
  struct Result {
    std::vector<Tensor> outputs;
    // Empty tensors where `offloaded` has them.
    std::vector<Tensor> saved;
    std::vector<std::shared_ptr<const void>> offloaded;
    std::vector<TensorType> offloaded_types;
    // The inputs, for derivatives of the backward.
    std::vector<Tensor> primals;
  };

  // `active` marks the inputs whose cotangents can be asked for: where there is
  // none, the graph is compiled for inference. Errors of the transforms, the
  // partition function and the compilers; InvalidArgument where `fw_compiler`
  // is null; FailedPrecondition where the graph or a half has a guard that does
  // not hold for `examples`, before anything is compiled. Phases are added to
  // `log`, if it is there.
  static absl::StatusOr<std::shared_ptr<AotGraph>> Make(
      const Graph& graph, const std::vector<bool>& active,
      const std::vector<TensorType>& examples, GraphCompiler fw_compiler,
      const AotOptions& options, std::shared_ptr<TraceRules> rules,
      AotTrace* log);

  const PartitionedFunction& function() const { return function_; }

  // Errors of the compiled graph, and of its results (CheckedGraph), here and
  // in Backward.
  absl::StatusOr<Result> Run(std::vector<Tensor> inputs) const;

  // The cotangents of the active inputs. `cotangents`: per output; absent ones
  // are zeros, as are those of exact dtypes, which have none.
  // InvalidArgument where their number or one's type does not fit;
  // FailedPrecondition where nothing is active.
  absl::StatusOr<std::vector<Tensor>> Backward(
      const Result& result,
      absl::Span<const std::optional<Tensor>> cotangents) const;

  // The backward as a function to differentiate: inputs are the primals, then
  // a cotangent for each inexact output; outputs the cotangents of the active
  // inputs. Active are the active primals and all cotangents. Made when it is
  // first asked for, with the same compilers.
  absl::StatusOr<std::shared_ptr<AotGraph>> BackwardAsFunction() const;

  // The cotangents of BackwardAsFunction's inputs: those of `cotangents`, as
  // given to Backward, with zeros for those that are absent.
  absl::StatusOr<std::vector<Tensor>> FullCotangents(
      const Result& result,
      absl::Span<const std::optional<Tensor>> cotangents) const;

 private:
  AotGraph() = default;

  PartitionedFunction function_;
  std::vector<TensorType> examples_;
  GraphCompiler fw_compiler_;
  AotOptions options_;
  std::shared_ptr<TraceRules> rules_;
  CheckedGraph forward_;
  CheckedGraph backward_;
  mutable std::shared_ptr<AotGraph> backward_function_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_AOT_GRAPH_H_
