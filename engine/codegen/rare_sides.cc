#include "engine/codegen/rare_sides.h"

#include <algorithm>

#include "engine/codegen/element_support.h"
#include "ops/dtype.h"
#include "ops/element_cost.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// The operations of what `side`, an operand of `select`, rests on and no other
// node does, nor a result of the graph.
int CostOfSide(const Graph& graph,
               const std::vector<std::vector<uint32_t>>& users, Value select,
               Value side) {
  if (users[side.id] != std::vector<uint32_t>{select.id}) return 0;
  // With room for the reader of the graph's results, which is never inside.
  std::vector<bool> inside(graph.size() + 1, false);
  int cost = 0;
  for (uint32_t id = side.id + 1; id-- > 0;) {
    const std::vector<uint32_t>& readers = users[id];
    const bool is_own =
        id == side.id ||
        (!readers.empty() &&
         std::all_of(readers.begin(), readers.end(),
                     [&](uint32_t user) { return inside[user]; }));
    if (!is_own) continue;
    const Primitive primitive = ToPrimitive(graph.node(Value{id}).op);
    if (ClassOf(primitive) != PrimitiveClass::kPointwise) continue;
    inside[id] = true;
    if (!IsComputed(primitive)) continue;
    const bool wide = graph.type(Value{id}).dtype == DType::kF64;
    cost += CostOf(primitive) * (wide ? 2 : 1);
  }
  return cost;
}

}  // namespace

std::vector<RareSide> RareSides(const Graph& graph) {
  std::vector<RareSide> sides(graph.size(), RareSide::kNone);
  // The readers of each node, once for each operand; a result of the graph is
  // read by a node behind the last.
  std::vector<std::vector<uint32_t>> users(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) {
      users[operand.id].push_back(id);
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    users[output.value.id].push_back(static_cast<uint32_t>(graph.size()));
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(Value{id}).op != ToOpId(Primitive::kSelect)) continue;
    const auto operands = graph.operands(Value{id});
    const int first = CostOfSide(graph, users, Value{id}, operands[1]);
    const int second = CostOfSide(graph, users, Value{id}, operands[2]);
    if (std::max(first, second) < kRareSideCost ||
        std::min(first, second) < kUsualSideCost) {
      continue;
    }
    sides[id] = first >= second ? RareSide::kFirst : RareSide::kSecond;
  }
  return sides;
}

}  // namespace cleave
