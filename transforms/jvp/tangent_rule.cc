#include "transforms/jvp/tangent_rule.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/jvp/tangent_graph.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

// The override's contributions for the operands that it covers, the derived
// ones for the others.
absl::StatusOr<TangentRule> MakeCompositeTangent(
    const Signature& signature, TypeId results, const std::vector<bool>& active,
    RuleTable& table) {
  const RuleSet& rules = table.rules();
  const std::shared_ptr<Context>& context = rules.context();
  const std::vector<TensorType>& types = context->types(results);
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
  std::vector<Value> sums(types.size());
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::JvpOverride* given,
                          rules.Jvp(signature, active));
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
      if (emit::IsInexact(types[i].dtype)) sums[i] = contributions[next++];
    }
    CLEAVE_CHECK(next == contributions.size())
        << "the jvp override of " << context->op_name(signature.op) << " has "
        << contributions.size() << " tangents for " << next
        << " inexact results";
  }
  if (derive) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules.Body(signature));
    CLEAVE_ASSIGN_OR_RETURN(
        const TangentGraphResult derived,
        TangentGraph(builder, *body, operands, tangents, table));
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
  CLEAVE_ASSIGN_OR_RETURN(rule.graph,
                          std::move(builder).Build(Numbered(outputs)));
  return rule;
}

}  // namespace

absl::StatusOr<TangentRule> MakeTangentRule(const Signature& signature,
                                            TypeId results,
                                            const std::vector<bool>& active,
                                            RuleTable& table) {
  const RuleSet& rules = table.rules();
  if (!IsPrimitive(signature.op)) {
    return MakeCompositeTangent(signature, results, active, table);
  }
  const Primitive primitive = ToPrimitive(signature.op);
  if (DerivativeOf(primitive) == DerivativeKind::kRule) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* graph,
                            rules.PrimitiveJvp(signature, active));
    return TangentRule{*graph, true, false, {true}};
  }
  const std::shared_ptr<Context>& context = rules.context();
  TangentRule rule;
  rule.joint = ClassOf(primitive) == PrimitiveClass::kControl;
  rule.takes_results = !rule.joint;
  GraphBuilder builder(context);
  builder.SetProvenance(RuleProvenance(*context, "jvp", signature.op));
  JvpNode node{
      builder, table, primitive, context->attributes(signature.attributes),
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
  CLEAVE_ASSIGN_OR_RETURN(rule.graph,
                          std::move(builder).Build(Numbered(outputs)));
  return rule;
}

}  // namespace cleave
