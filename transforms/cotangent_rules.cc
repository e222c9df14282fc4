// The rules of SyntheticRules for reverse mode.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/rule_key.h"
#include "transforms/table/synthetic_rules.h"
#include "transforms/vjp/cotangent_graph.h"
#include "transforms/vjp/partial_evaluation.h"
#include "transforms/vjp/transpose.h"

namespace cleave {
namespace {

std::vector<bool> ToVector(absl::Span<const bool> mask) {
  return std::vector<bool>(mask.begin(), mask.end());
}

// Cotangents summed per operand.
class Sums {
 public:
  Sums(GraphBuilder& builder, size_t count) : builder_(builder), of_(count) {}
  void Add(size_t i, const Guarded& cotangent) {
    of_[i] = AddGuarded(builder_, of_[i], cotangent);
  }
  CotangentRule Finish() && {
    CotangentRule rule;
    std::vector<NamedValue> outputs;
    for (const Guarded& sum : of_) {
      rule.has_cotangent.push_back(sum.valid());
      if (sum.valid()) {
        outputs.push_back({absl::StrCat("dx", outputs.size()), sum.value});
      }
    }
    for (const Guarded& sum : of_) {
      rule.has_mask.push_back(sum.valid() && sum.mask.valid());
      if (rule.has_mask.back()) {
        outputs.push_back({absl::StrCat("mask", outputs.size()), sum.mask});
      }
    }
    rule.graph = std::move(builder_).Build(std::move(outputs));
    return rule;
  }

 private:
  GraphBuilder& builder_;
  std::vector<Guarded> of_;
};

}  // namespace

absl::StatusOr<const CotangentRule*> SyntheticRules::Cotangent(
    const Graph& graph, Value node, absl::Span<const bool> active,
    absl::Span<const bool> live) {
  SetRuleKey(graph, node, active, 0, key_);
  AppendMask(live, key_);
  const auto it = cotangent_rules_.find(key_);
  if (it != cotangent_rules_.end()) return it->second.get();
  const Key key = key_;  // making a rule may make others
  CLEAVE_ASSIGN_OR_RETURN(CotangentRule rule,
                          MakeCotangentRule(RuleSet::SignatureOf(graph, node),
                                            graph.node(node).type,
                                            ToVector(active), ToVector(live)));
  SimplifyRule(rule.graph);
  auto owned = std::make_unique<const CotangentRule>(std::move(rule));
  return cotangent_rules_.emplace(key, std::move(owned)).first->second.get();
}

absl::StatusOr<CotangentRule> SyntheticRules::MakeCotangentRule(
    const Signature& signature, TypeId results, const std::vector<bool>& active,
    const std::vector<bool>& live) {
  const std::shared_ptr<Context>& context = rules_.context();
  const size_t count = signature.operands.size();
  GraphBuilder builder(context);
  std::vector<Value> operands;
  for (size_t i = 0; i < count; ++i) {
    operands.push_back(builder.Input(absl::StrCat("x", i),
                                     context->types(signature.operands[i])[0]));
  }
  const std::vector<TensorType>& types = context->types(results);
  const bool primitive = IsPrimitive(signature.op);
  std::vector<Value> primal_results;
  if (primitive) {
    for (size_t i = 0; i < types.size(); ++i) {
      primal_results.push_back(builder.Input(absl::StrCat("y", i), types[i]));
    }
  }
  std::vector<Value> cotangents;
  for (size_t i = 0; i < types.size(); ++i) {
    cotangents.push_back(
        live[i] ? builder.Input(absl::StrCat("dy", i), types[i]) : Value());
  }
  Sums sums(builder, count);
  if (primitive) {
    CLEAVE_ASSIGN_OR_RETURN(const TangentRule tangent,
                            MakeTangentRule(signature, results, active));
    CLEAVE_CHECK(!tangent.joint) << "loops have a rule of their own";
    std::vector<Value> arguments = operands;
    if (tangent.takes_results) {
      arguments.insert(arguments.end(), primal_results.begin(),
                       primal_results.end());
    }
    arguments.resize(tangent.graph.inputs().size());
    std::vector<Value> of_tangents;
    for (size_t i = 0; i < types.size(); ++i) {
      if (tangent.has_tangent[i]) of_tangents.push_back(cotangents[i]);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Guarded> given,
                            TransposeGuarded(builder, tangent.graph, arguments,
                                             of_tangents, *this));
    size_t next = tangent.graph.inputs().size() -
                  std::count(active.begin(), active.end(), true);
    for (size_t i = 0; i < count; ++i) {
      if (active[i]) sums.Add(i, given[next++]);
    }
    CotangentRule rule = std::move(sums).Finish();
    rule.takes_results = true;
    return rule;
  }
  std::vector<bool> derived = active;
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::VjpOverride* reverse,
                          rules_.Vjp(signature, live));
  if (reverse != nullptr) {
    std::vector<Value> arguments = operands;
    for (Value cotangent : cotangents) {
      if (cotangent.valid()) arguments.push_back(cotangent);
    }
    const std::vector<Value> given = builder.Inline(reverse->graph, arguments);
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!reverse->covered[i]) continue;
      if (derived[i]) sums.Add(i, {given[next], Value()});
      derived[i] = false;
      ++next;
    }
  }
  const auto any = [](const std::vector<bool>& mask) {
    return std::find(mask.begin(), mask.end(), true) != mask.end();
  };
  if (any(derived)) {
    CLEAVE_ASSIGN_OR_RETURN(const RuleSet::JvpOverride* forward,
                            rules_.Jvp(signature, derived));
    if (forward != nullptr) {
      std::vector<Value> arguments = operands;
      arguments.resize(forward->graph.inputs().size());
      std::vector<Value> of_tangents;
      for (size_t i = 0; i < types.size(); ++i) {
        if (emit::IsInexact(types[i].dtype)) {
          of_tangents.push_back(cotangents[i]);
        }
      }
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Guarded> given,
                              TransposeGuarded(builder, forward->graph,
                                               arguments, of_tangents, *this));
      size_t next = count;
      for (size_t i = 0; i < count; ++i) {
        if (!forward->covered[i]) continue;
        sums.Add(i, given[next++]);
        derived[i] = false;
      }
    }
  }
  if (any(derived)) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
    CLEAVE_ASSIGN_OR_RETURN(
        const CotangentGraphResult walked,
        CotangentGraph(builder, *body, operands, derived, cotangents, *this));
    for (size_t i = 0; i < count; ++i) {
      sums.Add(i, walked.cotangents[i]);
    }
  }
  return std::move(sums).Finish();
}

