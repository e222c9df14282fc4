// AddRows: updates added to the rows of an array that indices name, on threads;
// or the largest of both kept.
//
//   ScatteredRows array;
//   array.rows = 3;
//   array.width = 2;
//   array.updates = 4;
//   array.x = x;
//   ..
//   AddRows(array, call);  // y = x; y[indices[i]] += u[i]

#ifndef CLEAVE_ENGINE_RUNTIME_SCATTER_ROWS_H_
#define CLEAVE_ENGINE_RUNTIME_SCATTER_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/runtime/kernel_call.h"
#include "ops/dtype.h"

namespace cleave::internal_kernel {

// Arrays are dense in row-major order.
struct ScatteredRows {
  DType dtype = DType::kF32;  // f32 or f64, or an integer of 32 or 64 bits
  int64_t rows = 0;
  int64_t width = 0;        // elements of a row
  int64_t updates = 0;      // rows of u, and indices
  const void* x = nullptr;  // null: `fill` everywhere
  int64_t fill = 0;
  // Integers alone: the largest of an element and its updates, not their sum.
  bool largest = false;
  // Added to what the sums are, once these are rounded; null: nothing is.
  const void* base = nullptr;
  const int64_t* indices = nullptr;
  const void* u = nullptr;
  void* y = nullptr;
};

// Updates are sorted by blocks of rows; the thread that has a block adds its
// updates in their order, so that the result does not depend on the threads.
// Sums of floats are kept in f64 and rounded once; a row of x without updates
// is copied as it is; integers wrap. An index that is no row drops its update.
// There are fewer than 2^32 updates. O(rows * width + updates * width).
// ResourceExhausted where memory is refused: for four numbers per update, and
// for a block's sums or counts per thread.
absl::Status AddRows(const ScatteredRows& array, KernelCall& call);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_SCATTER_ROWS_H_
