#include "engine/codegen/reduction_spaces.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace cleave {
namespace {

ReductionSpace SpaceOf(const Graph& graph, Value reduction) {
  ReductionSpace space;
  space.shape = graph.type(graph.operands(reduction)[0]).shape;
  space.reduced.assign(space.shape.size(), false);
  for (const int64_t a : graph.attributes(reduction).GetInts("axes")) {
    space.reduced[a] = true;
  }
  return space;
}

// See RowsAndTotals::read. Nullopt where a row reads what is made of totals,
// which is a third level.
std::optional<std::vector<Value>> RowsRead(const Graph& graph,
                                           const ReductionSpace& totals) {
  const size_t size = graph.size();
  std::vector<bool> of_rows(size, false);
  std::vector<bool> of_totals(size, false);
  for (uint32_t id = 0; id < size; ++id) {
    const Value v{id};
    for (const Value operand : graph.operands(v)) {
      of_rows[id] = of_rows[id] || of_rows[operand.id];
      of_totals[id] = of_totals[id] || of_totals[operand.id];
    }
    if (!IsReduction(graph, v)) continue;
    const bool total = SpaceOf(graph, v) == totals;
    if (!total && of_totals[id]) return std::nullopt;
    of_rows[id] = of_rows[id] || !total;
    of_totals[id] = of_totals[id] || total;
  }
  std::set<Value> rows;
  std::vector<Value> stack;
  for (const NamedValue& output : graph.outputs()) {
    stack.push_back(output.value);
  }
  std::set<Value> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    const Value v = stack.back();
    stack.pop_back();
    if (!of_rows[v.id]) continue;
    const PrimitiveClass c = ClassOf(ToPrimitive(graph.node(v).op));
    if (!of_totals[v.id] &&
        (c == PrimitiveClass::kPointwise || c == PrimitiveClass::kReduction)) {
      rows.insert(v);
      continue;
    }
    for (const Value operand : graph.operands(v)) {
      if (seen.insert(operand).second) stack.push_back(operand);
    }
  }
  return std::vector<Value>(rows.begin(), rows.end());
}

}  // namespace

bool ReductionSpace::keeps_none() const {
  return std::find(reduced.begin(), reduced.end(), false) == reduced.end();
}

Shape ReductionSpace::RowShape() const {
  Shape kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!reduced[d]) kept.push_back(shape[d]);
  }
  return kept;
}

std::vector<ReductionSpace> ReductionSpaces(const Graph& graph) {
  std::vector<ReductionSpace> spaces;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (!IsReduction(graph, Value{id})) continue;
    ReductionSpace space = SpaceOf(graph, Value{id});
    if (std::find(spaces.begin(), spaces.end(), space) == spaces.end()) {
      spaces.push_back(std::move(space));
    }
  }
  return spaces;
}

std::optional<RowsAndTotals> FindRowsAndTotals(const Graph& graph) {
  std::vector<ReductionSpace> spaces = ReductionSpaces(graph);
  if (spaces.size() != 2) return std::nullopt;
  if (spaces[0].keeps_none()) std::swap(spaces[0], spaces[1]);
  RowsAndTotals found{spaces[0], spaces[1], {}};
  const Shape row_shape = found.rows.RowShape();
  if (!found.totals.keeps_none() || found.totals.shape != row_shape) {
    return std::nullopt;
  }
  std::optional<std::vector<Value>> read = RowsRead(graph, found.totals);
  if (!read.has_value()) return std::nullopt;
  found.read = *std::move(read);
  for (const Value v : found.read) {
    if (graph.type(v).shape != row_shape) return std::nullopt;
  }
  return found;
}

}  // namespace cleave
