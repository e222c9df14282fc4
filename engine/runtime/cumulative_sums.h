// CumulativeSums: the running sums along an axis, on threads.
//
//   CumulativeSums({DType::kF32, {2, 3}, /*axis=*/1, /*reverse=*/false, x, y},
//                  call);  // y[i, j] = x[i, 0] + .. + x[i, j]

#ifndef CLEAVE_ENGINE_RUNTIME_CUMULATIVE_SUMS_H_
#define CLEAVE_ENGINE_RUNTIME_CUMULATIVE_SUMS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/runtime/kernel_call.h"
#include "ops/dtype.h"

namespace cleave::internal_kernel {

struct SummedArray {
  DType dtype = DType::kF32;  // a real of 4 bytes or more
  absl::Span<const int64_t> shape;
  int64_t axis = 0;
  bool reverse = false;  // from the end on
  const void* x = nullptr;
  void* y = nullptr;  // of that shape; both dense in row-major order
};

// Floats are summed in f64 and rounded once; integers wrap. A long line is
// summed in blocks of a fixed length, which threads share: the result does not
// depend on how many there are. Where the sum of a block is not finite the line
// is summed one by one, as its order decides what it overflows to. O(elements).
// ResourceExhausted where memory for the sums of the blocks is refused.
absl::Status CumulativeSums(const SummedArray& array, KernelCall& call);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_CUMULATIVE_SUMS_H_
