// SortLines: the `sort` primitive on threads, by radix.
//
//   SortLines({DType::kF32, {2, 3}, /*axis=*/1, /*descending=*/false, x,
//   values,
//              indices},
//             call);

#ifndef CLEAVE_ENGINE_RUNTIME_SORT_LINES_H_
#define CLEAVE_ENGINE_RUNTIME_SORT_LINES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/runtime/kernel_call.h"
#include "ops/dtype.h"

namespace cleave::internal_kernel {

struct SortedArray {
  DType dtype = DType::kF32;  // bool, an int or a float
  absl::Span<const int64_t> shape;
  int64_t axis = 0;
  bool descending = false;
  const void* x = nullptr;
  // Results have that shape, dense in row-major order; null where nobody reads
  // them.
  void* values = nullptr;
  int64_t* indices = nullptr;
  // How many elements of each line of the results are wanted, from the first
  // on. Nothing behind them is written.
  int64_t limit = INT64_MAX;
};

// Sorts each line along the axis and tells where each element came from. Stable
// both ways, -0 equals 0, and NaN is the largest: as the reference kernel does.
// The axis has less than 2^32 elements. O(n) for each line of n, by digits of 8
// bits (Knuth, The Art of Computer Programming 3, 5.2.5); O(n log n) where it
// is short, or where a part of it is wanted. Lines are shared among the threads
// of the call. ResourceExhausted where memory for two lines is refused.
absl::Status SortLines(const SortedArray& array, KernelCall& call);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_SORT_LINES_H_
