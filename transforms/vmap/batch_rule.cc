#include "transforms/vmap/batch_rule.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/table/names.h"
#include "transforms/vmap/batch.h"

namespace cleave {
namespace {

// The rule as one call that goes on having the derivatives that the op
// declares, all results with the batch.
absl::Status MakeBatchCall(const Signature& signature,
                           const std::vector<bool>& batched, const Dim& batch,
                           const RuleSet& rules, BatchRule& rule) {
  const Signature call = rules.BatchOf(signature, batched, batch);
  GraphBuilder builder(rules.context());
  const std::vector<Value> operands = AddInputsOf(builder, rule.graph);
  std::vector<TensorType> types;
  for (size_t i = 0; i < rule.batched.size(); ++i) {
    const TensorType& type = rule.graph.type(rule.graph.outputs()[i].value);
    types.push_back(rule.batched[i] ? type : WithBatch(type, batch));
    rule.batched[i] = true;
  }
  const Value node = builder.AddTyped(
      call.op, call.attributes, rules.context()->Intern(types), operands,
      RuleProvenance(*rules.context(), "vmap", signature.op));
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(
        types.size() == 1 ? node : builder.Result(node, static_cast<int>(i)));
  }
  CLEAVE_ASSIGN_OR_RETURN(rule.graph,
                          std::move(builder).Build(Numbered(results)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchRule> MakeBatchRule(const Signature& signature,
                                        const std::vector<bool>& batched,
                                        const Dim& batch, RuleTable& table,
                                        IdentityFinder* identity) {
  const RuleSet& rules = table.rules();
  const std::shared_ptr<Context>& context = rules.context();
  const bool has_derivative =
      !IsPrimitive(signature.op) &&
      (rules.Declares(signature.op, StatementKind::kJvp) ||
       rules.Declares(signature.op, StatementKind::kVjp));
  if (!IsPrimitive(signature.op)) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* given,
                            rules.Vmap(signature, batched, batch));
    if (given != nullptr) {
      BatchRule rule{*given, std::vector<bool>(given->outputs().size(), true),
                     BatchRule::Kind::kGiven, ""};
      if (has_derivative) {
        CLEAVE_RETURN_IF_ERROR(
            MakeBatchCall(signature, batched, batch, rules, rule));
      }
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
        BatchPrimitive({builder, batch, table, ToPrimitive(signature.op),
                        context->attributes(signature.attributes), arguments,
                        types}));
  } else {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules.Body(signature));
    CLEAVE_ASSIGN_OR_RETURN(
        results, BatchGraph(builder, *body, arguments, batch, table));
  }
  BatchRule rule;
  std::vector<Value> values;
  for (const BatchedValue& result : results) {
    values.push_back(result.value);
    rule.batched.push_back(result.batched);
  }
  CLEAVE_ASSIGN_OR_RETURN(rule.graph,
                          std::move(builder).Build(Numbered(values)));
  if (!IsPrimitive(signature.op) && identity != nullptr) {
    IdentityAnswer kept = identity->Find(signature, batched, batch, rule);
    if (kept.call.has_value()) rule = *std::move(kept.call);
    rule.how = std::move(kept.how);
  }
  if (has_derivative && rule.kind == BatchRule::Kind::kDerived) {
    CLEAVE_RETURN_IF_ERROR(
        MakeBatchCall(signature, batched, batch, rules, rule));
  }
  rule.graph = table.Simplified(std::move(rule.graph));
  return rule;
}

}  // namespace cleave
