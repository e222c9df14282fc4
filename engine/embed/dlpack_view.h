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

// The dtypes of the two that are the same: `key` is DLPack's u64 one way.
// Unimplemented where there is none, and for vectors (lanes).
absl::StatusOr<DType> FromDlpackType(DLDataType type);
DLDataType ToDlpackType(DType dtype);

// A view of the caller's memory, read only where it is an input's. `what` names
// the tensor in messages. Unimplemented for memory that is not the CPU's;
// InvalidArgument for a tensor that cannot be: a negative extent, strides or
// sizes beyond the address space, no data, data at an address that its dtype
// does not allow.
absl::StatusOr<ArrayView> ViewOf(const DLTensor* tensor, const char* what,
                                 size_t number);

// A dense tensor. `shape` outlives it.
DLTensor DenseTensor(void* data, DType dtype, absl::Span<const int64_t> shape);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_DLPACK_VIEW_H_
