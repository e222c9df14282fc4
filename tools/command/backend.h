// The backends that run a graph: the interpreter, or kernels.

#ifndef CLEAVE_TOOLS_COMMAND_BACKEND_H_
#define CLEAVE_TOOLS_COMMAND_BACKEND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"
#include "tools/command/command_line.h"

namespace cleave {

struct BackendFlags {
  std::string backend = "interpreter";
  std::string level;  // of the CPU's vector instructions; empty: the host's
  std::string schedule = "pattern";
};

// --backend, --level and --schedule.
void AddBackendFlags(Verb& verb, BackendFlags& flags);

absl::StatusOr<CompileOptions> CompileOptionsOf(const BackendFlags& flags);

// Runs a graph on tensors; the report is filled by kernels, if given.
using GraphRunner = std::function<absl::StatusOr<std::vector<Tensor>>(
    absl::Span<const Tensor> inputs, RunReport* report)>;

// Prepares a graph of primitives, which must outlive the runner. Errors of
// Compile: nothing is wrong with tensors.
absl::StatusOr<GraphRunner> PrepareOnBackend(const Graph& graph,
                                             const RuleSet& rules,
                                             const BackendFlags& flags,
                                             bool generalize_extents);

// Prepares a graph and runs it.
absl::StatusOr<std::vector<Tensor>> RunOnBackend(
    const Graph& graph, absl::Span<const Tensor> inputs, const RuleSet& rules,
    const BackendFlags& flags, bool generalize_extents);

// How long the kernels of this process took to compile: "12 kernels compiled,
// 170 ms at the median, 800 ms at most". Empty if none was.
std::string CompileSummary();

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_BACKEND_H_
