#include "engine/codegen/replace_at_zero.h"

#include "absl/types/span.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"

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

// Either zero: the condition is the same.
bool IsZero(const Graph& graph, Value v) {
  return FilledWith(graph, v) == Exact(0);
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
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    if (graph.node(v).op != ToOpId(Primitive::kSelect)) return copy.Keep(v);
    const absl::Span<const Value> operands = graph.operands(v);
    if (!KeepsZeros(PrimitiveOf(graph, operands[1]))) return copy.Keep(v);
    const Value x = graph.operands(operands[1])[0];
    if (!HoldsAtZero(graph, operands[0], x)) return copy.Keep(v);
    return copy.Keep(v,
                     {copy.of(operands[0]), copy.of(x), copy.of(operands[2])});
  });
}

}  // namespace cleave
