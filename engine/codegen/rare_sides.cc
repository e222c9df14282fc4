#include "engine/codegen/rare_sides.h"

#include <algorithm>

#include "engine/codegen/element_support.h"
#include "engine/ir/filled_with.h"
#include "ops/dtype.h"
#include "ops/element_cost.h"
#include "ops/exact.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

using Users = std::vector<std::vector<uint32_t>>;

// The readers of each node, once for each operand; a result of the graph is
// read by a node behind the last.
Users UsersIn(const Graph& graph) {
  Users users(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) {
      users[operand.id].push_back(id);
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    users[output.value.id].push_back(static_cast<uint32_t>(graph.size()));
  }
  return users;
}

// The pointwise nodes that `side`, an operand of `select`, rests on and no
// other node does, nor a result of the graph.
std::vector<Value> NodesOfSide(const Graph& graph, const Users& users,
                               Value select, Value side) {
  std::vector<Value> nodes;
  if (users[side.id] != std::vector<uint32_t>{select.id}) return nodes;
  // With room for the reader of the graph's results, which is never inside.
  std::vector<bool> inside(graph.size() + 1, false);
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
    nodes.push_back(Value{id});
  }
  return nodes;
}

int CostOfSide(const Graph& graph, const Users& users, Value select,
               Value side) {
  int cost = 0;
  for (const Value v : NodesOfSide(graph, users, select, side)) {
    const Primitive primitive = ToPrimitive(graph.node(v).op);
    if (!IsComputed(primitive)) continue;
    cost += CostOf(primitive) * (graph.type(v).dtype == DType::kF64 ? 2 : 1);
  }
  return cost;
}

RareSide DearSide(const Graph& graph, const Users& users, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kSelect)) return RareSide::kNone;
  const auto operands = graph.operands(v);
  const int first = CostOfSide(graph, users, v, operands[1]);
  const int second = CostOfSide(graph, users, v, operands[2]);
  if (std::max(first, second) < kRareSideCost ||
      std::min(first, second) < kUsualSideCost) {
    return RareSide::kNone;
  }
  return first >= second ? RareSide::kFirst : RareSide::kSecond;
}

bool Reduces(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Primitive primitive = ToPrimitive(graph.node(Value{id}).op);
    if (ClassOf(primitive) == PrimitiveClass::kReduction) return true;
  }
  return false;
}

// Whether v is 0 where it is not the second side, which costs something.
bool IsMasked(const Graph& graph, const Users& users, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kSelect)) return false;
  const auto operands = graph.operands(v);
  return FilledWith(graph, operands[1]) == Exact(0) &&
         CostOfSide(graph, users, v, operands[2]) >= kMaskedSideCost;
}

}  // namespace

std::vector<RareSide> RareSides(const Graph& graph) {
  const Users users = UsersIn(graph);
  const bool reduces = Reduces(graph);
  std::vector<RareSide> sides;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    sides.push_back(reduces && IsMasked(graph, users, Value{id})
                        ? RareSide::kSecond
                        : DearSide(graph, users, Value{id}));
  }
  return sides;
}

std::vector<bool> OnRareSides(const Graph& graph) {
  const Users users = UsersIn(graph);
  std::vector<bool> seldom(graph.size(), false);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const RareSide side = DearSide(graph, users, Value{id});
    if (side == RareSide::kNone) continue;
    const Value operand =
        graph.operands(Value{id})[side == RareSide::kFirst ? 1 : 2];
    for (const Value v : NodesOfSide(graph, users, Value{id}, operand)) {
      seldom[v.id] = true;
    }
  }
  return seldom;
}

}  // namespace cleave
