// ConcatenateParts: tensors one behind the other along an axis, on threads.
//
//   ConcatenateParts({{a, 2048}, {b, 1024}}, /*rows=*/4096, y, call);
//   // row i of y: 2,048 bytes of a, then 1,024 of b

#ifndef CLEAVE_ENGINE_RUNTIME_CONCATENATE_PARTS_H_
#define CLEAVE_ENGINE_RUNTIME_CONCATENATE_PARTS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/runtime/kernel_call.h"

namespace cleave::internal_kernel {

// An operand: so many bytes of each row, from the first of these on. Rows begin
// every so many bytes.
struct ConcatenatedPart {
  const void* x = nullptr;
  int64_t row_bytes = 0;
  int64_t stride_bytes = row_bytes;
};

// Copies the parts of each row of `y` behind each other. A row is what lies
// along the axis and those after it, for one place along those before it.
// O(bytes).
void ConcatenateParts(absl::Span<const ConcatenatedPart> parts, int64_t rows,
                      void* y, KernelCall& call);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_CONCATENATE_PARTS_H_
