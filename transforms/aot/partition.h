// Partition: a joint graph cut into a forward and a backward graph.
//
//   joint     x, w, y.cotangent -> y, x.cotangent
//   forward   x, w -> y, saved.0          backward   saved.0, y.cotangent ->
//                                                    x.cotangent

#ifndef CLEAVE_TRANSFORMS_AOT_PARTITION_H_
#define CLEAVE_TRANSFORMS_AOT_PARTITION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "transforms/aot/joint_graph.h"

namespace cleave::aot {

struct Partition {
  // Inputs: the primals. Outputs: those of the function, then what is saved.
  Graph forward;
  // Inputs: what is saved, then the cotangents of the outputs, all of them.
  // Outputs: the cotangents of the active inputs.
  Graph backward;
  int saved = 0;
};

// Cuts a joint graph. A user's own function may decide in any way: what it
// gives is checked by CheckPartition.
using PartitionFunction =
    std::function<absl::StatusOr<Partition>(const JointGraph&)>;

// InvalidArgument where inputs and outputs of the halves are not those that
// Partition describes, by number and type.
absl::Status CheckPartition(const JointGraph& joint,
                            const Partition& partition);

// The forward graph computes all that does not depend on a cotangent; what the
// rest needs of it is saved. Extents that no saved tensor and no cotangent
// tells are saved as the shape of a tensor without elements. O(nodes).
absl::StatusOr<Partition> DefaultPartition(const JointGraph& joint);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_PARTITION_H_
