// aot, replay: a declared function differentiated and partitioned ahead of
// time, and the log of that run again.

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/substitute.h"
#include "engine/rules/rule_set.h"
#include "ops/status_macros.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"
#include "transforms/aot/dump.h"
#include "transforms/aot/partitioned_function.h"
#include "transforms/aot/replay.h"
#include "transforms/aot/saved_tensors.h"
#include "transforms/partition/memory_pareto.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/save_policy.h"

namespace cleave {
namespace {

struct AotFlags {
  std::vector<std::string> paths;
  std::string function;
  std::vector<std::string> with_respect_to;
  std::string partition = "default";
  double budget = 1;
  std::string policy;
  std::vector<std::string> names;
  std::string pareto;
  bool dynamic = false;
  std::vector<std::string> sizes;
  std::vector<std::string> decompose;
  std::vector<std::string> preserve;
  bool expand = false;
  int params = 0;
  bool print = false;
  std::string folder;
  std::string log;
};

// `n=8`, for each variable of the function's extents.
absl::StatusOr<Graph> WithSizes(const Graph& graph, const AotFlags& flags) {
  std::set<std::string> variables;
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& extent : graph.type(input.value).shape) {
      variables.merge(extent.Variables());
    }
  }
  DimSubstitution values;
  for (const std::string& size : flags.sizes) {
    const std::vector<std::string> parts = absl::StrSplit(size, '=');
    int64_t value = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value) || value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--size ", size, ": expected NAME=EXTENT"));
    }
    if (variables.count(parts[0]) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--size ", size, ": no input has the extent ", parts[0]));
    }
    values.insert_or_assign(parts[0], Dim(value));
  }
  for (const std::string& variable : variables) {
    if (values.count(variable) == 0 && !flags.dynamic) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the extent ", variable, " has no number: give it one by --size ",
          variable, "=N, or keep it symbolic by --dynamic"));
    }
  }
  return SubstituteDims(graph, values);
}

// Null: the costs alone decide.
absl::StatusOr<aot::SavePolicy> PolicyOf(const AotFlags& flags,
                                         const RuleSet& rules) {
  if (!flags.names.empty()) return aot::SaveOnlyTheseNames(flags.names);
  if (flags.policy.empty()) return aot::SavePolicy();
  return aot::NamedPolicy(flags.policy, rules);
}

absl::Status PrintAot(const AotFlags& flags,
                      std::shared_ptr<const RuleSet> rules) {
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          DeclaredFunction(*rules, flags.function));
  CLEAVE_ASSIGN_OR_RETURN(graph, WithSizes(graph, flags));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> active,
                          ActiveInputs(graph, flags.with_respect_to));
  if (std::find(active.begin(), active.end(), true) == active.end()) {
    return absl::InvalidArgumentError("the function has no inexact input");
  }
  aot::AotOptions options;
  CLEAVE_ASSIGN_OR_RETURN(
      options.decompositions,
      aot::NamedDecompositions(flags.decompose, flags.preserve, *rules));
  options.expand = flags.expand;
  options.num_params_buffers = flags.params;
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<aot::TraceRules> trace_rules,
                          aot::MakeTraceRules(options, rules));
  std::vector<aot::ParetoPoint> points;
  if (flags.partition == "min-cut") {
    const RuleSet& used = *trace_rules->decompositions.rules;
    aot::MinCutOptions min_cut;
    min_cut.activation_memory_budget = flags.budget;
    CLEAVE_ASSIGN_OR_RETURN(min_cut.policy, PolicyOf(flags, used));
    options.partition_fn =
        [&points, &flags, &used, min_cut](
            const aot::JointGraph& joint) -> absl::StatusOr<aot::Partition> {
      if (!flags.pareto.empty()) {
        CLEAVE_ASSIGN_OR_RETURN(points,
                                aot::MemoryPareto(joint, used, min_cut));
      }
      return aot::MinCutRematerializationPartition(joint, used, min_cut);
    };
  } else if (flags.budget != 1 || !flags.policy.empty() ||
             !flags.names.empty() || !flags.pareto.empty()) {
    return absl::InvalidArgumentError(
        "--budget, --policy, --names and --pareto are for --partition min-cut");
  }
  aot::AotLog log;
  aot::AotTrace& trace = log.traces.emplace_back();
  trace.why = "first call";
  trace.phases.push_back(
      {"trace", PrintGraph(graph), graph.size(), /*milliseconds=*/0});
  CLEAVE_ASSIGN_OR_RETURN(const aot::PartitionedFunction function,
                          aot::PartitionFunctionGraph(graph, active, options,
                                                      *trace_rules, &trace));
  if (flags.print) {
    std::cout << "// traced\n"
              << PrintGraph(graph) << "\n// joint\n"
              << PrintGraph(function.joint.graph) << "\n";
  }
  const aot::Partition& partition = function.partition;
  std::cout << "// forward\n"
            << PrintGraph(partition.forward) << "\n// backward\n"
            << PrintGraph(partition.backward) << "\n";
  CLEAVE_ASSIGN_OR_RETURN(const std::string saved,
                          aot::PrintSavedTensors(partition));
  std::cout << saved;
  if (!flags.folder.empty()) {
    CLEAVE_RETURN_IF_ERROR(
        aot::DumpPartition(partition, flags.function, flags.folder));
  }
  if (!flags.pareto.empty()) {
    CLEAVE_RETURN_IF_ERROR(WriteFileAtomically(
        flags.pareto, aot::ParetoSvg(points, flags.function)));
  }
  if (!flags.log.empty()) {
    CLEAVE_RETURN_IF_ERROR(WriteFileAtomically(flags.log, log.ToJson()));
  }
  return absl::OkStatus();
}

