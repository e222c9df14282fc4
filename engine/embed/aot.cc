// Ahead of time: a function and its reverse mode as two graphs.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/embed/handles.h"
#include "engine/embed/json_text.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "transforms/aot/decompositions.h"
#include "transforms/aot/partitioned_function.h"
#include "transforms/aot/saved_tensors.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/save_policy.h"

namespace cleave::embed {
namespace {

using aot::Decompositions;

absl::StatusOr<Decompositions> ReadDecompositions(
    const cleave_aot_options& given, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::string> ops,
      ReadTexts(given.decompose, given.decompose_count, "decompose"));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::string> preserve,
      ReadTexts(given.preserve, given.preserve_count, "preserve"));
  return aot::NamedDecompositions(ops, preserve, rules);
}

absl::StatusOr<aot::SavePolicy> ReadPolicy(const cleave_aot_options& given,
                                           const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<std::string> names,
                          ReadTexts(given.names, given.name_count, "names"));
  const std::string policy = given.policy == nullptr ? "" : given.policy;
  if (!names.empty()) {
    if (!policy.empty()) {
      return absl::InvalidArgumentError("`names` and `policy` are both given");
    }
    return aot::SaveOnlyTheseNames(std::move(names));
  }
  if (policy.empty()) return aot::SavePolicy();
  return aot::NamedPolicy(policy, rules);
}

absl::Status SetPartition(const cleave_aot_options& given, const RuleSet& rules,
                          aot::AotOptions* options) {
  const std::string name =
      given.partition == nullptr ? "default" : given.partition;
  if (name == "default") {
    if (given.policy != nullptr || given.name_count > 0 || given.budget != 0) {
      return absl::InvalidArgumentError(
          "`budget`, `policy` and `names` are of the partition min-cut");
    }
    return absl::OkStatus();
  }
  if (name != "min-cut") {
    return absl::InvalidArgumentError(
        absl::StrCat("`", name, "` is no partition: default or min-cut is"));
  }
  if (!(given.budget >= 0 && given.budget <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the budget ", given.budget, " is not in [0, 1]"));
  }
  aot::MinCutOptions min_cut;
  min_cut.activation_memory_budget = given.budget;
  CLEAVE_ASSIGN_OR_RETURN(min_cut.policy, ReadPolicy(given, rules));
  options->partition_fn = [min_cut, &rules](const aot::JointGraph& joint) {
    return aot::MinCutRematerializationPartition(joint, rules, min_cut);
  };
  return absl::OkStatus();
}

absl::StatusOr<std::string> InfoJson(const aot::PartitionedFunction& function) {
  nlohmann::ordered_json json = {{"saved", function.partition.saved},
                                 {"offloaded", function.partition.offloaded},
                                 {"depends", function.joint.depends},
                                 {"table", ""}};
  if (function.differentiated) {
    CLEAVE_ASSIGN_OR_RETURN(const std::string table,
                            aot::PrintSavedTensors(function.partition));
    json["table"] = table;
  }
  return DumpJson(json);
}

}  // namespace
}  // namespace cleave::embed

using cleave::embed::CheckGiven;
using cleave::embed::NewGraph;

cleave_status* cleave_aot(const cleave_graph* graph, const uint8_t* active,
                          size_t count, const cleave_aot_options* aot,
                          const cleave_call_options* options,
                          cleave_graph** forward, cleave_graph** backward,
                          cleave_graph** joint, cleave_text** info) {
  return cleave::embed::Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope,
                            cleave::embed::CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<bool> flags,
        cleave::embed::ReadFlags(*graph, active, count, "active"));
    bool any = false;
    for (const bool flag : flags) any |= flag;
    if (!any) {
      return absl::InvalidArgumentError(
          "no input is active: nothing is to be "
          "differentiated");
    }
    CLEAVE_ASSIGN_OR_RETURN(const cleave_aot_options given,
                            cleave::embed::ReadStruct(aot, "aot"));
    cleave::aot::AotOptions read;
    CLEAVE_ASSIGN_OR_RETURN(
        read.decompositions,
        cleave::embed::ReadDecompositions(given, *graph->rules));
    read.expand = given.expand != 0;
    read.num_params_buffers = given.parameters;
    if (given.parameters < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", given.parameters, " parameters"));
    }
    CLEAVE_ASSIGN_OR_RETURN(const auto trace_rules,
                            cleave::aot::MakeTraceRules(read, graph->rules));
    CLEAVE_RETURN_IF_ERROR(cleave::embed::SetPartition(
        given, *trace_rules->decompositions.rules, &read));
    CLEAVE_ASSIGN_OR_RETURN(
        cleave::aot::PartitionedFunction function,
        cleave::aot::PartitionFunctionGraph(graph->graph, flags, read,
                                            *trace_rules, /*log=*/nullptr));
    CLEAVE_ASSIGN_OR_RETURN(std::string json,
                            cleave::embed::InfoJson(function));
    // Ops that are replaced have rules of their own.
    const auto& rules = trace_rules->decompositions.rules;
    std::unique_ptr<cleave_graph> halves[] = {
        std::unique_ptr<cleave_graph>(
            NewGraph(std::move(function.partition.forward), rules)),
        std::unique_ptr<cleave_graph>(
            NewGraph(std::move(function.partition.backward), rules)),
        std::unique_ptr<cleave_graph>(
            NewGraph(std::move(function.joint.graph), rules))};
    if (info != nullptr) *info = cleave::embed::NewText(std::move(json));
    if (forward != nullptr) *forward = halves[0].release();
    if (backward != nullptr) *backward = halves[1].release();
    if (joint != nullptr) *joint = halves[2].release();
    return absl::OkStatus();
  });
}
