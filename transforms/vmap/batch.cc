#include "transforms/vmap/batch.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

constexpr TypeId kNoType = UINT32_MAX;

// Walks one graph; see BatchGraph.
class Batcher {
 public:
  Batcher(GraphBuilder& builder, const Graph& graph, const Dim& batch,
          RuleTable& rules)
      : builder_(builder),
        graph_(graph),
        batch_(batch),
        rules_(rules),
        batch_id_(rules.BatchId(batch)),
        values_(graph.size()) {}

  BatchedResults Run(absl::Span<const BatchedValue> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      values_[graph_.inputs()[i].value.id] = arguments[i];
    }
    for (uint32_t id = 0; id < values_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(Visit(Value{id}));
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    std::vector<BatchedValue> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      outputs.push_back(values_[output.value.id]);
    }
    return outputs;
  }

 private:
  absl::Status Visit(Value v) {
    const Node& node = graph_.node(v);
    if (node.op == ToOpId(Primitive::kInput)) return absl::OkStatus();
    const absl::Span<const Value> operands = graph_.operands(v);
    if (node.op == ToOpId(Primitive::kResult)) {
      const auto it = tuples_.find(operands[0].id);
      if (it != tuples_.end()) {
        values_[v.id] = it->second[graph_.attributes(v).GetInt("index")];
        return absl::OkStatus();
      }
    }
    batched_.clear();
    bool any = false;
    for (Value operand : operands) {
      batched_.push_back(values_[operand.id].batched);
      any |= batched_.back();
    }
    arguments_.clear();
    if (!any) {
      for (Value operand : operands) {
        arguments_.push_back(values_[operand.id].value);
      }
      values_[v.id].value = builder_.AddTyped(
          node.op, node.attributes, node.type, arguments_, node.provenance);
      return absl::OkStatus();
    }
    if (IsPrimitive(node.op) &&
        ClassOf(ToPrimitive(node.op)) == PrimitiveClass::kPointwise) {
      for (Value operand : operands) arguments_.push_back(Front(operand));
      values_[v.id] = {
          builder_.AddTyped(node.op, node.attributes, BatchedType(node.type),
                            arguments_, node.provenance),
          true};
      return absl::OkStatus();
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const BatchRule> rule,
                            rules_.Batch(graph_, v, batched_, batch_id_));
    for (Value operand : operands) {
      arguments_.push_back(values_[operand.id].value);
    }
    std::vector<Value> results = builder_.Inline(rule->graph, arguments_);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = Typed(results[i], rule->batched[i], node.type, i);
    }
    if (results.size() == 1 && graph_.types(v).size() == 1) {
      values_[v.id] = {results[0], rule->batched[0]};
      return absl::OkStatus();
    }
    std::vector<BatchedValue>& tuple = tuples_[v.id];
    for (size_t i = 0; i < results.size(); ++i) {
      tuple.push_back({results[i], rule->batched[i]});
    }
    return absl::OkStatus();
  }

  // The operand with the batch in front; each is spread at most once.
  Value Front(Value v) {
    const BatchedValue& value = values_[v.id];
    if (value.batched) return value.value;
    Value& spread = spread_[v.id];
    if (!spread.valid()) spread = InFront(builder_, value, batch_);
    return spread;
  }

  // `value` in the form of result `i` of a node of `type`: an extent may be
  // another expression for the same number, by what the node's maker knew.
  Value Typed(Value value, bool batched, TypeId type, size_t i) {
    Context& context = *builder_.context();
    const TypeId is = builder_.graph().node(value).type;
    if (context.types(type).size() == 1 &&
        is == (batched ? BatchedType(type) : type)) {
      return value;
    }
    TensorType wanted = context.types(type)[i];
    if (batched) wanted = WithBatch(wanted, batch_);
    return emit::WithShape(builder_, value, wanted.shape);
  }

  TypeId BatchedType(TypeId type) {
    if (type >= batched_types_.size()) {
      batched_types_.resize(type + 1, kNoType);
    }
    TypeId& batched = batched_types_[type];
    if (batched == kNoType) {
      Context& context = *builder_.context();
      batched = context.Intern(WithBatch(context.types(type)[0], batch_));
    }
    return batched;
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  const Dim& batch_;
  RuleTable& rules_;
  const uint32_t batch_id_;
  std::vector<BatchedValue> values_;  // by node; tuples are in tuples_
  absl::flat_hash_map<uint32_t, std::vector<BatchedValue>> tuples_;
  absl::flat_hash_map<uint32_t, Value> spread_;
  std::vector<TypeId> batched_types_;
  absl::InlinedVector<bool, 8> batched_;     // scratch
  absl::InlinedVector<Value, 8> arguments_;  // scratch
};

}  // namespace

BatchedResults BatchGraph(GraphBuilder& builder, const Graph& graph,
                          absl::Span<const BatchedValue> arguments,
                          const Dim& batch, RuleTable& rules) {
  CLEAVE_CHECK(arguments.size() == graph.inputs().size())
      << arguments.size() << " arguments";
  return Batcher(builder, graph, batch, rules).Run(arguments);
}

TensorType WithBatch(const TensorType& type, const Dim& batch) {
  TensorType batched = type;
  batched.shape.insert(batched.shape.begin(), batch);
  return batched;
}

Value InFront(GraphBuilder& builder, BatchedValue value, const Dim& batch) {
  if (value.batched) return value.value;
  const TensorType type = builder.type(value.value);
  return emit::Broadcast(builder, value.value, WithBatch(type, batch).shape,
                         emit::Range(type.rank(), 1));
}

absl::StatusOr<Value> BatchNode::Same(const Attributes& changed) const {
  std::vector<Value> fronts;
  for (size_t i = 0; i < operands.size(); ++i) {
    fronts.push_back(front(static_cast<int>(i)));
  }
  return builder.Add(primitive, changed, fronts);
}

BatchedResults BatchPrimitive(const BatchNode& node) {
  switch (ClassOf(node.primitive)) {
    case PrimitiveClass::kPointwise:
      return BatchPointwise(node);
    case PrimitiveClass::kMovement:
      return BatchMovement(node);
    case PrimitiveClass::kWindow:
      return BatchWindow(node);
    case PrimitiveClass::kReduction:
      return BatchReduction(node);
    case PrimitiveClass::kContraction:
      return BatchContraction(node);
    case PrimitiveClass::kScan:
      return BatchScan(node);
    case PrimitiveClass::kGather:
      return BatchGather(node);
    case PrimitiveClass::kScatter:
      return BatchScatter(node);
    case PrimitiveClass::kSort:
      return BatchSort(node);
    case PrimitiveClass::kRandom:
      return BatchRandom(node);
    case PrimitiveClass::kControl:
      return BatchControl(node);
    case PrimitiveClass::kDynamic:
      return Impossible(
          "ragged: `", PrimitiveName(node.primitive),
          "` has as many results as it finds, which differs per example");
    case PrimitiveClass::kLeaf:
    case PrimitiveClass::kProjection:
      break;
  }
  return absl::InternalError(absl::StrCat(
      "vmap: `", PrimitiveName(node.primitive), "` has no operand to batch"));
}

}  // namespace cleave
