// UpdatesByBlock: which updates each block of rows gets, found on threads.
// Internal to this folder.

#ifndef CLEAVE_ENGINE_RUNTIME_UPDATES_BY_BLOCK_H_
#define CLEAVE_ENGINE_RUNTIME_UPDATES_BY_BLOCK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/runtime/kernel_call.h"

namespace cleave::internal_kernel {

struct RowUpdate {
  uint32_t row;    // within its block
  uint32_t index;  // of the update
};

// Blocks are of 2^log2_rows rows each, the last of what is left. The updates of
// block b are updates[begin[b] .. begin[b + 1]), in the order they are given.
struct UpdatesByBlock {
  int log2_rows = 0;
  int64_t blocks = 0;
  const uint32_t* begin = nullptr;
  const RowUpdate* updates = nullptr;
};

// The blocks of `rows` rows, of at most `most_rows` each unless there would be
// too many. indices[i] is the row of update i; one that is no row is dropped.
// There are fewer than 2^32 updates, and of rows of a block. The result lies in
// memory of `call`, to be freed by FreeUpdates; ResourceExhausted where that is
// refused. O(updates).
absl::StatusOr<UpdatesByBlock> SortByBlock(const int64_t* indices,
                                           int64_t updates, int64_t rows,
                                           int64_t most_rows, KernelCall& call);
void FreeUpdates(const UpdatesByBlock& updates);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_UPDATES_BY_BLOCK_H_
