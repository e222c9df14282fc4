// The functions of testdata/functions.rules, run whole and in halves. For tests
// of partitioners.

#ifndef CLEAVE_TRANSFORMS_PARTITION_PARTITION_TESTING_H_
#define CLEAVE_TRANSFORMS_PARTITION_PARTITION_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/bind.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/partition.h"

namespace cleave::aot {

// The shipped ops and the functions.
std::shared_ptr<const RuleSet> LoadFunctions(
    const std::shared_ptr<Context>& context);

// The names of the functions.
std::vector<std::string> FunctionNames(const RuleSet& rules);

// The joint graph of a function, all its inexact inputs active, the first
// `num_params_buffers` inputs static.
absl::StatusOr<JointGraph> JointOf(const std::string& function,
                                   const RuleSet& rules,
                                   int num_params_buffers = 0);

// Tensors for the inputs of `graph` at extents: floats from [-2, 2], integers
// from [0, 5].
absl::StatusOr<std::vector<Tensor>> DrawInputs(const Graph& graph,
                                               const DimValues& dims,
                                               uint64_t seed);

// The results of the halves, in the order of the outputs of the joint graph.
absl::StatusOr<std::vector<Tensor>> RunHalves(const JointGraph& joint,
                                              const Partition& partition,
                                              const std::vector<Tensor>& inputs,
                                              const RuleSet& rules);

// Whether the partition is a valid one (CheckPartition, and Verify of both
// halves) which gives what the joint graph gives, bit for bit, and fails where
// it fails, at several extents, 0 and 1 among them: else an error that says
// where it does not. Where all extents are 3, the function must not fail.
absl::Status CompareWithJoint(const JointGraph& joint,
                              const Partition& partition, const RuleSet& rules);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_PARTITION_TESTING_H_