int RunAot(const AotFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  const absl::Status status = PrintAot(flags, loaded->rules);
  return status.ok() ? kExitOk : Complain(status);
}

struct ReplayFlags {
  std::string log;
  std::vector<std::string> paths;
};

int RunReplay(const ReplayFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  const absl::StatusOr<std::string> text = ReadFile(flags.log);
  if (!text.ok()) return Complain(text.status());
  const absl::StatusOr<aot::AotLog> log = aot::AotLog::FromJson(*text);
  if (!log.ok()) {
    return Complain(absl::StrCat(flags.log, ": ", log.status().message()));
  }
  const absl::StatusOr<aot::ReplayReport> report =
      aot::Replay(*log, loaded->rules);
  if (!report.ok()) return Complain(report.status());
  std::cout << report->ToString();
  return report->same ? kExitOk : kExitVerdict;
}

}  // namespace

void AddAot(CommandLine& line) {
  Verb verb = line.AddVerb(
      "aot", "Print a function's forward and backward graph, partitioned.");
  auto flags = std::make_shared<AotFlags>();
  verb.Add("FILE", flags->paths, "Rule files beside the shipped ones");
  verb.Add("--fn", flags->function, "The declared function").Required();
  verb.Add("--wrt", flags->with_respect_to,
           "Inputs whose cotangents are asked for; all unless given")
      .CommaSeparated();
  verb.Add("--partition", flags->partition, "How the joint graph is cut")
      .OneOf({"default", "min-cut"})
      .ShowDefault();
  verb.Add("--budget", flags->budget,
           "Of min-cut: the share of the activations' memory that may "
           "be saved; 0 saves inputs alone")
      .Between(0, 1)
      .ShowDefault();
  Option policy = verb.Add("--policy", flags->policy,
                           "Of min-cut: what is saved, whatever it costs")
                      .OneOf({"everything", "nothing", "dots"});
  verb.Add("--names", flags->names,
           "Of min-cut: only the values that checkpoint_name gives "
           "these names are saved")
      .CommaSeparated()
      .Excludes(policy);
  verb.Add("--pareto", flags->pareto,
           "Of min-cut: an SVG file for the memory of each budget and "
           "what is computed again at it");
  verb.Add("--params", flags->params,
           "Leading inputs that are parameters: saving them is free")
      .ShowDefault();
  verb.AddFlag("--dynamic", flags->dynamic, "Extents may stay symbolic");
  verb.Add("--size", flags->sizes, "NAME=EXTENT of symbolic extents")
      .CommaSeparated();
  verb.Add("--decompose", flags->decompose,
           "Ops that are decomposed; `core-aten` for all of PyTorch's "
           "that are not Core ATen")
      .CommaSeparated();
  verb.Add("--preserve", flags->preserve, "Ops that are not decomposed")
      .CommaSeparated();
  verb.AddFlag("--expand", flags->expand, "Decompose all, to primitives");
  verb.AddFlag("--print", flags->print,
               "Print the traced and the joint graph, too");
  verb.Add("--dot", flags->folder,
           "A folder for the graphs as text, JSON, DOT and SVG");
  verb.Add("--log", flags->log,
           "A file for the log that `cleave replay` reads");
  verb.Runs([flags] { return RunAot(*flags); });
}

void AddReplay(CommandLine& line) {
  Verb verb = line.AddVerb("replay",
                           "Run the phases of an aot log again, and compare.");
  auto flags = std::make_shared<ReplayFlags>();
  verb.Add("LOG", flags->log, "Written by `aot --log`").Required();
  verb.Add("FILE", flags->paths, "Rule files beside the shipped ones");
  verb.Runs([flags] { return RunReplay(*flags); });
}

}  // namespace cleave
