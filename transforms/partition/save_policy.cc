#include "transforms/partition/save_policy.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transforms/partition/recompute_cost.h"

namespace cleave::aot {
namespace {

constexpr absl::string_view kCheckpointName = "checkpoint_name";

using Names = absl::flat_hash_set<std::string>;

Names ToSet(std::vector<std::string> names) {
  return Names(names.begin(), names.end());
}

// Whether a node costs nothing to compute again. Saving its value would save a
// copy.
bool IsFree(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  return IsPrimitive(op) &&
         RecomputeClassOf(ToPrimitive(op)) <= RecomputeClass::kView;
}

}  // namespace

absl::string_view CheckpointName(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  if (IsPrimitive(op) || graph.context()->op_name(op) != kCheckpointName) {
    return {};
  }
  return graph.attributes(v).Get("name").AsString();
}

SavePolicy EverythingSaveable() {
  return [](const Graph& graph, Value v) {
    return IsFree(graph, v) ? SaveDecision::kNone : SaveDecision::kMustSave;
  };
}

SavePolicy NothingSaveable() {
  return [](const Graph&, Value) { return SaveDecision::kMustRecompute; };
}

SavePolicy DotsSaveable(const RuleSet& rules) {
  auto costs = std::make_shared<CostModel>(rules);
  return [costs](const Graph& graph, Value v) {
    Value computed = v;
    if (graph.node(v).op == ToOpId(Primitive::kResult)) {
      computed = graph.operands(v)[0];
    }
    const absl::StatusOr<NodeCost> cost = costs->Of(graph, computed);
    const bool is_dot = cost.ok() && cost->kind == RecomputeClass::kContraction;
    return is_dot ? SaveDecision::kMustSave : SaveDecision::kMustRecompute;
  };
}

absl::StatusOr<SavePolicy> NamedPolicy(absl::string_view name,
                                       const RuleSet& rules) {
  if (name == "everything") return EverythingSaveable();
  if (name == "nothing") return NothingSaveable();
  if (name == "dots") return DotsSaveable(rules);
  return absl::InvalidArgumentError(absl::StrCat(
      "`", name, "` is no policy: everything, nothing or dots is"));
}

SavePolicy SaveOnlyTheseNames(std::vector<std::string> names) {
  return SaveAndOffloadOnlyTheseNames(std::move(names), {});
}

SavePolicy SaveAnyNamesButThese(std::vector<std::string> names) {
  return [names = ToSet(std::move(names))](const Graph& graph, Value v) {
    const absl::string_view name = CheckpointName(graph, v);
    if (name.empty()) return SaveDecision::kNone;
    return names.contains(name) ? SaveDecision::kMustRecompute
                                : SaveDecision::kMustSave;
  };
}

SavePolicy SaveAndOffloadOnlyTheseNames(std::vector<std::string> saved,
                                        std::vector<std::string> offloaded) {
  return
      [saved = ToSet(std::move(saved)),
       offloaded = ToSet(std::move(offloaded))](const Graph& graph, Value v) {
        const absl::string_view name = CheckpointName(graph, v);
        if (saved.contains(name)) return SaveDecision::kMustSave;
        if (offloaded.contains(name)) return SaveDecision::kOffload;
        return SaveDecision::kMustRecompute;
      };
}

SavePolicy RecomputeWithin(std::vector<std::string> rules) {
  return [rules = ToSet(std::move(rules))](const Graph& graph, Value v) {
    const Provenance& provenance =
        graph.context()->provenance(graph.node(v).provenance);
    return rules.contains(provenance.rule) ? SaveDecision::kMustRecompute
                                           : SaveDecision::kNone;
  };
}

SavePolicy FirstOf(std::vector<SavePolicy> policies) {
  return [policies = std::move(policies)](const Graph& graph, Value v) {
    for (const SavePolicy& policy : policies) {
      const SaveDecision decision = policy(graph, v);
      if (decision != SaveDecision::kNone) return decision;
    }
    return SaveDecision::kNone;
  };
}

}  // namespace cleave::aot
