// DLPack's dtypes and dense tensors. Internal to engine/embed.

#ifndef CLEAVE_ENGINE_EMBED_DLPACK_TYPES_H_
#define CLEAVE_ENGINE_EMBED_DLPACK_TYPES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/embed/dlpack.h"
#include "ops/dtype.h"

namespace cleave::embed {

// The dtypes of the two that are the same: `key` is DLPack's u64 one way.
// Unimplemented where there is none, and for vectors (lanes).
absl::StatusOr<DType> FromDlpackType(DLDataType type);
DLDataType ToDlpackType(DType dtype);

// A dense tensor. `shape` outlives it.
DLTensor DenseTensor(void* data, DType dtype, absl::Span<const int64_t> shape);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_DLPACK_TYPES_H_
