#include "transforms/vjp/cotangent_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/jvp/tangent_rule.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/cotangent_graph.h"
#include "transforms/vjp/partial_evaluation.h"
#include "transforms/vjp/transpose.h"

namespace cleave {
namespace {

// Cotangents summed per operand.
class Sums {
 public:
  Sums(GraphBuilder& builder, size_t count) : builder_(builder), of_(count) {}
  void Add(size_t i, const Guarded& cotangent) {
    of_[i] = AddGuarded(builder_, of_[i], cotangent);
  }
  absl::StatusOr<CotangentRule> Finish() && {
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
    CLEAVE_ASSIGN_OR_RETURN(rule.graph,
                            std::move(builder_).Build(std::move(outputs)));
    return rule;
  }

 private:
  GraphBuilder& builder_;
  std::vector<Guarded> of_;
};

// Whether the override names the cotangents of all operands that are `linear`,
// and reads none of these operands for them: it is the transpose there.
bool IsTranspose(const RuleSet::VjpOverride& reverse,
                 const std::vector<bool>& linear) {
  const Graph& graph = reverse.graph;
  std::vector<bool> reads(graph.size());
  for (size_t i = 0; i < linear.size(); ++i) {
    if (linear[i]) reads[graph.inputs()[i].value.id] = true;
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) {
      if (reads[operand.id]) reads[id] = true;
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < linear.size(); ++i) {
    if (linear[i] && !reverse.covered[i]) return false;
    if (!reverse.covered[i]) continue;
    if (linear[i] && reads[graph.outputs()[next].value.id]) return false;
    ++next;
  }
  return true;
}

}  // namespace

absl::StatusOr<CotangentRule> MakeCotangentRule(const Signature& signature,
                                                TypeId results,
                                                const std::vector<bool>& active,
                                                const std::vector<bool>& live,
                                                RuleTable& table) {
  const RuleSet& rules = table.rules();
  const std::shared_ptr<Context>& context = rules.context();
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
                            MakeTangentRule(signature, results, active, table));
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
                                             of_tangents, table));
    size_t next = tangent.graph.inputs().size() -
                  std::count(active.begin(), active.end(), true);
    for (size_t i = 0; i < count; ++i) {
      if (active[i]) sums.Add(i, given[next++]);
    }
    CLEAVE_ASSIGN_OR_RETURN(CotangentRule rule, std::move(sums).Finish());
    rule.takes_results = true;
    return rule;
  }
  std::vector<bool> derived = active;
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::VjpOverride* reverse,
                          rules.Vjp(signature, live));
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
                            rules.Jvp(signature, derived));
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
                                               arguments, of_tangents, table));
      size_t next = count;
      for (size_t i = 0; i < count; ++i) {
        if (!forward->covered[i]) continue;
        sums.Add(i, given[next++]);
        derived[i] = false;
      }
    }
  }
  if (any(derived)) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules.Body(signature));
    CLEAVE_ASSIGN_OR_RETURN(
        const CotangentGraphResult walked,
        CotangentGraph(builder, *body, operands, derived, cotangents, table));
    for (size_t i = 0; i < count; ++i) {
      sums.Add(i, walked.cotangents[i]);
    }
  }
  return std::move(sums).Finish();
}

absl::StatusOr<CotangentRule> MakeTransposedRule(
    const Signature& signature, TypeId results, const std::vector<bool>& linear,
    const std::vector<bool>& live, RuleTable& table) {
  const RuleSet& rules = table.rules();
  const std::shared_ptr<Context>& context = rules.context();
  GraphBuilder builder(context);
  std::vector<Value> operands;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    operands.push_back(
        linear[i] ? Value()
                  : builder.Input(absl::StrCat("x", i),
                                  context->types(signature.operands[i])[0]));
  }
  std::vector<Value> cotangents;
  for (size_t i = 0; i < context->types(results).size(); ++i) {
    cotangents.push_back(live[i] ? builder.Input(absl::StrCat("dy", i),
                                                 context->types(results)[i])
                                 : Value());
  }
  Sums sums(builder, operands.size());
  CLEAVE_ASSIGN_OR_RETURN(const RuleSet::VjpOverride* reverse,
                          rules.Vjp(signature, live));
  if (reverse != nullptr && IsTranspose(*reverse, linear)) {
    std::vector<Value> arguments = operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!linear[i]) continue;  // what the graph does not read
      arguments[i] = builder.Zeros(context->types(signature.operands[i])[0]);
    }
    for (Value cotangent : cotangents) {
      if (cotangent.valid()) arguments.push_back(cotangent);
    }
    const std::vector<Value> covered =
        builder.Inline(reverse->graph, arguments);
    size_t next = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!reverse->covered[i]) continue;
      if (linear[i]) sums.Add(i, {covered[next], Value()});
      ++next;
    }
    return std::move(sums).Finish();
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules.Body(signature));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Guarded> given,
      TransposeGuarded(builder, *body, operands, cotangents, table));
  for (size_t i = 0; i < given.size(); ++i) {
    if (linear[i]) sums.Add(i, given[i]);
  }
  return std::move(sums).Finish();
}

absl::StatusOr<ControlRule> MakeControlRule(const Signature& signature,
                                            TypeId results,
                                            const std::vector<bool>& active,
                                            RuleTable& table) {
  CLEAVE_ASSIGN_OR_RETURN(const TangentRule tangent,
                          MakeTangentRule(signature, results, active, table));
  const size_t operand_count = signature.operands.size();
  const size_t result_count = table.rules().context()->types(results).size();
  std::vector<bool> unknown(tangent.graph.inputs().size(), true);
  std::fill_n(unknown.begin(), operand_count, false);
  std::vector<bool> outputs_unknown(tangent.graph.outputs().size(), true);
  std::fill_n(outputs_unknown.begin(), result_count, false);
  CLEAVE_ASSIGN_OR_RETURN(
      PartialEvaluation cut,
      PartiallyEvaluate(tangent.graph, unknown, outputs_unknown,
                        {table.options().recompute_loops}));
  return ControlRule{std::move(cut.known), std::move(cut.unknown),
                     tangent.has_tangent};
}

}  // namespace cleave
