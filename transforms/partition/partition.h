// Partition: a joint graph cut into a forward and a backward graph.
//
//   joint     x, w, y.cotangent -> y, x.cotangent
//   forward   x, w -> y, saved.0          backward   saved.0, y.cotangent ->
//                                                    x.cotangent
//
// A partitioner only chooses the values that are saved; PartitionBySaved builds
// the halves. No loop, branch or call is split: where a function shall be cut
// inside of one, it is expanded first.

#ifndef CLEAVE_TRANSFORMS_PARTITION_PARTITION_H_
#define CLEAVE_TRANSFORMS_PARTITION_PARTITION_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "transforms/partition/joint_graph.h"

namespace cleave::aot {

struct Partition {
  // Inputs: the primals. Outputs: those of the function, then what is saved,
  // which may be a primal or an output of the function: nothing is copied then.
  Graph forward;
  // Inputs: what is saved, then the cotangents of the outputs, all of them.
  // Outputs: the cotangents of the active inputs.
  Graph backward;
  int saved = 0;
  // Numbers of those among the saved that rest on the host between the halves:
  // who runs them stores them there and loads them again.
  std::vector<int> offloaded;
};

// Cuts a joint graph. A user's own function may decide in any way: what it
// gives is checked by CheckPartition.
using PartitionFunction =
    std::function<absl::StatusOr<Partition>(const JointGraph&)>;

// InvalidArgument where inputs and outputs of the halves are not those that
// Partition describes, by number and type.
absl::Status CheckPartition(const JointGraph& joint,
                            const Partition& partition);

// The halves for a choice of values of the joint graph to save: the backward
// graph computes again what else it needs, down to the primals. A chosen value
// that it does not need is left out. Two kinds of values are saved though they
// were not chosen: the primals that it comes down to, and values with an extent
// that the primals do not have, as the result of a `nonzero`. Other extents
// that no saved tensor and no cotangent tells are saved as the shape of a
// tensor without elements. The saved values are named saved.0, saved.1, .. in
// the order of the joint graph. A saved value that is in `offloaded` is marked
// so. InvalidArgument for a value that has several results or depends on a
// cotangent. O(nodes).
absl::StatusOr<Partition> PartitionBySaved(
    const JointGraph& joint, const std::vector<Value>& saved,
    const std::vector<Value>& offloaded = {});

// The forward graph computes what the outputs of the function need, as it does
// alone; the backward graph the rest. So nothing is computed twice, apart from
// what costs nothing: constants, extents, and broadcasts, reshapes and
// transposes, in whose place is saved what they are made of. O(nodes).
absl::StatusOr<Partition> DefaultPartition(const JointGraph& joint);

// Per node of the joint graph: whether it depends on a cotangent.
std::vector<bool> DependsOnCotangents(const JointGraph& joint);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_PARTITION_H_
