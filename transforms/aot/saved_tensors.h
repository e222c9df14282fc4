// The tensors that a forward graph saves for its backward, as text.

#ifndef CLEAVE_TRANSFORMS_AOT_SAVED_TENSORS_H_
#define CLEAVE_TRANSFORMS_AOT_SAVED_TENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/dim.h"
#include "ops/tensor_type.h"
#include "transforms/partition/partition.h"

namespace cleave::aot {

struct SavedTensor {
  std::string name;  // "saved.0"
  TensorType type;
  Dim bytes;
  // "the input x", "the output y", or the op that makes it, with its rule.
  std::string what;
  // An input or an output lives on beside the halves: saving it is free.
  bool free = false;
};

// In the order of the forward graph's outputs. ResourceExhausted where bytes
// are beyond the limits of Dim.
absl::StatusOr<std::vector<SavedTensor>> SavedTensors(
    const Partition& partition);

// The bytes of those that are not free.
absl::StatusOr<Dim> SavedBytes(const std::vector<SavedTensor>& saved);

// A line for each, under a line with their number and bytes.
absl::StatusOr<std::string> PrintSavedTensors(const Partition& partition);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_SAVED_TENSORS_H_
