// GraphCompiler: a function from a graph to a callable that runs it.
// AotFunction hands one the forward graph, one the backward graph, and one the
// graph of inference; they nest:
//
//   PrintCompiler(&std::cout, HalideCompiler(rules))
//
// Compilers are given graphs whose composite calls are still calls, unless
// AotOptions asks for primitives: the ones here expand them, but for the ops
// that the host computes (host_kernel.h).

#ifndef CLEAVE_TRANSFORMS_AOT_GRAPH_COMPILER_H_
#define CLEAVE_TRANSFORMS_AOT_GRAPH_COMPILER_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave::aot {

// Which graph of a function it is.
enum class Half : uint8_t { kForward, kBackward, kInference };
absl::string_view HalfName(Half half);  // "forward", "backward", "inference"

// The inputs that a graph is compiled for: types without data, like PyTorch's
// fake tensors.
struct ExampleInputs {
  // The type of each input, with the extents of the call that asks for the
  // compilation.
  std::vector<TensorType> types;
  Half half = Half::kInference;
};

// A compiled graph: one tensor per input, one per output. It may be called from
// one thread at a time, and may be kept as long as the host likes: it owns all
// that it needs.
using CompiledGraph = std::function<absl::StatusOr<std::vector<Tensor>>(
    absl::Span<const Tensor> inputs)>;

// Any callable from a graph and example inputs to a callable. The graph may
// have symbolic extents: then the result serves all of them.
using GraphCompiler = std::function<absl::StatusOr<CompiledGraph>(
    const Graph& graph, const ExampleInputs& examples)>;

// Does nothing beforehand: each call expands the graph and interprets it.
GraphCompiler NopCompiler(std::shared_ptr<const RuleSet> rules,
                          HostKernels host_kernels = {});

// The reference kernels, on the expanded graph.
GraphCompiler InterpretCompiler(std::shared_ptr<const RuleSet> rules,
                                HostKernels host_kernels = {});

// Fused kernels, and the host's (CompileOptions::host_kernels). With `report`,
// each run writes there what ran.
struct HalideCompilerOptions {
  CompileOptions compile;
  std::shared_ptr<RunReport> report;
};
GraphCompiler HalideCompiler(std::shared_ptr<const RuleSet> rules,
                             const HalideCompilerOptions& options = {});

// Prints `// forward` and the graph's text, and passes the graph on. `out` must
// outlive the compiler.
GraphCompiler PrintCompiler(std::ostream* out, GraphCompiler next);

// Writes a graph's files (DumpGraph, dump.h) into `folder`, which is made if it
// is not there, and passes the graph on. Their name is the half's; the second
// graph of that half is `forward.1`, and so on, of one compiler.
GraphCompiler DumpCompiler(const std::string& folder, GraphCompiler next,
                           bool picture = true);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_GRAPH_COMPILER_H_
