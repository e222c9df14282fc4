#include "transforms/partition/partition_figures.h"

#include <algorithm>

#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

struct Totals {
  int64_t nodes = 0;
  double operations = 0;
  double cost = 0;
};

absl::StatusOr<Totals> TotalsOf(const Graph& graph, CostModel& costs) {
  Totals totals;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    CLEAVE_ASSIGN_OR_RETURN(const NodeCost cost, costs.Of(graph, Value{id}));
    if (cost.kind < RecomputeClass::kFused) continue;
    ++totals.nodes;
    totals.operations += cost.operations;
    totals.cost += costs.InBytes(cost);
  }
  return totals;
}

SavedFigure Describe(const JointGraph& joint, const Partition& partition,
                     int number) {
  const Graph& forward = partition.forward;
  const NamedValue& named = forward.outputs()[joint.outputs + number];
  const TensorType& type = forward.type(named.value);
  SavedFigure saved;
  saved.name = named.name;
  saved.type = type;
  saved.offloaded =
      std::find(partition.offloaded.begin(), partition.offloaded.end(),
                number) != partition.offloaded.end();
  for (int i = 0; i < joint.primals; ++i) {
    if (forward.inputs()[i].value != named.value) continue;
    saved.kind =
        joint.is_static[i] ? SavedKind::kStaticInput : SavedKind::kInput;
    saved.of = forward.inputs()[i].name;
    return saved;
  }
  for (int i = 0; i < joint.outputs; ++i) {
    if (forward.outputs()[i].value != named.value) continue;
    saved.kind = SavedKind::kOutput;
    saved.of = forward.outputs()[i].name;
    return saved;
  }
  const bool is_empty = std::find(type.shape.begin(), type.shape.end(),
                                  Dim(0)) != type.shape.end();
  saved.kind = is_empty ? SavedKind::kExtents : SavedKind::kActivation;
  Value made = named.value;
  if (forward.node(made).op == ToOpId(Primitive::kResult)) {
    made = forward.operands(made)[0];
  }
  saved.of = std::string(forward.context()->op_name(forward.node(made).op));
  return saved;
}

}  // namespace

absl::string_view SavedKindName(SavedKind kind) {
  switch (kind) {
    case SavedKind::kActivation:
      return "activation";
    case SavedKind::kInput:
      return "input";
    case SavedKind::kStaticInput:
      return "static input";
    case SavedKind::kOutput:
      return "output";
    case SavedKind::kExtents:
      return "extents";
  }
  return "";
}

absl::StatusOr<PartitionFigures> FiguresOf(const JointGraph& joint,
                                           const Partition& partition,
                                           CostModel& costs) {
  PartitionFigures figures;
  for (int i = 0; i < partition.saved; ++i) {
    figures.saved.push_back(Describe(joint, partition, i));
    SavedFigure& saved = figures.saved.back();
    saved.bytes = costs.Bytes(saved.type);
    if (saved.kind == SavedKind::kActivation ||
        saved.kind == SavedKind::kInput) {
      figures.saved_bytes += saved.bytes;
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Totals whole, TotalsOf(joint.graph, costs));
  CLEAVE_ASSIGN_OR_RETURN(const Totals forward,
                          TotalsOf(partition.forward, costs));
  CLEAVE_ASSIGN_OR_RETURN(const Totals backward,
                          TotalsOf(partition.backward, costs));
  figures.forward_nodes = forward.nodes;
  figures.backward_nodes = backward.nodes;
  figures.recomputed_nodes = forward.nodes + backward.nodes - whole.nodes;
  figures.recomputed_operations =
      forward.operations + backward.operations - whole.operations;
  figures.recomputed_cost = forward.cost + backward.cost - whole.cost;
  return figures;
}

}  // namespace cleave::aot
