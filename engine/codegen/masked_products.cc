#include "engine/codegen/masked_products.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool IsElementwise(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  if (!IsPrimitive(op)) return false;
  const PrimitiveClass of = ClassOf(ToPrimitive(op));
  return of == PrimitiveClass::kPointwise || of == PrimitiveClass::kMovement;
}

bool IsSelection(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kSelect);
}

// By node, whether it is made of inputs and indices without a float.
std::vector<bool> MadeOfIntegers(const Graph& graph) {
  std::vector<bool> made(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (graph.types(v).size() != 1 || IsFloat(graph.type(v).dtype)) continue;
    const auto operands = graph.operands(v);
    made[id] =
        operands.empty() || (IsElementwise(graph, v) &&
                             std::all_of(operands.begin(), operands.end(),
                                         [&](Value x) { return made[x.id]; }));
  }
  return made;
}

}  // namespace

Graph MarkZeros(const Graph& graph) {
  const std::vector<bool> mask = MadeOfIntegers(graph);
  std::vector<bool> masked(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (!IsElementwise(graph, v) || !IsFloat(graph.type(v).dtype)) continue;
    const auto operands = graph.operands(v);
    masked[id] = std::any_of(operands.begin(), operands.end(),
                             [&](Value x) { return masked[x.id]; }) ||
                 (IsSelection(graph, v) && mask[operands[0].id] &&
                  (FilledWith(graph, operands[1]).has_value() ||
                   FilledWith(graph, operands[2]).has_value()));
  }
  const auto applies = [&](Value v) {
    if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return false;
    const DType dtype = graph.type(v).dtype;
    return (dtype == DType::kF32 || dtype == DType::kF64) &&
           (masked[graph.operands(v)[0].id] || masked[graph.operands(v)[1].id]);
  };
  return RewriteNodes(graph, applies, [&](GraphCopy& copy, Value v) {
    Attributes attributes = graph.attributes(v);
    attributes.Set("zeros", true);
    return copy.builder().Apply(Primitive::kDotGeneral, copy.Operands(v),
                                attributes);
  });
}

std::optional<Wanted> WantedWhere(const Graph& graph, Value v) {
  const Shape& shape = graph.type(v).shape;
  for (;;) {
    std::optional<Value> reader;
    for (uint32_t id = v.id + 1; id < graph.size(); ++id) {
      for (const Value operand : graph.operands(Value{id})) {
        if (operand != v) continue;
        if (reader.has_value()) return std::nullopt;
        reader = Value{id};
      }
    }
    for (const NamedValue& output : graph.outputs()) {
      if (output.value == v) return std::nullopt;
    }
    if (!reader.has_value() || graph.type(*reader).shape != shape ||
        ClassOf(ToPrimitive(graph.node(*reader).op)) !=
            PrimitiveClass::kPointwise) {
      return std::nullopt;
    }
    const auto operands = graph.operands(*reader);
    if (IsSelection(graph, *reader) && operands[0] != v &&
        MadeOfIntegers(graph)[operands[0].id]) {
      return Wanted{operands[0], operands[1] == v};
    }
    v = *reader;
  }
}

}  // namespace cleave
