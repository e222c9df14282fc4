// Arrays with strides: which bytes they lie in, and as dense copies. Internal
// to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_PACK_H_
#define CLEAVE_ENGINE_RUNTIME_PACK_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/kernel.h"

namespace cleave {

// Whether the elements lie in row-major order without gaps.
bool IsDense(const std::vector<int64_t>& shape,
             const std::vector<int64_t>& strides);

struct ByteRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;  // empty where it is `begin`
};
ByteRange RangeOf(const TensorView& view);
ByteRange RangeOf(const MutableTensorView& view);
bool Overlaps(const ByteRange& a, const ByteRange& b);

int64_t DenseBytes(const TensorView& view);
int64_t DenseBytes(const MutableTensorView& view);

// The elements in row-major order. O(elements).
void Pack(const TensorView& view, void* target);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_PACK_H_
