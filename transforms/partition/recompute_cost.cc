#include "transforms/partition/recompute_cost.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/codegen/rare_sides.h"
#include "ops/element_cost.h"
#include "ops/status_macros.h"

namespace cleave::aot {

RecomputeClass RecomputeClassOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kBroadcastInDim:
    case Primitive::kReshape:
    case Primitive::kTranspose:
      return RecomputeClass::kView;
    case Primitive::kWindowsAdd:
      return RecomputeClass::kHeavy;
    default:
      break;
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
      return RecomputeClass::kFree;
    case PrimitiveClass::kProjection:
      return RecomputeClass::kProjection;
    case PrimitiveClass::kPointwise:
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kWindow:
    case PrimitiveClass::kGather:
    case PrimitiveClass::kRandom:
      return RecomputeClass::kFused;
    case PrimitiveClass::kReduction:
      return RecomputeClass::kReduction;
    case PrimitiveClass::kContraction:
      return RecomputeClass::kContraction;
    case PrimitiveClass::kScan:
    case PrimitiveClass::kScatter:
    case PrimitiveClass::kSort:
    case PrimitiveClass::kControl:
      return RecomputeClass::kHeavy;
    case PrimitiveClass::kDynamic:
      return RecomputeClass::kNever;
  }
  return RecomputeClass::kNever;
}

double CostModel::Extent(const Dim& dim) const {
  if (dim.IsConstant()) return static_cast<double>(*dim.Value());
  DimValues values;
  for (const std::string& name : dim.Variables()) {
    const auto it = options_.extents.find(name);
    values[name] =
        it == options_.extents.end() ? options_.extent_hint : it->second;
  }
  const absl::StatusOr<int64_t> extent = dim.Evaluate(values);
  // An expression that overflows, or divides by 0, at the hints.
  if (!extent.ok()) return static_cast<double>(options_.extent_hint);
  return std::max<double>(0, static_cast<double>(*extent));
}

double CostModel::Elements(const TensorType& type) const {
  double elements = 1;
  for (const Dim& dim : type.shape) elements *= Extent(dim);
  return elements;
}

double CostModel::Bytes(const TensorType& type) const {
  return Elements(type) * ByteSize(type.dtype);
}

double CostModel::Bytes(const Graph& graph, Value node) {
  const auto [it, added] = bytes_.emplace(graph.node(node).type, 0);
  if (added) {
    for (const TensorType& type : graph.types(node)) it->second += Bytes(type);
  }
  return it->second;
}

double CostModel::InBytes(const NodeCost& cost) const {
  const double arithmetic = cost.operations / options_.operations_per_byte;
  return cost.kind <= RecomputeClass::kFused ? arithmetic
                                             : arithmetic + cost.traffic;
}

double CostModel::PrimitiveOperations(const Graph& graph, Value node) const {
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  const absl::Span<const Value> operands = graph.operands(node);
  const double elements = Elements(graph.types(node).front());
  switch (RecomputeClassOf(primitive)) {
    case RecomputeClass::kFree:
    case RecomputeClass::kView:
    case RecomputeClass::kProjection:
    case RecomputeClass::kNever:
      return 0;
    case RecomputeClass::kFused:
      if (ClassOf(primitive) == PrimitiveClass::kPointwise ||
          ClassOf(primitive) == PrimitiveClass::kRandom) {
        return elements * CostOf(primitive);
      }
      return elements;
    case RecomputeClass::kReduction:
      return Elements(graph.type(operands[0]));
    case RecomputeClass::kContraction: {
      const TensorType& a = graph.type(operands[0]);
      const TensorType& b = graph.type(operands[1]);
      if (primitive == Primitive::kDotGeneral) {
        double shared = 1;
        for (int64_t axis : graph.attributes(node).GetInts("contract_a")) {
          shared *= Extent(a.shape[axis]);
        }
        return 2 * elements * shared;
      }
      // Each output reads what one output channel of the filter holds.
      const double channels = Extent(b.shape[0]);
      return channels == 0 ? 0 : 2 * elements * Elements(b) / channels;
    }
    case RecomputeClass::kHeavy:
      if (ClassOf(primitive) == PrimitiveClass::kSort) {
        const double n =
            Extent(graph.types(node)
                       .front()
                       .shape[graph.attributes(node).GetInt("axis")]);
        return elements * std::log2(std::max(2.0, n));
      }
      if (ClassOf(primitive) == PrimitiveClass::kScatter) {
        return Elements(graph.type(operands[2]));
      }
      if (ClassOf(primitive) == PrimitiveClass::kWindow) {
        return Elements(graph.type(operands[0]));
      }
      return 2 * elements;  // Scans along an axis.
  }
  return 0;
}

