#include "engine/runtime/concatenate_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cleave::internal_kernel {
namespace {

// Bytes of a task.
constexpr int64_t kTaskBytes = 256 << 10;

// The bytes [begin, end) of the result.
void CopyBytes(absl::Span<const ConcatenatedPart> parts, int64_t row_bytes,
               int64_t begin, int64_t end, std::byte* y) {
  int64_t row = begin / row_bytes;
  int64_t at = begin % row_bytes;  // in the row
  while (begin < end) {
    int64_t first = 0;  // of the part in the row
    for (const ConcatenatedPart& part : parts) {
      const int64_t last = first + part.row_bytes;
      if (at >= first && at < last) {
        const int64_t count = std::min(last - at, end - begin);
        std::memcpy(y + begin,
                    static_cast<const std::byte*>(part.x) +
                        row * part.stride_bytes + (at - first),
                    count);
        begin += count;
        at += count;
        if (begin == end) return;
      }
      first = last;
    }
    ++row;
    at = 0;
  }
}

}  // namespace

void ConcatenateParts(absl::Span<const ConcatenatedPart> parts, int64_t rows,
                      void* y, KernelCall& call) {
  int64_t row_bytes = 0;
  for (const ConcatenatedPart& part : parts) row_bytes += part.row_bytes;
  const int64_t bytes = rows * row_bytes;
  if (bytes == 0) return;
  call.ParallelFor((bytes + kTaskBytes - 1) / kTaskBytes, [&](int64_t first,
                                                              int64_t last) {
    CopyBytes(parts, row_bytes, first * kTaskBytes,
              std::min(bytes, last * kTaskBytes), static_cast<std::byte*>(y));
  });
}

}  // namespace cleave::internal_kernel
