// PartitionFigures: the memory that a partition holds, and the work that it
// does again.

#ifndef CLEAVE_TRANSFORMS_PARTITION_PARTITION_FIGURES_H_
#define CLEAVE_TRANSFORMS_PARTITION_PARTITION_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "ops/tensor_type.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/partition.h"
#include "transforms/partition/recompute_cost.h"

namespace cleave::aot {

enum class SavedKind : uint8_t {
  kActivation,   // computed by the forward half, held for the backward half
  kInput,        // a primal that is not static
  kStaticInput,  // lives on anyway
  kOutput,       // of the function: its caller holds it
  kExtents,      // without elements
};
// "activation", "input", "static input", "output", "extents".
absl::string_view SavedKindName(SavedKind kind);

struct SavedFigure {
  std::string name;  // in the halves: saved.0
  TensorType type;
  SavedKind kind = SavedKind::kActivation;
  // The name of the input or output that it is, else of the op that makes it.
  std::string of;
  bool offloaded = false;
  double bytes = 0;  // at the extents of the cost model
};

struct PartitionFigures {
  std::vector<SavedFigure> saved;  // in the order of the halves
  // The bytes that are held for the backward half alone: activations, and
  // inputs that are not static. Other kinds do not count.
  double saved_bytes = 0;
  // Nodes that compute something (views, constants and results of other nodes
  // do not).
  int64_t forward_nodes = 0;
  int64_t backward_nodes = 0;
  // How many more those are than in the joint graph, and what they cost:
  // arithmetic operations, and that and the memory traffic as bytes (see
  // recompute_cost.h).
  int64_t recomputed_nodes = 0;
  double recomputed_operations = 0;
  double recomputed_cost = 0;
};

// Errors of the bodies of the rules.
absl::StatusOr<PartitionFigures> FiguresOf(const JointGraph& joint,
                                           const Partition& partition,
                                           CostModel& costs);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_PARTITION_FIGURES_H_
