// DLPack's tensors as the engine's views, and the other way round. Internal to
// engine/embed.

#ifndef CLEAVE_ENGINE_EMBED_DLPACK_VIEW_H_
#define CLEAVE_ENGINE_EMBED_DLPACK_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/embed/cleave.h"
#include "engine/runtime/kernel.h"
#include "ops/dtype.h"

namespace cleave::embed {

// A view of the caller's memory, read only where it is an input's. `what` names
// the tensor in messages. Unimplemented for memory that is neither the CPU's
// nor of CUDA; InvalidArgument for a tensor that cannot be: a negative extent,
// strides or sizes beyond the address space, no data, data at an address that
// its dtype does not allow.
absl::StatusOr<ArrayView> ViewOf(const DLTensor* tensor, const char* what,
                                 size_t number);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_DLPACK_VIEW_H_
