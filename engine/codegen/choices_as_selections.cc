#include "engine/codegen/choices_as_selections.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool MayFail(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  if (!IsPrimitive(op)) return true;
  const Primitive primitive = ToPrimitive(op);
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kReduction:
    case PrimitiveClass::kContraction:
      return false;
    case PrimitiveClass::kPointwise: {
      if (primitive != Primitive::kFloorDiv &&
          primitive != Primitive::kFloorMod) {
        return false;
      }
      const std::optional<Exact> divisor =
          FilledWith(graph, graph.operands(v)[1]);
      return !divisor.has_value() || *divisor == Exact(0);
    }
    default:
      return true;
  }
}

const Graph& Branch(const Graph& graph, Value v, const char* name) {
  return *graph.attributes(v).Get(name).AsRegion().graph;
}

bool IsSafeChoice(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kCond)) return false;
  for (const char* name : {"then", "else"}) {
    const Graph& branch = Branch(graph, v, name);
    for (uint32_t id = 0; id < branch.size(); ++id) {
      if (MayFail(branch, Value{id})) return false;
    }
  }
  return true;
}

}  // namespace

Graph ChoicesAsSelections(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return IsSafeChoice(graph, v); },
      [&](GraphCopy& copy, Value v) {
        GraphBuilder& builder = copy.builder();
        const auto operands = copy.Operands(v);
        const Value condition = operands[0];
        const std::vector<Value> arguments(operands.begin() + 1,
                                           operands.end());
        const std::vector<Value> a =
            builder.Inline(Branch(graph, v, "then"), arguments);
        const std::vector<Value> b =
            builder.Inline(Branch(graph, v, "else"), arguments);
        std::vector<Value> results;
        for (size_t i = 0; i < a.size(); ++i) {
          const Value chosen =
              builder.BroadcastInDim(condition, builder.type(a[i]).shape, {});
          results.push_back(
              builder.Apply(Primitive::kSelect, {chosen, a[i], b[i]}));
        }
        return copy.Replace(v, results);
      });
}

}  // namespace cleave
