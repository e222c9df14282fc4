// An array of the caller as a run sees it: the bytes that it lies in, and its
// elements as a dense copy. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_PACK_H_
#define CLEAVE_ENGINE_RUNTIME_PACK_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/runtime/kernel.h"

namespace cleave {

// Views of these, which must outlive them.
ArrayView ArrayOf(const TensorView& view);
ArrayView ArrayOf(const MutableTensorView& view);
ArrayView ArrayOf(const Tensor& tensor);

// Whether the elements lie in row-major order without gaps. As many strides as
// extents.
bool IsDense(absl::Span<const int64_t> shape,
             absl::Span<const int64_t> strides);

struct ByteRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;  // empty where it is `begin`
};
ByteRange RangeOf(const ArrayView& view);

inline bool Overlaps(const ByteRange& a, const ByteRange& b) {
  if (a.begin == a.end || b.begin == b.end) return false;
  return a.begin < b.end && b.begin < a.end;
}

int64_t DenseBytes(const ArrayView& view);

// The elements in row-major order. O(elements).
void Pack(const ArrayView& view, void* target);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_PACK_H_
