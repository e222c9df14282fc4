#include "transforms/table/rule_table.h"

#include "engine/rewrite/simplify.h"
#include "ops/status_macros.h"
#include "transforms/table/rule_key.h"

namespace cleave {
namespace {

std::vector<bool> ToVector(absl::Span<const bool> mask) {
  return std::vector<bool>(mask.begin(), mask.end());
}

}  // namespace

uint32_t RuleTable::BatchId(const Dim& batch) const {
  return rules_.context()->Intern(TensorType{DType::kBool, {batch}});
}

Graph RuleTable::Simplified(Graph graph) const {
  return options_.simplify ? Simplify(graph, rules_) : graph;
}

RuleTable::Found<BatchRule> RuleTable::Batch(const Graph& graph, Value node,
                                             absl::Span<const bool> batched,
                                             uint32_t batch_id) {
  Key key;
  SetRuleKey(graph, node, batched, batch_id, key);
  if (auto found = batch_rules_.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      BatchRule rule,
      maker_->Batch(RuleSet::SignatureOf(graph, node), ToVector(batched),
                    rules_.context()->types(batch_id)[0].shape[0], *this));
  return batch_rules_.Add(key, std::move(rule));
}

RuleTable::Found<TangentRule> RuleTable::Tangent(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  if (auto found = tangent_rules_.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      TangentRule rule,
      maker_->Tangent(RuleSet::SignatureOf(graph, node), graph.node(node).type,
                      ToVector(active), *this));
  rule.graph = Simplified(std::move(rule.graph));
  return tangent_rules_.Add(key, std::move(rule));
}

RuleTable::Found<CotangentRule> RuleTable::Cotangent(
    const Graph& graph, Value node, absl::Span<const bool> active,
    absl::Span<const bool> live) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  AppendMask(live, key);
  if (auto found = cotangent_rules_.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      CotangentRule rule,
      maker_->Cotangent(RuleSet::SignatureOf(graph, node),
                        graph.node(node).type, ToVector(active), ToVector(live),
                        *this));
  rule.graph = Simplified(std::move(rule.graph));
  return cotangent_rules_.Add(key, std::move(rule));
}

RuleTable::Found<CotangentRule> RuleTable::Transposed(
    const Graph& graph, Value node, absl::Span<const bool> linear,
    absl::Span<const bool> live) {
  Key key;
  SetRuleKey(graph, node, linear, 0, key);
  AppendMask(live, key);
  if (auto found = transposed_.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      CotangentRule rule,
      maker_->Transposed(RuleSet::SignatureOf(graph, node),
                         graph.node(node).type, ToVector(linear),
                         ToVector(live), *this));
  rule.graph = Simplified(std::move(rule.graph));
  return transposed_.Add(key, std::move(rule));
}

RuleTable::Found<ControlRule> RuleTable::Control(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  Key key;
  SetRuleKey(graph, node, active, 0, key);
  if (auto found = control_rules_.Find(key)) return found;
  CLEAVE_ASSIGN_OR_RETURN(
      ControlRule rule,
      maker_->Control(RuleSet::SignatureOf(graph, node), graph.node(node).type,
                      ToVector(active), *this));
  rule.forward = Simplified(std::move(rule.forward));
  rule.linear = Simplified(std::move(rule.linear));
  return control_rules_.Add(key, std::move(rule));
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
          found, HasControl(RuleSet::SignatureOf(*body, Value{id})));
    }
  }
  has_control_.Add(signature, found);
  return found;
}

}  // namespace cleave
