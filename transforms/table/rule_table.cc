#include "transforms/table/rule_table.h"

#include "engine/rewrite/simplify.h"
#include "ops/budget.h"
#include "ops/status_macros.h"
#include "transforms/table/rule_key.h"

namespace cleave {
namespace {

std::vector<bool> ToVector(absl::Span<const bool> mask) {
  return std::vector<bool>(mask.begin(), mask.end());
}

// The rule that the cache has under the key, or the one that `make` makes: of a
// chain of ops, one within the other.
template <typename Key, typename Rule, typename Make>
absl::StatusOr<std::shared_ptr<const Rule>> FindOrMake(
    RuleCache<Key, Rule>& cache, const Key& key, const Make& make) {
  if (auto found = cache.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      Rule rule, Deeper([&]() -> absl::StatusOr<Rule> { return make(); }));
  return cache.Add(key, std::move(rule));
}

}  // namespace

uint32_t RuleTable::BatchId(const Dim& batch) const {
  return rules_.context()->Intern(TensorType{DType::kBool, {batch}});
}

Graph RuleTable::Simplified(Graph graph) const {
  return options_.simplify ? Simplify(graph, rules_) : graph;
}

template <typename Rule>
absl::StatusOr<Rule> RuleTable::Simplified(absl::StatusOr<Rule> rule) const {
  if (rule.ok()) rule->graph = Simplified(std::move(rule->graph));
  return rule;
}

RuleTable::Found<BatchRule> RuleTable::Batch(const Graph& graph, Value node,
                                             absl::Span<const bool> batched,
                                             uint32_t batch_id) {
  Key key;
  SetRuleKey(graph, node, batched, batch_id, key);
  return FindOrMake(batch_rules_, key, [&] {
    return maker_->Batch(RuleSet::SignatureOf(graph, node), ToVector(batched),
                         rules_.context()->types(batch_id)[0].shape[0], *this);
  });
}

RuleTable::Found<TangentRule> RuleTable::Tangent(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  return FindOrMake(tangent_rules_, key, [&] {
    return Simplified(maker_->Tangent(RuleSet::SignatureOf(graph, node),
                                      graph.node(node).type, ToVector(active),
                                      *this));
  });
}

RuleTable::Found<CotangentRule> RuleTable::Cotangent(
    const Graph& graph, Value node, absl::Span<const bool> active,
    absl::Span<const bool> live) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  AppendMask(live, key);
  return FindOrMake(cotangent_rules_, key, [&] {
    return Simplified(maker_->Cotangent(RuleSet::SignatureOf(graph, node),
                                        graph.node(node).type, ToVector(active),
                                        ToVector(live), *this));
  });
}

RuleTable::Found<CotangentRule> RuleTable::Transposed(
    const Graph& graph, Value node, absl::Span<const bool> linear,
    absl::Span<const bool> live) {
  Key key;
  SetRuleKey(graph, node, linear, 0, key);
  AppendMask(live, key);
  return FindOrMake(transposed_, key, [&] {
    return Simplified(maker_->Transposed(
        RuleSet::SignatureOf(graph, node), graph.node(node).type,
        ToVector(linear), ToVector(live), *this));
  });
}

RuleTable::Found<ControlRule> RuleTable::Control(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  return FindOrMake(control_rules_, key, [&]() -> absl::StatusOr<ControlRule> {
    CLEAVE_ASSIGN_OR_RETURN(
        ControlRule rule,
        maker_->Control(RuleSet::SignatureOf(graph, node),
                        graph.node(node).type, ToVector(active), *this));
    rule.forward = Simplified(std::move(rule.forward));
    rule.linear = Simplified(std::move(rule.linear));
    return rule;
  });
}

absl::StatusOr<bool> RuleTable::WalksThrough(const Graph& graph, Value node,
                                             absl::Span<const bool> active) {
  const Signature signature = RuleSet::SignatureOf(graph, node);
  CLEAVE_ASSIGN_OR_RETURN(const bool control, HasControl(signature));
  if (!control) return false;
  if (rules_.Declares(signature.op, StatementKind::kVjp)) return false;
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::JvpOverride* given,
                          rules_.Jvp(signature, ToVector(active)));
  return given == nullptr;
}

absl::StatusOr<bool> RuleTable::HasControl(const Signature& signature) {
  if (const auto known = has_control_.Find(signature)) return *known;
  if (rules_.NeedsHost(signature.op)) return false;
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
  bool found = false;
  for (uint32_t id = 0; id < body->size() && !found; ++id) {
    const OpId op = body->node(Value{id}).op;
    if (IsPrimitive(op)) {
      found = ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl;
    } else {
      CLEAVE_ASSIGN_OR_RETURN(
          found, Deeper([&] {
            return HasControl(RuleSet::SignatureOf(*body, Value{id}));
          }));
    }
  }
  has_control_.Add(signature, found);
  return found;
}

}  // namespace cleave
