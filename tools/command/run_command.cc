// run: a declared function on tensors of a file.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/runtime/safetensors.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"
#include "tools/command/backend.h"
#include "tools/command/command.h"
#include "tools/command/function_inputs.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"

namespace cleave {
namespace {

struct RunFlags {
  std::vector<std::string> paths;
  std::string function;
  std::string input;
  std::string output;
  TransformFlags transforms;
  bool approx = false;
  BackendFlags backend;
  bool report = false;
};

absl::Status RunFunction(const RunFlags& options, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          DeclaredFunction(rules, options.function));
  CLEAVE_ASSIGN_OR_RETURN(const FunctionInputs inputs,
                          FunctionInputs::Read(options.input, /*values=*/{}));
  TransformFlags transforms = options.transforms;
  if (transforms.jvp && transforms.with_respect_to.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(transforms.with_respect_to,
                            inputs.WithTangents(graph));
  }
  CLEAVE_ASSIGN_OR_RETURN(graph, ApplyTransforms(graph, rules, transforms));
  InPrimitivesOptions in_primitives;
  in_primitives.simplify.approx = options.approx;
  CLEAVE_ASSIGN_OR_RETURN(graph, InPrimitives(graph, rules, in_primitives));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors,
                          inputs.Of(graph, options.function));
  if (options.report && options.backend.backend == "interpreter") {
    return absl::InvalidArgumentError(
        "--report: the interpreter runs no kernels; give --backend cpu");
  }
  CLEAVE_ASSIGN_OR_RETURN(const GraphRunner run,
                          PrepareOnBackend(graph, rules, options.backend,
                                           /*generalize_extents=*/false));
  RunReport report;
  const absl::StatusOr<std::vector<Tensor>> results = run(tensors, &report);
  if (!results.ok()) {
    // The mistake may be the tensors or, at them, the rule, which is named.
    return absl::Status(
        results.status().code(),
        absl::StrCat(options.input, ": ", results.status().message()));
  }
  TensorMap outputs;
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor& result = (*results)[i];
    outputs.emplace(graph.outputs()[i].name,
                    result.dtype() == DType::kKey
                        ? WithDType(result, DType::kU64)
                        : result);
  }
  CLEAVE_RETURN_IF_ERROR(WriteSafetensors(options.output, outputs));
  for (const auto& [name, tensor] : outputs) {
    std::cout << name << ": " << tensor.type().ToString() << "\n";
  }
  if (options.report) std::cout << report.ToString();
  return absl::OkStatus();
}

int Run(const RunFlags& options) {
  const auto loaded = LoadRulePaths(options.paths);
  if (!loaded) return kExitUsage;
  const absl::Status status = RunFunction(options, *loaded->rules);
  return status.ok() ? kExitOk : Complain(status);
}

}  // namespace

void AddRun(CommandLine& line) {
  Verb verb = line.AddVerb("run", "Run a function on the tensors of a file.");
  auto options = std::make_shared<RunFlags>();
  verb.Add("FILE", options->paths, "Rule files beside the shipped ones");
  verb.Add("--fn", options->function, "The declared function").Required();
  verb.Add("--input", options->input,
           "A safetensors file with a tensor for each input (U64 for "
           "a key)")
      .Required();
  verb.Add("--output", options->output, "The safetensors file to write")
      .Required();
  AddTransformFlags(verb, options->transforms);
  AddApproxFlag(verb, options->approx);
  AddBackendFlags(verb, options->backend);
  verb.AddFlag("--report", options->report, "Print what ran, and how long");
  verb.Runs([options] { return Run(*options); });
}

}  // namespace cleave