absl::StatusOr<NodeCost> CostModel::OfBody(const Graph& body) {
  bool primitive = true;
  for (uint32_t id = 0; id < body.size(); ++id) {
    primitive &= IsPrimitive(body.node(Value{id}).op);
  }
  const std::vector<bool> seldom =
      primitive ? OnRareSides(body) : std::vector<bool>(body.size(), false);
  NodeCost sum;
  for (uint32_t id = 0; id < body.size(); ++id) {
    CLEAVE_ASSIGN_OR_RETURN(const NodeCost cost, Of(body, Value{id}));
    sum.kind = std::max(sum.kind, cost.kind);
    if (!seldom[id]) sum.operations += cost.operations;
  }
  return sum;
}

absl::StatusOr<NodeCost> CostModel::OfCall(const Graph& graph, Value node) {
  Signature signature = RuleSet::SignatureOf(graph, node);
  const auto it = calls_.find(signature);
  if (it != calls_.end()) return it->second;
  if (rules_.NeedsHost(signature.op)) {
    // A host's function may cost anything: it is not run again.
    NodeCost never;
    never.kind = RecomputeClass::kNever;
    return never;
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
  CLEAVE_ASSIGN_OR_RETURN(const NodeCost cost, OfBody(*body));
  calls_.emplace(std::move(signature), cost);
  return cost;
}

absl::StatusOr<NodeCost> CostModel::OfControl(const Graph& graph, Value node) {
  const Attributes& attributes = graph.attributes(node);
  double steps = 1;
  if (const StaticValue* length = attributes.Find("length")) {
    steps = Extent(length->AsDim());
  }
  if (graph.node(node).op == ToOpId(Primitive::kWhile)) {
    const StaticValue* max = attributes.Find("max");
    steps = max == nullptr ? static_cast<double>(options_.extent_hint)
                           : Extent(max->AsDim());
  }
  NodeCost sum;
  for (const auto& [name, value] : attributes.values()) {
    if (value.kind() != StaticValue::Kind::kRegion) continue;
    CLEAVE_ASSIGN_OR_RETURN(const NodeCost cost,
                            OfBody(*value.AsRegion().graph));
    sum.kind = std::max(sum.kind, cost.kind);
    sum.operations += steps * cost.operations;
  }
  sum.kind = std::max(sum.kind, RecomputeClass::kHeavy);
  return sum;
}

absl::StatusOr<NodeCost> CostModel::Of(const Graph& graph, Value node) {
  NodeCost cost;
  const OpId op = graph.node(node).op;
  if (!IsPrimitive(op)) {
    CLEAVE_ASSIGN_OR_RETURN(cost, OfCall(graph, node));
  } else if (ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl) {
    CLEAVE_ASSIGN_OR_RETURN(cost, OfControl(graph, node));
  } else {
    cost.kind = RecomputeClassOf(ToPrimitive(op));
    cost.operations = PrimitiveOperations(graph, node);
  }
  if (cost.kind < RecomputeClass::kFused) return cost;
  cost.traffic = Bytes(graph, node);
  for (Value operand : graph.operands(node)) {
    cost.traffic += Bytes(graph, operand);
  }
  cost.cheap = cost.kind < RecomputeClass::kContraction ||
               (cost.kind == RecomputeClass::kContraction &&
                cost.operations <= options_.cheap_contraction * cost.traffic);
  return cost;
}

absl::StatusOr<double> CostModel::Operations(const Graph& graph) {
  CLEAVE_ASSIGN_OR_RETURN(const NodeCost cost, OfBody(graph));
  return cost.operations;
}

}  // namespace cleave::aot
