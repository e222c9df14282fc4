#include "transforms/vjp/cotangent_graph.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/transpose.h"

namespace cleave {
namespace {

// Forward, then backward, through one graph. Bodies that are walked through
// have a walk of their own.
class ReverseWalk {
 public:
  ReverseWalk(GraphBuilder& builder, const Graph& graph, RuleTable& rules)
      : builder_(builder),
        graph_(graph),
        rules_(rules),
        primals_(graph.size()),
        active_(graph.size(), false),
        cotangents_(builder, graph) {}

  absl::Status Forward(absl::Span<const Value> primals,
                       const std::vector<bool>& active) {
    for (size_t i = 0; i < primals.size(); ++i) {
      const uint32_t id = graph_.inputs()[i].value.id;
      primals_[id] = primals[i];
      active_[id] = active[i];
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(VisitForward(Value{id}));
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    return absl::OkStatus();
  }

  std::vector<Value> Outputs() const {
    std::vector<Value> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      outputs.push_back(primals_[output.value.id]);
    }
    return outputs;
  }

  absl::StatusOr<std::vector<Guarded>> Backward(
      absl::Span<const Value> cotangents) {
    for (size_t i = 0; i < cotangents.size(); ++i) {
      Give(graph_.outputs()[i].value, {cotangents[i], Value()});
    }
    for (uint32_t id = graph_.size(); id-- > 0;) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(VisitBackward(Value{id}));
    }
    std::vector<Guarded> result;
    for (const NamedValue& input : graph_.inputs()) {
      result.push_back(cotangents_.of(input.value));
    }
    return result;
  }

 private:
  // A node that something else stands for: its results, and how to go back.
  struct Replaced {
    std::vector<Value> results;
    std::shared_ptr<const ControlRule> control;
    std::vector<Value> residuals;
    std::unique_ptr<ReverseWalk> walk;
  };

  bool IsOp(Value v, Primitive primitive) const {
    return graph_.node(v).op == ToOpId(primitive);
  }

  absl::Status VisitForward(Value v) {
    const Node& node = graph_.node(v);
    if (IsOp(v, Primitive::kInput)) return absl::OkStatus();
    const absl::Span<const Value> operands = graph_.operands(v);
    if (IsOp(v, Primitive::kResult)) {
      active_[v.id] =
          active_[operands[0].id] && emit::IsInexact(graph_.type(v).dtype);
      const auto it = replaced_.find(operands[0].id);
      if (it != replaced_.end()) {
        primals_[v.id] =
            it->second.results[graph_.attributes(v).GetInt("index")];
        return absl::OkStatus();
      }
    }
    mask_.clear();
    arguments_.clear();
    bool any = false;
    for (Value operand : operands) {
      arguments_.push_back(primals_[operand.id]);
      mask_.push_back(active_[operand.id]);
      any |= mask_.back();
    }
    any = any && HasDerivative(v);
    if (any && !IsOp(v, Primitive::kResult)) {
      CLEAVE_ASSIGN_OR_RETURN(const bool replaced, Replace(v));
      active_[v.id] = true;
      if (replaced) return absl::OkStatus();
    }
    primals_[v.id] = builder_.AddTyped(node.op, node.attributes, node.type,
                                       arguments_, node.provenance);
    return absl::OkStatus();
  }

  // Whether a cotangent of the node can reach its operands.
  bool HasDerivative(Value v) const {
    const OpId op = graph_.node(v).op;
    if (IsPrimitive(op) &&
        DerivativeOf(ToPrimitive(op)) == DerivativeKind::kZero) {
      return false;
    }
    for (const TensorType& type : graph_.types(v)) {
      if (emit::IsInexact(type.dtype)) return true;
    }
    return false;
  }

  // Loops and branches run with their residuals; composites that hold some are
  // walked through. False: the node is copied.
  absl::StatusOr<bool> Replace(Value v) {
    const OpId op = graph_.node(v).op;
    Replaced replaced;
    if (IsPrimitive(op)) {
      if (ClassOf(ToPrimitive(op)) != PrimitiveClass::kControl) return false;
      CLEAVE_ASSIGN_OR_RETURN(replaced.control,
                              rules_.Control(graph_, v, mask_));
      std::vector<Value> outputs =
          builder_.Inline(replaced.control->forward, arguments_);
      const size_t results = graph_.types(v).size();
      replaced.residuals.assign(outputs.begin() + results, outputs.end());
      outputs.resize(results);
      replaced.results = std::move(outputs);
    } else {
      CLEAVE_ASSIGN_OR_RETURN(const bool walks,
                              rules_.WalksThrough(graph_, v, mask_));
      if (!walks) return false;
      CLEAVE_ASSIGN_OR_RETURN(
          const Graph* body,
          rules_.rules().Body(RuleSet::SignatureOf(graph_, v)));
      replaced.walk = std::make_unique<ReverseWalk>(builder_, *body, rules_);
      CLEAVE_RETURN_IF_ERROR(replaced.walk->Forward(
          arguments_, std::vector<bool>(mask_.begin(), mask_.end())));
      replaced.results = replaced.walk->Outputs();
    }
    if (replaced.results.size() == 1) primals_[v.id] = replaced.results[0];
    replaced_[v.id] = std::move(replaced);
    return true;
  }

  void Give(Value v, const Guarded& cotangent) {
    if (active_[v.id]) cotangents_.Give(v, cotangent);
  }

