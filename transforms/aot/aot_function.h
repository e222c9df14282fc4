// AotFunction: a function on tensors, compiled ahead of time together with its
// reverse mode. functorch's `aot_function`, for C++.
//
//   AotFunction f = *AotFunction::Make(
//       [](Tensor x) { return Cos(Sin(x)); }, HalideCompiler(rules), rules);
//   AotResult y = *f(x);                         // the forward kernel
//   Tree dx = y.backward(dy)->outputs;           // the backward kernel
//
// The first call traces the function, differentiates and partitions the graph,
// and compiles its halves; later calls run them. A call does what the function
// does eagerly: inputs are written, outputs are views of inputs and of each
// other (traced_program.h); no session is needed. A call for other structures,
// dtypes, extents or another pattern of shared storages is traced anew, and
// kept beside the earlier ones: AotOptions::max_specializations of them, the
// most recently used. A call that is refused leaves nothing behind.
//
// `dynamic`: extents other than 1 are traced as symbols, equal ones as one
// symbol, but for those of parameters and buffers. One compilation then serves
// all calls that match its types and guards; log() says why another was made,
// if AotOptions asks for it.
//
// A backward is itself such a function: its result has a backward, to any
// order. Under a trace, of this or another kind (TraceScope, another
// AotFunction), a call adds the function's nodes to that trace, and a backward
// those of its cotangents: so jvp, vjp and vmap of a function that calls an
// AotFunction are those of the function itself.
//
// Compilers see graphs in which `decompositions` were applied and all other
// composite ops are calls; with `expand` they see primitives.
//
// Not thread-safe, as tensors are not. Functions of several threads may share a
// rule set.

#ifndef CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_H_
#define CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "engine/rules/rule_set.h"
#include "transforms/aot/aot_log.h"
#include "transforms/aot/aot_options.h"
#include "transforms/aot/graph_compiler.h"
#include "transforms/aot/traced_program.h"

namespace cleave::aot {

struct AotResult;
class BackwardState;

// The reverse mode of one call. Copies share what the forward saved.
class AotBackward {
 public:
  AotBackward() = default;
  explicit AotBackward(std::shared_ptr<BackwardState> state);

  // Whether any input of the call needs a gradient.
  bool exists() const { return state_ != nullptr; }

  // `cotangents` has the structure of the results; a leaf that is Tensor()
  // stands for zeros, and for results of exact dtypes, which have no cotangent.
  // `updated`: cotangents of the values that leaves of the arguments had after
  // the call, by the leaf's number, where the function writes them. The result
  // has the structure of the arguments, with Tensor() where no gradient was
  // asked for. It may be called any number of times. InvalidArgument where
  // structures, dtypes or shapes do not fit; FailedPrecondition where there is
  // no backward.
  absl::StatusOr<AotResult> operator()(
      const Tree& cotangents,
      const std::map<int, functional::Tensor>& updated = {}) const;

 private:
  std::shared_ptr<BackwardState> state_;
};

struct AotResult {
  Tree outputs;
  AotBackward backward;
};

struct AotCallOptions {
  // Per leaf of the arguments: whether its gradient can be asked for. Unless
  // given, all leaves of inexact dtypes have one.
  std::optional<std::vector<bool>> requires_gradient;
  // No gradients: the inference compiler's graph runs.
  bool inference = false;
};

class AotFunction {
 public:
  // `fn` takes and returns tensors, or trees of them (tree.h).
  // FailedPrecondition and NotFound for decompositions that do not fit the
  // rules; InvalidArgument where a compiler is missing.
  template <typename Fn>
  static absl::StatusOr<AotFunction> Make(Fn fn, GraphCompiler fw_compiler,
                                          std::shared_ptr<const RuleSet> rules,
                                          AotOptions options = {}) {
    return MakeOfTrees(functional::ToTreeFunction(std::move(fn)),
                       std::move(fw_compiler), std::move(rules),
                       std::move(options));
  }
  static absl::StatusOr<AotFunction> MakeOfTrees(
      TreeFunction fn, GraphCompiler fw_compiler,
      std::shared_ptr<const RuleSet> rules, AotOptions options = {});

  // Calls it; several arguments are a tuple. The function's own mistakes;
  // errors of the transforms and of the compiled graphs, and of their results
  // (checked_graph.h); FailedPrecondition for a guard of the graph that the
  // call's extents break; InvalidArgument for gradients of inputs that share a
  // storage and are written. O(tensors + axes) beside what runs.
  absl::StatusOr<AotResult> Call(const Tree& arguments,
                                 const AotCallOptions& options = {}) const;
  template <typename... Arguments>
  absl::StatusOr<AotResult> operator()(const Arguments&... arguments) const {
    return Call(ArgumentTree(arguments...));
  }
  // Without gradients.
  template <typename... Arguments>
  absl::StatusOr<Tree> Inference(const Arguments&... arguments) const {
    AotCallOptions options;
    options.inference = true;
    CLEAVE_ASSIGN_OR_RETURN(AotResult result,
                            Call(ArgumentTree(arguments...), options));
    return std::move(result.outputs);
  }

  template <typename... Arguments>
  static Tree ArgumentTree(const Arguments&... arguments) {
    if constexpr (sizeof...(Arguments) == 1) {
      return functional::ToTree(arguments...);
    } else {
      return Tree::Tuple({functional::ToTree(arguments)...});
    }
  }

  // Each trace with its phases; empty without `enable_log`.
  const AotLog& log() const;
  // How often it was traced and compiled for a call that it serves.
  int64_t traces() const;
  // Traces that are kept: `max_specializations` at most.
  int64_t specializations() const;
  // Per trace that is kept: the types of its inputs and its guards, as `x0:
  // f32[s0, 3]`.
  std::string Guards() const;
  // The program of the last call: its graph, mutations and aliases.
  const TracedProgram* last_program() const;

  class Impl;

 private:
  explicit AotFunction(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// A struct of parameters (CLEAVE_TREE) with a function on it and the inputs:
// `fn(parameters, inputs..)`. Its leaves are the leading inputs, and
// num_params_buffers counts them: functorch's `aot_module`.
template <typename Parameters, typename Fn>
absl::StatusOr<AotFunction> AotModule(const Parameters& parameters, Fn fn,
                                      GraphCompiler fw_compiler,
                                      std::shared_ptr<const RuleSet> rules,
                                      AotOptions options = {}) {
  options.num_params_buffers = static_cast<int>(
      functional::Flatten(functional::ToTree(parameters)).size());
  return AotFunction::Make(std::move(fn), std::move(fw_compiler),
                           std::move(rules), std::move(options));
}

// The gradients of a function whose one result is a float scalar, in the leaves
// that need them, and its value: functorch's `grad_and_value`.
struct GradAndValue {
  Tree gradients;  // in the structure of the arguments
  functional::Tensor value;
};
absl::StatusOr<GradAndValue> ComputeGradAndValue(
    const AotFunction& fn, const Tree& arguments,
    const AotCallOptions& options = {});

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_H_
