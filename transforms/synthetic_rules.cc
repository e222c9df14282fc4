#include "transforms/table/synthetic_rules.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/simplify.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/jvp/tangent_graph.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/table/rule_key.h"
#include "transforms/vmap/batch.h"
#include "transforms/vmap/identity.h"

namespace cleave {
namespace {

ProvenanceId RuleProvenance(Context& context, absl::string_view transform,
                            OpId op) {
  return context.Intern(
      Provenance{absl::StrCat(transform, " ", context.op_name(op)), "", 0});
}

}  // namespace

SyntheticRules::SyntheticRules(const RuleSet& rules,
                               const SyntheticOptions& options)
    : rules_(rules), options_(options) {
  if (options.keep_identity) {
    identity_ = std::make_unique<IdentityFinder>(rules);
  }
}

SyntheticRules::~SyntheticRules() = default;

uint32_t SyntheticRules::BatchId(const Dim& batch) {
  const auto [it, added] =
      batch_ids_.emplace(batch, static_cast<uint32_t>(batches_.size()));
  if (added) batches_.push_back(batch);
  return it->second;
}

void SyntheticRules::SimplifyRule(Graph& graph) const {
  if (options_.simplify) graph = Simplify(graph, rules_);
}

absl::StatusOr<const BatchRule*> SyntheticRules::Batch(
    const Graph& graph, Value node, absl::Span<const bool> batched,
    uint32_t batch_id) {
  SetRuleKey(graph, node, batched, batch_id, key_);
  const auto it = batch_rules_.find(key_);
  if (it != batch_rules_.end()) return it->second.get();
  // Making a rule may make others, which reuse the scratch key and may move
  // the list of batches.
  const Key key = key_;
  const Dim batch = batches_[batch_id];
  CLEAVE_ASSIGN_OR_RETURN(
      BatchRule rule,
      MakeBatchRule(RuleSet::SignatureOf(graph, node),
                    std::vector<bool>(batched.begin(), batched.end()), batch));
  auto owned = std::make_unique<const BatchRule>(std::move(rule));
  return batch_rules_.emplace(key, std::move(owned)).first->second.get();
}

absl::StatusOr<BatchRule> SyntheticRules::MakeBatchRule(
    const Signature& signature, const std::vector<bool>& batched,
    const Dim& batch) {
  const std::shared_ptr<Context>& context = rules_.context();
  const bool has_derivative =
      !IsPrimitive(signature.op) &&
      (rules_.Declares(signature.op, StatementKind::kJvp) ||
       rules_.Declares(signature.op, StatementKind::kVjp));
  if (!IsPrimitive(signature.op)) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* given,
                            rules_.Vmap(signature, batched, batch));
    if (given != nullptr) {
      BatchRule rule{*given, std::vector<bool>(given->outputs().size(), true),
                     BatchRule::Kind::kGiven, ""};
      if (has_derivative) MakeBatchCall(signature, batched, batch, rule);
      return rule;
    }
  }
  GraphBuilder builder(context);
  std::vector<BatchedValue> arguments;
  std::vector<TensorType> types;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    types.push_back(context->types(signature.operands[i])[0]);
    const TensorType type = batched[i] ? WithBatch(types[i], batch) : types[i];
    arguments.push_back(
        {builder.Input(absl::StrCat("x", i), type), batched[i]});
  }
  std::vector<BatchedValue> results;
  if (IsPrimitive(signature.op)) {
    builder.SetProvenance(RuleProvenance(*context, "vmap", signature.op));
    CLEAVE_ASSIGN_OR_RETURN(
        results,
        BatchPrimitive({builder, batch, *this, ToPrimitive(signature.op),
                        context->attributes(signature.attributes), arguments,
                        types}));
  } else {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
    CLEAVE_ASSIGN_OR_RETURN(
        results, BatchGraph(builder, *body, arguments, batch, *this));
  }
  BatchRule rule;
  std::vector<Value> values;
  for (const BatchedValue& result : results) {
    values.push_back(result.value);
    rule.batched.push_back(result.batched);
  }
  rule.graph = std::move(builder).Build(Numbered(values));
  if (!IsPrimitive(signature.op) && identity_ != nullptr) {
    IdentityAnswer kept = identity_->Find(signature, batched, batch, rule);
    if (kept.call.has_value()) rule = *std::move(kept.call);
    rule.how = std::move(kept.how);
  }
  if (has_derivative && rule.kind == BatchRule::Kind::kDerived) {
    MakeBatchCall(signature, batched, batch, rule);
  }
  SimplifyRule(rule.graph);
  return rule;
}

void SyntheticRules::MakeBatchCall(const Signature& signature,
                                   const std::vector<bool>& batched,
                                   const Dim& batch, BatchRule& rule) const {
  const Signature call = rules_.BatchOf(signature, batched, batch);
  GraphBuilder builder(rules_.context());
  const std::vector<Value> operands = AddInputsOf(builder, rule.graph);
  std::vector<TensorType> types;
  for (size_t i = 0; i < rule.batched.size(); ++i) {
    const TensorType& type = rule.graph.type(rule.graph.outputs()[i].value);
    types.push_back(rule.batched[i] ? type : WithBatch(type, batch));
    rule.batched[i] = true;
  }
  const Value node = builder.AddTyped(
      call.op, call.attributes, rules_.context()->Intern(types), operands,
      RuleProvenance(*rules_.context(), "vmap", signature.op));
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(
        types.size() == 1 ? node : builder.Result(node, static_cast<int>(i)));
  }
  rule.graph = std::move(builder).Build(Numbered(results));
}

