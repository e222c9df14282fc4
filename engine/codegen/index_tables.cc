#include "engine/codegen/index_tables.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/codegen/base_reads.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/index_check.h"
#include "ops/element_cost.h"

namespace cleave {
namespace {

// An integer division costs as much, less than which a kernel computes.
constexpr int64_t kWorthStoring = 16;

// The product of extents, where each is a number; at most one above the limit.
std::optional<int64_t> CountOf(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& extent : shape) {
    const std::optional<int64_t> value = extent.Value();
    if (!value.has_value()) return std::nullopt;
    if (*value == 0) return 0;
    count = *value > kMaxTableElements
                ? kMaxTableElements + 1
                : std::min(count * *value, kMaxTableElements + 1);
  }
  return count;
}

// Whether it is one operation of IEEE 754, or of a few that follow from it.
bool IsElementary(Primitive primitive) {
  return CostOf(primitive) == 1 || primitive == Primitive::kDiv;
}

// Whether no input decides the node, whose operands are `closed` or not.
bool IsClosed(const Graph& graph, Value v, const std::vector<bool>& closed) {
  if (!IsPrimitive(graph.node(v).op) || graph.types(v).size() != 1) {
    return false;
  }
  const TensorType& type = graph.type(v);
  const std::optional<int64_t> count = CountOf(type.shape);
  const bool whole = IsInt(type.dtype) || IsBool(type.dtype);
  const bool wide = type.dtype == DType::kF32 || type.dtype == DType::kF64;
  if ((!whole && !wide) || !count.has_value() || *count == 0 ||
      *count > kMaxTableElements) {
    return false;
  }
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  if (primitive == Primitive::kConstant || primitive == Primitive::kIota) {
    return true;
  }
  if (primitive == Primitive::kExtent) {
    return graph.attributes(v).Get("value").AsDim().Value().has_value();
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kPointwise:
      if (wide && !IsElementary(primitive)) return false;
      break;
    case PrimitiveClass::kReduction:
    case PrimitiveClass::kScatter:
      if (wide) return false;  // kernels have other orders
      break;
    case PrimitiveClass::kGather:
      // An index out of range is an error of the run.
      if (graph.attributes(v).Get("mode").AsString() != "fill") return false;
      break;
    case PrimitiveClass::kMovement:
      break;
    default:
      return false;
  }
  if (!CanLower(graph, v).ok()) return false;
  const auto operands = graph.operands(v);
  // An integer that is divided by 0 is an error of the run, not of the plan.
  if (DividesIntegers(graph, v) && !IsNeverZero(graph, operands[1])) {
    return false;
  }
  return !operands.empty() &&
         std::all_of(operands.begin(), operands.end(),
                     [&](Value operand) { return closed[operand.id]; });
}

}  // namespace

std::vector<bool> ClosedNodes(const Graph& graph) {
  std::vector<bool> closed(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    closed[id] = IsClosed(graph, Value{id}, closed);
  }
  return closed;
}

std::vector<bool> IndexTables(const Graph& graph) {
  const std::vector<bool> closed = ClosedNodes(graph);
  std::vector<int64_t> cost(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (!closed[id] || IsMovement(graph, v)) {
      for (const Value operand : graph.operands(v)) {
        cost[id] = std::max(cost[id], cost[operand.id]);
      }
      continue;
    }
    cost[id] = CostOf(ToPrimitive(graph.node(v).op));
    for (const Value operand : graph.operands(v)) {
      cost[id] = std::min(cost[id] + cost[operand.id], kWorthStoring);
    }
  }
  std::vector<bool> tables(graph.size());
  const auto add = [&](Value v) {
    tables[v.id] = tables[v.id] || (closed[v.id] && !IsMovement(graph, v) &&
                                    !IsFloat(graph.type(v).dtype) &&
                                    cost[v.id] >= kWorthStoring);
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (closed[id] || IsMovement(graph, Value{id})) continue;
    for (const BaseRead& read : BaseReads(graph, Value{id})) add(read.base);
  }
  for (const NamedValue& output : graph.outputs()) {
    add(output.value);
    if (!IsMovement(graph, output.value)) continue;
    for (const BaseRead& read : BaseReads(graph, output.value)) add(read.base);
  }
  return tables;
}

std::vector<Value> NodesOfTable(const Graph& graph, Value table) {
  std::vector<Value> nodes;
  std::vector<bool> seen(table.id + 1);
  seen[table.id] = true;
  for (uint32_t id = table.id + 1; id-- > 0;) {
    if (!seen[id]) continue;
    if (!IsMovement(graph, Value{id})) nodes.push_back(Value{id});
    for (const Value operand : graph.operands(Value{id})) {
      seen[operand.id] = true;
    }
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace cleave
