#include "transforms/vjp/transpose.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/table/rule_tables.h"
#include "transforms/vjp/partial_evaluation.h"
#include "transforms/vjp/transpose_primitive.h"

namespace cleave {
namespace {

// Transposes a graph whose loops and branches are cut: their carries and
// results are all linear, or none is.
class Transposer {
 public:
  Transposer(GraphBuilder& builder, const Graph& graph, RuleTable& rules)
      : builder_(builder),
        graph_(graph),
        rules_(rules),
        known_(graph.size()),
        linear_(graph.size(), false),
        cotangents_(builder, graph) {}

  absl::StatusOr<std::vector<Guarded>> Run(absl::Span<const Value> arguments,
                                           absl::Span<const Value> cotangents) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t id = graph_.inputs()[i].value.id;
      known_[id] = arguments[i];
      linear_[id] = !arguments[i].valid();
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) Forward(Value{id});
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    for (size_t i = 0; i < cotangents.size(); ++i) {
      const Value output = graph_.outputs()[i].value;
      if (linear_[output.id]) {
        cotangents_.Give(output, {cotangents[i], Value()});
      }
    }
    for (uint32_t id = graph_.size(); id-- > 0;) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(Backward(Value{id}));
    }
    std::vector<Guarded> result;
    for (const NamedValue& input : graph_.inputs()) {
      result.push_back(cotangents_.of(input.value));
    }
    return result;
  }

 private:
  void Forward(Value v) {
    const Node& node = graph_.node(v);
    if (node.op == ToOpId(Primitive::kInput)) return;
    std::vector<Value> arguments;
    for (Value operand : graph_.operands(v)) {
      if (linear_[operand.id]) linear_[v.id] = true;
      arguments.push_back(known_[operand.id]);
    }
    if (linear_[v.id]) return;
    known_[v.id] = builder_.AddTyped(node.op, node.attributes, node.type,
                                     arguments, node.provenance);
  }

  absl::Status Backward(Value v) {
    const Node& node = graph_.node(v);
    if (!linear_[v.id] || node.op == ToOpId(Primitive::kInput)) {
      return absl::OkStatus();
    }
    const absl::Span<const Value> operands = graph_.operands(v);
    if (node.op == ToOpId(Primitive::kResult)) {
      cotangents_.GiveToTuple(v);
      return absl::OkStatus();
    }
    const std::vector<Guarded> dy = cotangents_.Results(v);
    if (dy.empty()) return absl::OkStatus();
    builder_.SetProvenance(node.provenance);
    if (node.op == ToOpId(Primitive::kSelect)) {
      const Value condition = known_[operands[0].id];
      if (!condition.valid()) {
        return absl::InternalError("transpose: a condition is not linear");
      }
      for (int side : {1, 2}) {
        if (!linear_[operands[side].id]) continue;
        cotangents_.Give(operands[side],
                         Guard(builder_, dy[0], condition, side == 1));
      }
      return absl::OkStatus();
    }
    if (IsPrimitive(node.op) && dy.size() == 1) {
      const Value mask = MaskOfOperands(builder_, graph_, v, dy[0].mask);
      return BackwardPrimitive(
          v, {mask.valid() ? dy[0].value : Unguarded(builder_, dy[0])}, mask);
    }
    std::vector<Value> cotangents;
    for (const Guarded& result : dy) {
      cotangents.push_back(Unguarded(builder_, result));
    }
    if (IsPrimitive(node.op)) return BackwardPrimitive(v, cotangents, {});
    return BackwardComposite(v, cotangents);
  }

  absl::Status BackwardPrimitive(Value v, std::vector<Value> cotangents,
                                 Value mask) {
    TransposeNode node{builder_,
                       rules_,
                       ToPrimitive(graph_.node(v).op),
                       graph_.attributes(v),
                       {},
                       {},
                       {},
                       graph_.types(v),
                       std::move(cotangents)};
    for (Value operand : graph_.operands(v)) {
      node.operands.push_back(known_[operand.id]);
      node.types.push_back(graph_.type(operand));
      node.linear.push_back(linear_[operand.id]);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> given,
                            TransposePrimitive(node));
    for (size_t i = 0; i < given.size(); ++i) {
      cotangents_.Give(graph_.operands(v)[i], {given[i], mask});
    }
    return absl::OkStatus();
  }

  absl::Status BackwardComposite(Value v, const std::vector<Value>& dy) {
    const absl::Span<const Value> operands = graph_.operands(v);
    absl::InlinedVector<bool, 8> linear;
    absl::InlinedVector<bool, 8> live;
    std::vector<Value> arguments;
    for (Value operand : operands) {
      linear.push_back(linear_[operand.id]);
      if (!linear.back()) arguments.push_back(known_[operand.id]);
    }
    for (Value cotangent : dy) {
      live.push_back(cotangent.valid());
      if (live.back()) arguments.push_back(cotangent);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const CotangentRule> rule,
                            rules_.Transposed(graph_, v, linear, live));
    const std::vector<Guarded> given = OutputsOf(builder_, *rule, arguments);
    for (size_t i = 0; i < operands.size(); ++i) {
      cotangents_.Give(operands[i], given[i]);
    }
    return absl::OkStatus();
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  RuleTable& rules_;
  std::vector<Value> known_;  // by node; invalid: linear
  std::vector<bool> linear_;  // by node
  CotangentTable cotangents_;
};

