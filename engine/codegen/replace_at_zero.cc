#include "engine/codegen/replace_at_zero.h"

#include <utility>
#include <vector>

namespace cleave {
namespace {

// Odd functions and roots: f(+0) is +0 and f(-0) is -0.
bool KeepsZeros(Primitive primitive) {
  switch (primitive) {
    case Primitive::kExpm1:
    case Primitive::kLog1p:
    case Primitive::kSqrt:
    case Primitive::kCbrt:
    case Primitive::kSin:
    case Primitive::kTan:
    case Primitive::kAsin:
    case Primitive::kAtan:
    case Primitive::kSinh:
    case Primitive::kTanh:
    case Primitive::kAsinh:
    case Primitive::kAtanh:
    case Primitive::kErf:
    case Primitive::kErfinv:
      return true;
    default:
      return false;
  }
}

Primitive PrimitiveOf(const Graph& graph, Value v) {
  return ToPrimitive(graph.node(v).op);
}

bool IsZero(const Graph& graph, Value v) {
  while (PrimitiveOf(graph, v) == Primitive::kBroadcastInDim) {
    v = graph.operands(v)[0];
  }
  if (PrimitiveOf(graph, v) != Primitive::kConstant) return false;
  const StaticValue& value = graph.attributes(v).Get("value");
  return value.kind() == StaticValue::Kind::kReal && value.AsReal() == Exact(0);
}

// Whether the condition holds only where x is 0.
bool HoldsAtZero(const Graph& graph, Value condition, Value x) {
  if (PrimitiveOf(graph, condition) != Primitive::kEq) return false;
  const auto sides = graph.operands(condition);
  return (sides[0] == x && IsZero(graph, sides[1])) ||
         (sides[1] == x && IsZero(graph, sides[0]));
}

}  // namespace

Graph ReplaceAtZero(const Graph& graph) {
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    copies[input.value.id] = builder.Input(input.name, graph.type(input.value));
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const Node& node = graph.node(v);
    if (node.op == ToOpId(Primitive::kInput)) continue;
    std::vector<Value> operands;
    for (const Value operand : graph.operands(v)) {
      operands.push_back(copies[operand.id]);
    }
    if (node.op == ToOpId(Primitive::kSelect)) {
      const Value chosen = graph.operands(v)[1];
      if (KeepsZeros(PrimitiveOf(graph, chosen))) {
        const Value x = graph.operands(chosen)[0];
        if (HoldsAtZero(graph, graph.operands(v)[0], x)) {
          operands[1] = copies[x.id];
        }
      }
    }
    copies[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
  }
  std::vector<NamedValue> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back({output.name, copies[output.value.id]});
  }
  return *std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