  absl::Status VisitBackward(Value v) {
    if (!active_[v.id] || IsOp(v, Primitive::kInput)) return absl::OkStatus();
    const absl::Span<const Value> operands = graph_.operands(v);
    if (IsOp(v, Primitive::kResult)) {
      cotangents_.GiveToTuple(v);
      return absl::OkStatus();
    }
    const std::vector<Guarded> dy = cotangents_.Results(v);
    if (dy.empty()) return absl::OkStatus();
    builder_.SetProvenance(graph_.node(v).provenance);
    if (IsOp(v, Primitive::kSelect)) {
      const Value condition = primals_[operands[0].id];
      Give(operands[1], Guard(builder_, dy[0], condition, true));
      Give(operands[2], Guard(builder_, dy[0], condition, false));
      return absl::OkStatus();
    }
    std::vector<Value> given;
    Value mask;
    if (dy.size() == 1) {
      CLEAVE_ASSIGN_OR_RETURN(mask, OperandMask(v, dy[0].mask));
    }
    for (const Guarded& result : dy) {
      given.push_back(mask.valid() ? result.value
                                   : Unguarded(builder_, result));
    }
    std::vector<Guarded> of_operands;
    const auto replaced = replaced_.find(v.id);
    if (replaced == replaced_.end()) {
      CLEAVE_ASSIGN_OR_RETURN(of_operands, ByRule(v, given));
    } else if (replaced->second.walk != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(of_operands,
                              replaced->second.walk->Backward(given));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(of_operands,
                              ByTranspose(v, replaced->second, given));
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      Give(operands[i], WithMask(builder_, of_operands[i], mask));
    }
    return absl::OkStatus();
  }

  // The mask of the operands' cotangents; invalid where dy's does not carry on.
  absl::StatusOr<Value> OperandMask(Value v, Value mask) {
    if (!mask.valid() || replaced_.count(v.id) != 0) return Value();
    if (IsPrimitive(graph_.node(v).op)) {
      return MaskOfOperands(builder_, graph_, v, mask);
    }
    for (Value operand : graph_.operands(v)) {
      if (active_[operand.id] &&
          graph_.type(operand).shape != graph_.type(v).shape) {
        return Value();
      }
    }
    const absl::StatusOr<bool> elementwise =
        rules_.rules().IsElementwise(graph_, v);
    return elementwise.ok() && *elementwise ? mask : Value();
  }

  absl::StatusOr<std::vector<Guarded>> ByRule(Value v,
                                              const std::vector<Value>& given) {
    const absl::Span<const Value> operands = graph_.operands(v);
    mask_.clear();
    arguments_.clear();
    absl::InlinedVector<bool, 4> live;
    for (Value operand : operands) {
      mask_.push_back(active_[operand.id]);
      arguments_.push_back(primals_[operand.id]);
    }
    for (Value cotangent : given) live.push_back(cotangent.valid());
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const CotangentRule> rule,
                            rules_.Cotangent(graph_, v, mask_, live));
    if (rule->takes_results) {
      for (size_t i = 0; i < given.size(); ++i) {
        arguments_.push_back(
            given.size() == 1
                ? primals_[v.id]
                : builder_.Result(primals_[v.id], static_cast<int>(i)));
      }
    }
    for (Value cotangent : given) {
      if (cotangent.valid()) arguments_.push_back(cotangent);
    }
    return OutputsOf(builder_, *rule, arguments_);
  }

  absl::StatusOr<std::vector<Guarded>> ByTranspose(
      Value v, const Replaced& replaced, const std::vector<Value>& given) {
    const Graph& linear = replaced.control->linear;
    std::vector<Value> arguments(linear.inputs().size() -
                                 replaced.residuals.size());
    arguments.insert(arguments.end(), replaced.residuals.begin(),
                     replaced.residuals.end());
    std::vector<Value> of_tangents;
    for (size_t i = 0; i < given.size(); ++i) {
      if (replaced.control->has_tangent[i]) of_tangents.push_back(given[i]);
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Guarded> cotangents,
        TransposeGuarded(builder_, linear, arguments, of_tangents, rules_));
    std::vector<Guarded> result;
    size_t next = 0;
    for (Value operand : graph_.operands(v)) {
      result.push_back(active_[operand.id] ? cotangents[next++] : Guarded());
    }
    return result;
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  RuleTable& rules_;
  std::vector<Value> primals_;  // by node
  std::vector<bool> active_;    // by node: a cotangent may reach it
  CotangentTable cotangents_;
  absl::flat_hash_map<uint32_t, Replaced> replaced_;
  absl::InlinedVector<bool, 8> mask_;        // scratch
  absl::InlinedVector<Value, 8> arguments_;  // scratch
};

}  // namespace

absl::StatusOr<CotangentGraphResult> CotangentGraph(
    GraphBuilder& builder, const Graph& graph, absl::Span<const Value> primals,
    const std::vector<bool>& active, absl::Span<const Value> cotangents,
    RuleTable& rules) {
  CLEAVE_CHECK(primals.size() == graph.inputs().size() &&
               active.size() == primals.size() &&
               cotangents.size() == graph.outputs().size())
      << primals.size() << " primals, " << cotangents.size() << " cotangents";
  ReverseWalk walk(builder, graph, rules);
  CLEAVE_RETURN_IF_ERROR(walk.Forward(primals, active));
  CotangentGraphResult result;
  result.outputs = walk.Outputs();
  CLEAVE_ASSIGN_OR_RETURN(result.cotangents, walk.Backward(cotangents));
  return result;
}

}  // namespace cleave