absl::StatusOr<const CotangentRule*> SyntheticRules::Transposed(
    const Graph& graph, Value node, absl::Span<const bool> linear,
    absl::Span<const bool> live) {
  SetRuleKey(graph, node, linear, 0, key_);
  AppendMask(live, key_);
  const auto it = transposed_.find(key_);
  if (it != transposed_.end()) return it->second.get();
  const Key key = key_;
  const std::shared_ptr<Context>& context = rules_.context();
  const Signature signature = RuleSet::SignatureOf(graph, node);
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
  GraphBuilder builder(context);
  std::vector<Value> operands;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    operands.push_back(
        linear[i] ? Value()
                  : builder.Input(absl::StrCat("x", i),
                                  context->types(signature.operands[i])[0]));
  }
  std::vector<Value> cotangents;
  for (size_t i = 0; i < body->outputs().size(); ++i) {
    cotangents.push_back(
        live[i] ? builder.Input(absl::StrCat("dy", i), graph.types(node)[i])
                : Value());
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Guarded> given,
      TransposeGuarded(builder, *body, operands, cotangents, *this));
  Sums sums(builder, operands.size());
  for (size_t i = 0; i < given.size(); ++i) {
    if (linear[i]) sums.Add(i, given[i]);
  }
  CotangentRule rule = std::move(sums).Finish();
  SimplifyRule(rule.graph);
  auto owned = std::make_unique<const CotangentRule>(std::move(rule));
  return transposed_.emplace(key, std::move(owned)).first->second.get();
}

absl::StatusOr<const ControlRule*> SyntheticRules::Control(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  SetRuleKey(graph, node, active, 0, key_);
  const auto it = control_rules_.find(key_);
  if (it != control_rules_.end()) return it->second.get();
  const Key key = key_;
  const Signature signature = RuleSet::SignatureOf(graph, node);
  CLEAVE_ASSIGN_OR_RETURN(
      const TangentRule tangent,
      MakeTangentRule(signature, graph.node(node).type, ToVector(active)));
  const size_t operands = signature.operands.size();
  const size_t results = graph.types(node).size();
  std::vector<bool> unknown(tangent.graph.inputs().size(), true);
  std::fill_n(unknown.begin(), operands, false);
  std::vector<bool> outputs_unknown(tangent.graph.outputs().size(), true);
  std::fill_n(outputs_unknown.begin(), results, false);
  CLEAVE_ASSIGN_OR_RETURN(
      PartialEvaluation cut,
      PartiallyEvaluate(tangent.graph, unknown, outputs_unknown,
                        {options_.recompute_loops}));
  SimplifyRule(cut.known);
  SimplifyRule(cut.unknown);
  auto owned = std::make_unique<const ControlRule>(ControlRule{
      std::move(cut.known), std::move(cut.unknown), tangent.has_tangent});
  return control_rules_.emplace(key, std::move(owned)).first->second.get();
}

absl::StatusOr<bool> SyntheticRules::WalksThrough(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  const Signature signature = RuleSet::SignatureOf(graph, node);
  CLEAVE_ASSIGN_OR_RETURN(const bool control, HasControl(signature));
  if (!control) return false;
  if (rules_.Declares(signature.op, StatementKind::kVjp)) return false;
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::JvpOverride* given,
                          rules_.Jvp(signature, ToVector(active)));
  return given == nullptr;
}

absl::StatusOr<bool> SyntheticRules::HasControl(const Signature& signature) {
  const auto it = has_control_.find(signature);
  if (it != has_control_.end()) return it->second;
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
  has_control_.emplace(signature, found);
  return found;
}

}  // namespace cleave
