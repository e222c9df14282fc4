#include "transforms/jvp/tangent_graph.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

class Differentiator {
 public:
  Differentiator(GraphBuilder& builder, const Graph& graph, RuleTable& rules)
      : builder_(builder),
        graph_(graph),
        rules_(rules),
        primals_(graph.size()),
        tangents_(graph.size()) {}

  absl::StatusOr<TangentGraphResult> Run(absl::Span<const Value> primals,
                                         absl::Span<const Value> tangents) {
    for (size_t i = 0; i < primals.size(); ++i) {
      const uint32_t id = graph_.inputs()[i].value.id;
      primals_[id] = primals[i];
      tangents_[id] = tangents[i];
    }
    for (uint32_t id = 0; id < primals_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(Visit(Value{id}));
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    TangentGraphResult result;
    for (const NamedValue& output : graph_.outputs()) {
      result.outputs.push_back(primals_[output.value.id]);
      result.tangents.push_back(tangents_[output.value.id]);
    }
    return result;
  }

 private:
  // A node with several results: its tangents, and the results themselves
  // where a joint loop or branch computes them.
  struct Tuple {
    std::vector<Value> results;
    std::vector<Value> tangents;
  };

  absl::Status Visit(Value v) {
    const Node& node = graph_.node(v);
    if (node.op == ToOpId(Primitive::kInput)) return absl::OkStatus();
    const absl::Span<const Value> operands = graph_.operands(v);
    if (node.op == ToOpId(Primitive::kResult)) {
      const auto it = tuples_.find(operands[0].id);
      if (it != tuples_.end()) {
        const int64_t index = graph_.attributes(v).GetInt("index");
        tangents_[v.id] = it->second.tangents[index];
        if (!it->second.results.empty()) {
          primals_[v.id] = it->second.results[index];
          return absl::OkStatus();
        }
      }
    }
    active_.clear();
    arguments_.clear();
    bool any = false;
    for (Value operand : operands) {
      arguments_.push_back(primals_[operand.id]);
      active_.push_back(tangents_[operand.id].valid());
      any |= active_.back();
    }
    if (any && IsControl(node.op)) return VisitJoint(v);
    primals_[v.id] = builder_.AddTyped(node.op, node.attributes, node.type,
                                       arguments_, node.provenance);
    if (!any || !HasTangents(v)) return absl::OkStatus();
    if (IsUnaryLinear(node)) {
      const Value tangent = tangents_[operands[0].id];
      tangents_[v.id] = builder_.AddTyped(node.op, node.attributes, node.type,
                                          {tangent}, node.provenance);
      return absl::OkStatus();
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const TangentRule> rule,
                            rules_.Tangent(graph_, v, active_));
    const bool tuple = graph_.types(v).size() > 1;
    if (rule->takes_results) {
      if (!tuple) {
        arguments_.push_back(primals_[v.id]);
      } else {
        for (size_t i = 0; i < graph_.types(v).size(); ++i) {
          arguments_.push_back(
              builder_.Result(primals_[v.id], static_cast<int>(i)));
        }
      }
    }
    AppendTangents(operands);
    const std::vector<Value> outputs = builder_.Inline(rule->graph, arguments_);
    std::vector<Value> tangents = Spread(*rule, outputs, 0);
    if (!tuple) {
      tangents_[v.id] = tangents[0];
    } else {
      tuples_[v.id].tangents = std::move(tangents);
    }
    return absl::OkStatus();
  }

  // Loops and branches run once for the primals and the tangents.
  absl::Status VisitJoint(Value v) {
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const TangentRule> rule,
                            rules_.Tangent(graph_, v, active_));
    AppendTangents(graph_.operands(v));
    std::vector<Value> outputs = builder_.Inline(rule->graph, arguments_);
    const size_t count = graph_.types(v).size();
    std::vector<Value> tangents = Spread(*rule, outputs, count);
    outputs.resize(count);
    if (count == 1) {
      primals_[v.id] = outputs[0];
      tangents_[v.id] = tangents[0];
    } else {
      tuples_[v.id] = {std::move(outputs), std::move(tangents)};
    }
    return absl::OkStatus();
  }

  void AppendTangents(absl::Span<const Value> operands) {
    for (Value operand : operands) {
      if (tangents_[operand.id].valid()) {
        arguments_.push_back(tangents_[operand.id]);
      }
    }
  }

  // One tangent per result from the rule's outputs, which begin at `first`.
  static std::vector<Value> Spread(const TangentRule& rule,
                                   const std::vector<Value>& outputs,
                                   size_t first) {
    std::vector<Value> tangents;
    for (bool has : rule.has_tangent) {
      tangents.push_back(has ? outputs[first++] : Value());
    }
    return tangents;
  }

  // Whether a tangent can leave the node.
  bool HasTangents(Value v) const {
    const OpId op = graph_.node(v).op;
    if (op == ToOpId(Primitive::kResult)) return false;  // done by its tuple
    if (IsPrimitive(op) &&
        DerivativeOf(ToPrimitive(op)) == DerivativeKind::kZero) {
      return false;
    }
    for (const TensorType& type : graph_.types(v)) {
      if (emit::IsInexact(type.dtype)) return true;
    }
    return false;
  }

  static bool IsUnaryLinear(const Node& node) {
    return IsPrimitive(node.op) && node.operand_count == 1 &&
           DerivativeOf(ToPrimitive(node.op)) == DerivativeKind::kLinear;
  }

  static bool IsControl(OpId op) {
    return IsPrimitive(op) &&
           ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl;
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  RuleTable& rules_;
  std::vector<Value> primals_;   // by node
  std::vector<Value> tangents_;  // by node; invalid: none
  absl::flat_hash_map<uint32_t, Tuple> tuples_;
  absl::InlinedVector<bool, 8> active_;      // scratch
  absl::InlinedVector<Value, 8> arguments_;  // scratch
};

}  // namespace

absl::StatusOr<TangentGraphResult> TangentGraph(
    GraphBuilder& builder, const Graph& graph, absl::Span<const Value> primals,
    absl::Span<const Value> tangents, RuleTable& rules) {
  CLEAVE_CHECK(primals.size() == graph.inputs().size() &&
               tangents.size() == primals.size())
      << primals.size() << " primals, " << tangents.size() << " tangents";
  return Differentiator(builder, graph, rules).Run(primals, tangents);
}

}  // namespace cleave
