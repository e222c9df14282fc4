#include "testing/check/samples/over_reals.h"

#include <set>
#include <string>
#include <utility>

#include "engine/rewrite/expand.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The bits of a float are taken for an integer, or the reverse.
bool HasBitPatterns(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (graph.node(v).op != ToOpId(Primitive::kBitcastConvert)) continue;
    if (IsFloat(graph.type(v).dtype) ||
        IsFloat(graph.type(graph.operands(v)[0]).dtype)) {
      return true;
    }
  }
  return false;
}

bool MeansItsSpec(const RuleSet& rules, const Signature& call) {
  const Item* const item =
      rules.Find(std::string(rules.context()->op_name(call.op)));
  if (item == nullptr || item->approximations.empty()) return false;
  const absl::StatusOr<const Graph*> body = rules.Body(call);
  if (!body.ok()) return false;  // expansion tells why
  const absl::StatusOr<Graph> primitive = Expand(**body, rules);
  return primitive.ok() && HasBitPatterns(*primitive);
}

// Sets `has_any` where there was such a call.
absl::StatusOr<Graph> Meant(const Graph& graph, const RuleSet& rules,
                            bool& has_any) {
  ExpandOptions options;
  options.by_spec = [&](const Signature& call) {
    const bool means_spec = MeansItsSpec(rules, call);
    has_any |= means_spec;
    return means_spec;
  };
  return Expand(graph, rules, options);
}

}  // namespace

absl::StatusOr<Graph> ExpandOverReals(const Graph& graph,
                                      const RuleSet& rules) {
  bool has_any = false;
  return Meant(graph, rules, has_any);
}

absl::StatusOr<std::optional<Graph>> ExpandIfOtherOverReals(
    const Graph& graph, const RuleSet& rules) {
  bool has_any = false;
  CLEAVE_ASSIGN_OR_RETURN(Graph meant, Meant(graph, rules, has_any));
  if (!has_any) return std::nullopt;
  return std::optional<Graph>(std::move(meant));
}

absl::StatusOr<std::optional<Graph>> ExpandBodiesOverReals(
    const Graph& graph, const RuleSet& rules) {
  ExpandOptions calls;
  calls.only.emplace();
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const OpId op = graph.node(Value{id}).op;
    if (IsPrimitive(op)) continue;
    calls.only->insert(std::string(graph.context()->op_name(op)));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph bodies, Expand(graph, rules, calls));
  return ExpandIfOtherOverReals(bodies, rules);
}

}  // namespace cleave
