#include "engine/ir/rewrite_graph.h"

namespace cleave {

GraphCopy::GraphCopy(const Graph& graph)
    : graph_(graph), builder_(graph.context()), values_(graph.size()) {
  builder_.Reserve(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    Set(input.value, builder_.Input(input.name, graph.type(input.value)));
  }
}

absl::Span<const Value> GraphCopy::Operands(Value v) {
  operands_.clear();
  for (const Value operand : graph_.operands(v)) {
    operands_.push_back(of(operand));
  }
  return operands_;
}

Value GraphCopy::Keep(Value v) { return Keep(v, Operands(v)); }

Value GraphCopy::Keep(Value v, AttributesId attributes) {
  const Node& node = graph_.node(v);
  return builder_.AddTyped(node.op, attributes, node.type, Operands(v),
                           node.provenance);
}

Value GraphCopy::Keep(Value v, absl::Span<const Value> operands) {
  const Node& node = graph_.node(v);
  return builder_.AddTyped(node.op, node.attributes, node.type, operands,
                           node.provenance);
}

Value GraphCopy::Replace(Value v, std::vector<Value> results) {
  const Value first = results[0];
  if (results.size() > 1) results_.emplace(v.id, std::move(results));
  return first;
}

bool GraphCopy::IsDone(Value v) {
  if (of(v).valid()) return true;
  if (results_.empty() || graph_.node(v).op != ToOpId(Primitive::kResult)) {
    return false;
  }
  const auto found = results_.find(graph_.operands(v)[0].id);
  if (found == results_.end()) return false;
  Set(v, found->second[graph_.attributes(v).GetInt("index")]);
  return true;
}

absl::StatusOr<Graph> GraphCopy::Build() && {
  for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
  std::vector<NamedValue> outputs = graph_.outputs();
  for (NamedValue& output : outputs) output.value = of(output.value);
  return std::move(builder_).Build(std::move(outputs));
}

}  // namespace cleave
