#include "transforms/aot/graph_compiler.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/aot/dump.h"

namespace cleave::aot {
namespace {

// In primitives and calls of what the host computes.
absl::StatusOr<Graph> ExpandForHost(const Graph& graph, const RuleSet& rules,
                                    const HostKernels& host_kernels) {
  ExpandOptions options;
  options.preserve = host_kernels.Ops();
  return Expand(graph, rules, options);
}

}  // namespace

absl::string_view HalfName(Half half) {
  switch (half) {
    case Half::kForward:
      return "forward";
    case Half::kBackward:
      return "backward";
    case Half::kInference:
      return "inference";
  }
  CLEAVE_CHECK(false) << "no such half";
}

GraphCompiler NopCompiler(std::shared_ptr<const RuleSet> rules,
                          HostKernels host_kernels) {
  return [rules = std::move(rules), host_kernels = std::move(host_kernels)](
             const Graph& graph,
             const ExampleInputs&) -> absl::StatusOr<CompiledGraph> {
    return CompiledGraph(
        [rules, host_kernels, graph](absl::Span<const Tensor> inputs)
            -> absl::StatusOr<std::vector<Tensor>> {
          CLEAVE_ASSIGN_OR_RETURN(const Graph expanded,
                                  ExpandForHost(graph, *rules, host_kernels));
          return Interpret(expanded, inputs, {{}, host_kernels});
        });
  };
}

GraphCompiler InterpretCompiler(std::shared_ptr<const RuleSet> rules,
                                HostKernels host_kernels) {
  return [rules = std::move(rules), host_kernels = std::move(host_kernels)](
             const Graph& graph,
             const ExampleInputs&) -> absl::StatusOr<CompiledGraph> {
    CLEAVE_ASSIGN_OR_RETURN(Graph expanded,
                            ExpandForHost(graph, *rules, host_kernels));
    InterpretOptions options;
    options.host_kernels = host_kernels;
    return CompiledGraph([expanded = std::move(expanded),
                          options](absl::Span<const Tensor> inputs) {
      return Interpret(expanded, inputs, options);
    });
  };
}

GraphCompiler HalideCompiler(std::shared_ptr<const RuleSet> rules,
                             const HalideCompilerOptions& options) {
  return [rules = std::move(rules), options](
             const Graph& graph,
             const ExampleInputs&) -> absl::StatusOr<CompiledGraph> {
    InPrimitivesOptions in_primitives;
    in_primitives.expand.preserve = options.compile.host_kernels.Ops();
    CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                            InPrimitives(graph, *rules, in_primitives));
    CLEAVE_ASSIGN_OR_RETURN(Kernel kernel,
                            Compile(primitives, *rules, options.compile));
    // std::function wants what it holds to be copyable.
    auto shared = std::make_shared<const Kernel>(std::move(kernel));
    return CompiledGraph(
        [shared, report = options.report](absl::Span<const Tensor> inputs) {
          RunOptions run;
          run.report = report.get();
          return shared->Run(inputs, run);
        });
  };
}

GraphCompiler PrintCompiler(std::ostream* out, GraphCompiler next) {
  return [out, next = std::move(next)](const Graph& graph,
                                       const ExampleInputs& examples) {
    *out << "// " << HalfName(examples.half) << "\n" << PrintGraph(graph);
    return next(graph, examples);
  };
}

GraphCompiler DumpCompiler(const std::string& folder, GraphCompiler next,
                           bool picture) {
  auto written = std::make_shared<std::map<Half, int>>();
  return [folder, picture, written, next = std::move(next)](
             const Graph& graph,
             const ExampleInputs& examples) -> absl::StatusOr<CompiledGraph> {
    CLEAVE_RETURN_IF_ERROR(MakeFolder(folder));
    DotOptions options;
    options.title = std::string(HalfName(examples.half));
    const int earlier = (*written)[examples.half]++;
    if (earlier > 0) absl::StrAppend(&options.title, ".", earlier);
    CLEAVE_RETURN_IF_ERROR(DumpGraph(
        graph, options, absl::StrCat(folder, "/", options.title), picture));
    return next(graph, examples);
  };
}

}  // namespace cleave::aot