// Whether a loop or branch mixes what is linear with what is not.
bool HasMixedControl(const Graph& graph, absl::Span<const Value> arguments) {
  std::vector<bool> linear(graph.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    linear[graph.inputs()[i].value.id] = !arguments[i].valid();
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    bool all = true;
    for (Value operand : graph.operands(Value{id})) {
      if (linear[operand.id]) linear[id] = true;
      all = all && linear[operand.id];
    }
    const OpId op = graph.node(Value{id}).op;
    if (linear[id] && !all && IsPrimitive(op) &&
        ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<Value>> TransposeGraph(
    GraphBuilder& builder, const Graph& graph,
    absl::Span<const Value> arguments, absl::Span<const Value> cotangents,
    RuleTable& table) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Guarded> guarded,
      TransposeGuarded(builder, graph, arguments, cotangents, table));
  std::vector<Value> result;
  for (const Guarded& cotangent : guarded) {
    result.push_back(Unguarded(builder, cotangent));
  }
  return result;
}

absl::StatusOr<std::vector<Guarded>> TransposeGuarded(
    GraphBuilder& builder, const Graph& graph,
    absl::Span<const Value> arguments, absl::Span<const Value> cotangents,
    RuleTable& table) {
  CLEAVE_CHECK(arguments.size() == graph.inputs().size() &&
               cotangents.size() == graph.outputs().size())
      << arguments.size() << " arguments, " << cotangents.size()
      << " cotangents";
  if (!HasMixedControl(graph, arguments)) {
    return Transposer(builder, graph, table).Run(arguments, cotangents);
  }
  std::vector<bool> unknown;
  std::vector<Value> known;
  for (Value argument : arguments) {
    unknown.push_back(!argument.valid());
    if (argument.valid()) known.push_back(argument);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const PartialEvaluation cut,
      PartiallyEvaluate(graph, unknown, {}, {table.options().recompute_loops}));
  const std::vector<Value> computed = builder.Inline(cut.known, known);
  const size_t linear_inputs = cut.unknown.inputs().size() - cut.residuals;
  std::vector<Value> cut_arguments(linear_inputs);
  cut_arguments.insert(cut_arguments.end(), computed.end() - cut.residuals,
                       computed.end());
  std::vector<Value> cut_cotangents;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (cut.output_unknown[i]) cut_cotangents.push_back(cotangents[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Guarded> of_linear,
                          Transposer(builder, cut.unknown, table)
                              .Run(cut_arguments, cut_cotangents));
  std::vector<Guarded> result(arguments.size());
  size_t next = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (unknown[i]) result[i] = of_linear[next++];
  }
  return result;
}

absl::StatusOr<Graph> Transpose(const Graph& graph,
                                const std::vector<bool>& linear,
                                const RuleSet& rules,
                                const TransformOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(RuleTable * table, TableOf(rules, options));
  if (linear.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("transpose: `linear` has ", linear.size(), " entries for ",
                     graph.inputs().size(), " inputs"));
  }
  std::vector<bool> reached(graph.size(), false);
  for (size_t i = 0; i < linear.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    if (linear[i] && !emit::IsInexact(graph.type(input.value).dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "transpose: the input `", input.name, "` is ",
          graph.type(input.value).ToString(), ", which has no cotangents"));
    }
    reached[input.value.id] = linear[i];
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (Value operand : graph.operands(Value{id})) {
      if (reached[operand.id]) reached[id] = true;
    }
  }
  GraphBuilder builder(graph.context());
  absl::flat_hash_set<std::string> taken = NamesOf(graph.inputs());
  std::vector<Value> arguments;
  for (size_t i = 0; i < linear.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    arguments.push_back(
        linear[i] ? Value()
                  : builder.Input(input.name, graph.type(input.value)));
  }
  std::vector<Value> cotangents;
  for (const NamedValue& output : graph.outputs()) {
    cotangents.push_back(
        reached[output.value.id]
            ? builder.Input(NameWith(output.name, kCotangent, taken),
                            graph.type(output.value))
            : Value());
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Value> results,
      TransposeGraph(builder, graph, arguments, cotangents, *table));
  std::vector<NamedValue> outputs;
  taken.clear();
  for (size_t i = 0; i < linear.size(); ++i) {
    if (!linear[i]) continue;
    const NamedValue& input = graph.inputs()[i];
    outputs.push_back({NameWith(input.name, kCotangent, taken),
                       results[i].valid()
                           ? results[i]
                           : builder.Zeros(graph.type(input.value))});
  }
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
