// debug: the values of all nodes of a function beside exact ones.

#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"
#include "testing/debug/debug.h"
#include "testing/debug/meaning.h"
#include "tools/command/command.h"
#include "tools/command/function_inputs.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"

namespace cleave {
namespace {

struct DebugFlags {
  std::vector<std::string> paths;
  std::string function;
  std::string input;
  std::vector<std::string> values;
  TransformFlags transforms;
  double ulp = DebugOptions().ulp;
  double absolute = 0;
  std::string output;
  std::string element;
  bool json = false;
};

absl::StatusOr<std::vector<int64_t>> ParseElement(const std::string& text) {
  std::vector<int64_t> index;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    int64_t at = 0;
    if (!absl::SimpleAtoi(entry, &at) || at < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--element ", text, ": `", entry, "` is no index: give `2,0`"));
    }
    index.push_back(at);
  }
  return index;
}

absl::StatusOr<DebugReport> Debug(const DebugFlags& flags,
                                  const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph function,
                          DeclaredFunction(rules, flags.function));
  CLEAVE_ASSIGN_OR_RETURN(const FunctionInputs inputs,
                          FunctionInputs::Read(flags.input, flags.values));
  TransformFlags transforms = flags.transforms;
  if (transforms.jvp && transforms.with_respect_to.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(transforms.with_respect_to,
                            inputs.WithTangents(function));
  }
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          ApplyTransforms(function, rules, transforms));
  CLEAVE_ASSIGN_OR_RETURN(graph, InPrimitives(graph, rules));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors,
                          inputs.Of(graph, flags.function));
  DebugOptions options;
  options.ulp = flags.ulp;
  options.absolute = flags.absolute;
  options.output = flags.output;
  options.progress = [](absl::string_view line) { ShowProgress(line); };
  if (!flags.element.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(options.element, ParseElement(flags.element));
  }
  CLEAVE_ASSIGN_OR_RETURN(DebugReport report,
                          DebugGraph(graph, tensors, options));
  if (transforms.vmap.empty()) {
    CLEAVE_RETURN_IF_ERROR(
        CompareMeaning(function, graph, rules, tensors, options, report));
  }
  return report;
}

int Run(const DebugFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  const absl::StatusOr<DebugReport> report = Debug(flags, *loaded->rules);
  ShowProgress("");
  if (!report.ok()) return Complain(report.status());
  std::cout << (flags.json ? report->ToJson() + "\n" : report->ToString());
  return report->off() || report->differs ? kExitVerdict : kExitOk;
}

}  // namespace

void AddDebug(CommandLine& line) {
  Verb verb = line.AddVerb(
      "debug",
      "Print the values of a function's primitives beside exact ones, and the "
      "first that is off.");
  auto flags = std::make_shared<DebugFlags>();
  verb.Add("FILE", flags->paths, "Rule files beside the shipped ones");
  verb.Add("--fn", flags->function, "The declared function").Required();
  verb.Add("--input", flags->input,
           "A safetensors file with a tensor for each input (U64 for a key)");
  verb.Add("--at", flags->values,
           "Inputs that no file gives: `x=1e-4`, `x=[1, 0x1p-3, inf]`");
  AddTransformFlags(verb, flags->transforms);
  verb.Add("--ulp", flags->ulp,
           "An output is right within so many units in the last place")
      .Positive()
      .ShowDefault();
  verb.Add("--atol", flags->absolute,
           "And one within so much of its exact value, as of 0")
      .Between(0, std::numeric_limits<double>::max())
      .ShowDefault();
  verb.Add("--of", flags->output, "The output to explain (all)");
  verb.Add("--element", flags->element,
           "Its element: `2,0` (the one with the largest error)");
  verb.AddFlag("--json", flags->json, "Print JSON");
  verb.Runs([flags] { return Run(*flags); });
}

}  // namespace cleave
