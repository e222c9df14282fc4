// conformance: the rules against golden data of other frameworks.

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "testing/conformance/conformance.h"
#include "tools/command/backend.h"
#include "tools/command/command.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

struct ConformanceFlags {
  std::vector<std::string> folders;
  std::vector<std::string> rules;
  std::vector<std::string> sections;
  std::string ops = "*";
  std::string dtype;
  std::string round_inputs;
  BackendFlags backend;
  std::string json;
  std::string dump;
};

constexpr const char* kSections[] = {"outputs", "jvp",  "jvp_jvp", "vjp",
                                     "jvp_vjp", "vmap", "vmap_jvp"};

int Conformance(const ConformanceFlags& flags) {
  ConformanceOptions options;
  options.ops = flags.ops;
  options.sections.insert(flags.sections.begin(), flags.sections.end());
  options.dump_folder = flags.dump;
  if (!flags.dtype.empty()) options.dtype = *ParseDType(flags.dtype);
  if (!flags.round_inputs.empty()) {
    options.round_inputs = *ParseDType(flags.round_inputs);
  }
  options.progress = [](const std::string& op, int done, int total) {
    ShowProgress(absl::StrCat("[", done, "/", total, "] ", op));
  };
  if (!flags.dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(flags.dump, error);
    if (error) {
      return Complain(
          absl::StrCat("cannot make ", flags.dump, ": ", error.message()));
    }
  }
  const auto loaded = LoadRulePaths(flags.rules);
  if (!loaded) return kExitUsage;
  if (loaded->rules->Names(ItemKind::kAten).empty() &&
      loaded->rules->Names(ItemKind::kOnnx).empty()) {
    return Complain(
        "no operator of a host is declared: every case would be unsupported");
  }
  if (flags.backend.backend != "interpreter") {
    options.evaluate = [&](const Graph& graph,
                           absl::Span<const Tensor> inputs) {
      return RunOnBackend(graph, inputs, *loaded->rules, flags.backend,
                          /*generalize_extents=*/true);
    };
  }
  const auto report = RunConformance(flags.folders, *loaded->rules,
                                     KnownHostDefects(), options);
  if (!report.ok()) return Complain(report.status());
  ShowProgress("");
  for (const ConformanceFailure& failure : report->failures) {
    std::cerr << failure.op << " " << failure.id << " " << failure.section
              << ": " << failure.message << "\n";
  }
  for (const std::string& left_out : report->left_out) {
    std::cerr << "left out: " << left_out << "\n";
  }
  for (const std::string& section : report->as_interpreter) {
    std::cerr << "passed (the interpreter in this dtype is as far off): "
              << section << "\n";
  }
  if (report->host_defects > 0) {
    std::cerr << report->host_defects
              << " passed as known defects of their host\n";
  }
  if (const std::string summary = CompileSummary(); !summary.empty()) {
    std::cerr << summary << "\n";
  }
  if (!flags.json.empty()) {
    const absl::Status written =
        WriteFileAtomically(flags.json, ConformanceJson(*report));
    if (!written.ok()) return Complain(written);
  }
  std::cout << ConformanceLine(*report) << "\n";
  return report->totals.failed == 0 ? kExitOk : kExitVerdict;
}

}  // namespace

void AddConformance(CommandLine& line) {
  Verb verb = line.AddVerb(
      "conformance", "Compare the rules with golden data of other frameworks.");
  auto flags = std::make_shared<ConformanceFlags>();
  verb.Add("FOLDER", flags->folders, "Suites of cases").Required();
  verb.Add("--rules", flags->rules, "Rule files beside the shipped ones");
  verb.Add("--sections", flags->sections, "Only these sections")
      .CommaSeparated()
      .OneOf(
          std::vector<std::string>(std::begin(kSections), std::end(kSections)));
  verb.Add("--ops", flags->ops, "Only ops that this glob matches");
  Option dtype = verb.Add("--dtype", flags->dtype,
                          "Run f64 cases in this dtype, against the f64 "
                          "interpreter on the rounded inputs")
                     .OneOf({"f32", "bf16", "f16"});
  verb.Add("--round-inputs", flags->round_inputs,
           "Run in f64 on inputs rounded to this dtype")
      .OneOf({"f32", "bf16", "f16"})
      .Excludes(dtype);
  AddBackendFlags(verb, flags->backend);
  verb.Add("--json", flags->json, "Write the report to this file");
  verb.Add("--dump", flags->dump, "Write what was computed to this folder");
  verb.Runs([flags] { return Conformance(*flags); });
}

}  // namespace cleave
