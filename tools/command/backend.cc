#include "tools/command/backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/codegen/device.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/kernel_cache.h"
#include "ops/status_macros.h"

namespace cleave {

void AddBackendFlags(Verb& verb, BackendFlags& flags) {
  verb.Add("--backend", flags.backend, "What evaluates")
      .OneOf({"interpreter", "cpu", "opencl", "cuda"})
      .ShowDefault();
  verb.Add("--level", flags.level,
           "Vector instructions of kernels; the most that the host has "
           "unless given")
      .OneOf({"sse4.1", "avx2", "avx512"});
  verb.Add("--schedule", flags.schedule,
           "Loops of kernels: by their pattern, or plain ones to check "
           "those")
      .OneOf({"pattern", "plain"})
      .ShowDefault();
}

absl::StatusOr<CompileOptions> CompileOptionsOf(const BackendFlags& flags) {
  CompileOptions options;
  if (!flags.level.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(options.level, ParseTargetLevel(flags.level));
  }
  options.plain_schedule = flags.schedule == "plain";
  CLEAVE_ASSIGN_OR_RETURN(options.device, ParseDevice(flags.backend));
  if (options.plain_schedule && options.device != Device::kCpu) {
    return absl::InvalidArgumentError(
        "--schedule plain is for the CPU: devices have one schedule");
  }
  return options;
}

std::string CompileSummary() {
  std::vector<double> times = DefaultKernelCache().stats().compile_milliseconds;
  if (times.empty()) return "";
  std::sort(times.begin(), times.end());
  return absl::StrFormat(
      "%d kernels compiled, %.0f ms at the median, %.0f ms at the 99th "
      "percentile, %.0f ms at most",
      times.size(), times[times.size() / 2], times[times.size() * 99 / 100],
      times.back());
}

absl::StatusOr<GraphRunner> PrepareOnBackend(const Graph& graph,
                                             const RuleSet& rules,
                                             const BackendFlags& flags,
                                             bool generalize_extents) {
  if (flags.backend == "interpreter") {
    return GraphRunner([&graph](absl::Span<const Tensor> inputs, RunReport*) {
      return Interpret(graph, inputs);
    });
  }
  CLEAVE_ASSIGN_OR_RETURN(CompileOptions compile, CompileOptionsOf(flags));
  compile.generalize_extents = generalize_extents;
  CLEAVE_ASSIGN_OR_RETURN(Kernel made, Compile(graph, rules, compile));
  const auto kernel = std::make_shared<const Kernel>(std::move(made));
  return GraphRunner(
      [kernel](absl::Span<const Tensor> inputs, RunReport* report) {
        RunOptions run;
        run.report = report;
        return kernel->Run(inputs, run);
      });
}

absl::StatusOr<std::vector<Tensor>> RunOnBackend(
    const Graph& graph, absl::Span<const Tensor> inputs, const RuleSet& rules,
    const BackendFlags& flags, bool generalize_extents) {
  CLEAVE_ASSIGN_OR_RETURN(
      const GraphRunner run,
      PrepareOnBackend(graph, rules, flags, generalize_extents));
  return run(inputs, nullptr);
}

}  // namespace cleave
