// compile: a declared function as a static library with a C header.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/c_library/ahead_of_time.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/status_macros.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"

namespace cleave {
namespace {

struct CompileFlags {
  std::vector<std::string> paths;
  std::string function;
  std::string name;
  std::string folder;
  TransformFlags transforms;
  bool approx = false;
  std::vector<std::string> levels;
};

absl::Status CompileFunction(const CompileFlags& flags, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(Graph graph, DeclaredFunction(rules, flags.function));
  CLEAVE_ASSIGN_OR_RETURN(graph,
                          ApplyTransforms(graph, rules, flags.transforms));
  InPrimitivesOptions in_primitives;
  in_primitives.simplify.approx = flags.approx;
  CLEAVE_ASSIGN_OR_RETURN(graph, InPrimitives(graph, rules, in_primitives));
  AheadOfTimeOptions options;
  options.name = flags.name.empty() ? flags.function : flags.name;
  for (const std::string& level : flags.levels) {
    CLEAVE_ASSIGN_OR_RETURN(options.levels.emplace_back(),
                            ParseTargetLevel(level));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<NamedFile> files,
                          CompileAheadOfTime(graph, rules, options));
  CLEAVE_RETURN_IF_ERROR(WriteFiles(files, flags.folder));
  for (const NamedFile& file : files) {
    std::cout << flags.folder << "/" << file.name << "\n";
  }
  return absl::OkStatus();
}

int RunCompile(const CompileFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  const absl::Status status = CompileFunction(flags, *loaded->rules);
  return status.ok() ? kExitOk : Complain(status);
}

}  // namespace

void AddCompile(CommandLine& line) {
  Verb verb = line.AddVerb("compile",
                           "Make a function a static library with a C header.");
  auto flags = std::make_shared<CompileFlags>();
  verb.Add("FILE", flags->paths, "Rule files beside the shipped ones");
  verb.Add("--fn", flags->function, "The declared function").Required();
  verb.Add("-o", flags->folder,
           "The folder to write to; made if it is not there")
      .Required();
  verb.Add("--name", flags->name,
           "The function's name in C; its own unless given");
  AddTransformFlags(verb, flags->transforms);
  AddApproxFlag(verb, flags->approx);
  verb.Add("--level", flags->levels,
           "Vector instructions to make code for, of which the library "
           "takes what its CPU has; all unless given")
      .CommaSeparated()
      .OneOf({"sse4.1", "avx2", "avx512"});
  verb.Runs([flags] { return RunCompile(*flags); });
}

}  // namespace cleave