absl::StatusOr<const TangentRule*> SyntheticRules::Tangent(
    const Graph& graph, Value node, absl::Span<const bool> active) {
  SetRuleKey(graph, node, active, 0, key_);
  const auto it = tangent_rules_.find(key_);
  if (it != tangent_rules_.end()) return it->second.get();
  const Key key = key_;
  CLEAVE_ASSIGN_OR_RETURN(
      TangentRule rule,
      MakeTangentRule(RuleSet::SignatureOf(graph, node), graph.node(node).type,
                      std::vector<bool>(active.begin(), active.end())));
  SimplifyRule(rule.graph);
  auto owned = std::make_unique<const TangentRule>(std::move(rule));
  return tangent_rules_.emplace(key, std::move(owned)).first->second.get();
}

absl::StatusOr<TangentRule> SyntheticRules::MakeTangentRule(
    const Signature& signature, TypeId results,
    const std::vector<bool>& active) {
  if (!IsPrimitive(signature.op)) {
    return MakeCompositeTangent(signature, active);
  }
  const Primitive primitive = ToPrimitive(signature.op);
  if (DerivativeOf(primitive) == DerivativeKind::kRule) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* graph,
                            rules_.PrimitiveJvp(signature, active));
    return TangentRule{*graph, true, false, {true}};
  }
  const std::shared_ptr<Context>& context = rules_.context();
  TangentRule rule;
  rule.joint = ClassOf(primitive) == PrimitiveClass::kControl;
  rule.takes_results = !rule.joint;
  GraphBuilder builder(context);
  builder.SetProvenance(RuleProvenance(*context, "jvp", signature.op));
  JvpNode node{
      builder, *this, primitive, context->attributes(signature.attributes),
      {},      {},    {},        {}};
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    node.operands.push_back(builder.Input(
        absl::StrCat("x", i), context->types(signature.operands[i])[0]));
  }
  node.result_types = context->types(results);
  if (rule.takes_results) {
    for (size_t i = 0; i < node.result_types.size(); ++i) {
      node.results.push_back(
          builder.Input(absl::StrCat("y", i), node.result_types[i]));
    }
  }
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    node.tangents.push_back(
        active[i] ? builder.Input(absl::StrCat("dx", i),
                                  context->types(signature.operands[i])[0])
                  : Value());
  }
  CLEAVE_ASSIGN_OR_RETURN(const JvpNodeResult result, JvpPrimitive(node));
  std::vector<Value> outputs;
  if (rule.joint) outputs = result.results;
  for (Value tangent : result.tangents) {
    rule.has_tangent.push_back(tangent.valid());
    if (tangent.valid()) outputs.push_back(tangent);
  }
  rule.graph = std::move(builder).Build(Numbered(outputs));
  return rule;
}

// The override's contributions for the operands that it covers, the derived
// ones for the others.
absl::StatusOr<TangentRule> SyntheticRules::MakeCompositeTangent(
    const Signature& signature, const std::vector<bool>& active) {
  const std::shared_ptr<Context>& context = rules_.context();
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
  GraphBuilder builder(context);
  std::vector<Value> operands;
  std::vector<Value> tangents;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    operands.push_back(builder.Input(absl::StrCat("x", i),
                                     context->types(signature.operands[i])[0]));
  }
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    tangents.push_back(
        active[i] ? builder.Input(absl::StrCat("dx", i),
                                  context->types(signature.operands[i])[0])
                  : Value());
  }
  std::vector<Value> sums(body->outputs().size());
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::JvpOverride* given,
                          rules_.Jvp(signature, active));
  bool derive = given == nullptr;
  if (given != nullptr) {
    std::vector<Value> arguments = operands;
    for (size_t i = 0; i < tangents.size(); ++i) {
      if (!tangents[i].valid()) continue;
      if (given->covered[i]) {
        arguments.push_back(tangents[i]);
        tangents[i] = Value();
      } else {
        derive = true;
      }
    }
    const std::vector<Value> contributions =
        builder.Inline(given->graph, arguments);
    size_t next = 0;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (emit::IsInexact(body->type(body->outputs()[i].value).dtype)) {
        sums[i] = contributions[next++];
      }
    }
    CLEAVE_CHECK(next == contributions.size())
        << "the jvp override of " << context->op_name(signature.op) << " has "
        << contributions.size() << " tangents for " << next
        << " inexact results";
  }
  if (derive) {
    CLEAVE_ASSIGN_OR_RETURN(
        const TangentGraphResult derived,
        TangentGraph(builder, *body, operands, tangents, *this));
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = emit::AddTangents(builder, sums[i], derived.tangents[i]);
    }
  }
  TangentRule rule;
  std::vector<Value> outputs;
  for (Value sum : sums) {
    rule.has_tangent.push_back(sum.valid());
    if (sum.valid()) outputs.push_back(sum);
  }
  rule.graph = std::move(builder).Build(Numbered(outputs));
  return rule;
}

}  // namespace cleave
