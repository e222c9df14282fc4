// CheckedGraph: a compiled graph whose results are looked at before anyone uses
// them. A compiler is the host's: one that gives other tensors than its graph
// has is told so, with the half, the output and both types.
//
//   CheckedGraph run = *CheckedGraph::Make(graph, Half::kForward, compiled);
//   absl::StatusOr<std::vector<Tensor>> y = run({x});
//   // the compiled forward graph gives output `y` as i64[77], not f32[4, 5]
//
// Internal to transforms/aot.

#ifndef CLEAVE_TRANSFORMS_AOT_CHECKED_GRAPH_H_
#define CLEAVE_TRANSFORMS_AOT_CHECKED_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "ops/infer_type.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"
#include "transforms/aot/graph_compiler.h"

namespace cleave::aot {

// FailedPrecondition for a guard that does not hold. A guard on variables that
// have no value passes: the size of a nonzero is known when it runs.
absl::Status CheckKnownGuards(absl::Span<const ShapeGuard> guards,
                              const DimValues& values);

class CheckedGraph {
 public:
  CheckedGraph() = default;
  // InvalidArgument where the compiler gave nothing to call.
  static absl::StatusOr<CheckedGraph> Make(const Graph& graph, Half half,
                                           CompiledGraph compiled);

  bool exists() const { return compiled_ != nullptr; }

  // One tensor per input, which have the graph's types; one per output. Errors
  // of what was compiled; InvalidArgument where it gives another number of
  // tensors, or one of another dtype, rank or extents, or without its data.
  // O(axes) beside the call.
  absl::StatusOr<std::vector<Tensor>> operator()(
      absl::Span<const Tensor> inputs) const;

 private:
  // An extent is a number, or a variable by its number; or else it is looked up
  // in the type.
  static constexpr int kNumber = -1;
  static constexpr int kExpression = -2;
  struct Extent {
    int64_t number = 0;
    int variable = kNumber;
  };
  struct Output {
    std::string name;
    TensorType type;
    std::vector<Extent> extents;
  };
  // Where an input has the variable as an extent; input -1 if none has.
  struct Variable {
    std::string name;
    int input = -1;
    int axis = 0;
  };
  using Numbers = absl::InlinedVector<int64_t, 8>;  // -1: not known

  int VariableNumber(const std::string& name);
  absl::Status ReadVariables(absl::Span<const Tensor> inputs,
                             Numbers* numbers) const;
  // The values of the variables that are known.
  DimValues ValuesOf(const Numbers& numbers) const;
  absl::Status CheckOutput(const Output& output, const Tensor& tensor,
                           Numbers* numbers) const;
  absl::Status Wrong(const Output& output, const Tensor& tensor,
                     const Numbers& numbers) const;

  Half half_ = Half::kInference;
  CompiledGraph compiled_;
  std::vector<TensorType> inputs_;
  std::vector<Output> outputs_;
  std::vector<Variable> variables_;
  // Whether a variable stands in no input alone: equations are solved then.
  bool solve_ = false;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_CHECKED_GRAPH_H_
