// AddRows: updates added to the rows of an array that indices name, on threads;
// or the largest of both kept, or the last.
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

// An element of a row and its updates, as one.
enum class RowCombination {
  kSum,      // of f32, f64, and of integers of 32 or 64 bits
  kLargest,  // of integers of 32 or 64 bits
  kLast,     // of bools and all real dtypes: an update stays until the next one
};

// Arrays are dense in row-major order.
struct ScatteredRows {
  DType dtype = DType::kF32;
  RowCombination combination = RowCombination::kSum;
  // Scatters of the same sizes: all arrays have so many parts, each of which
  // the other numbers are of.
  int64_t lines = 1;
  int64_t rows = 0;
  int64_t width = 0;        // elements of a row
  int64_t updates = 0;      // rows of u, and indices
  const void* x = nullptr;  // null: `fill` everywhere
  int64_t fill = 0;
  // Added to what the sums are, once these are rounded; null: nothing is.
  const void* base = nullptr;
  const int64_t* indices = nullptr;
  const void* u = nullptr;
  void* y = nullptr;
};

// Updates are sorted by blocks of rows, or of lines; the thread that has a
// block adds its updates in their order, so that the result does not depend on
// the threads. Sums of floats are kept in f64 and rounded once; a row of x
// without updates is copied as it is; integers wrap. An index that is no row
// drops its update. There are fewer than 2^32 updates. O(lines * (rows +
// updates) * width). ResourceExhausted where memory is refused: for four
// numbers per update, and for a block's sums or counts per thread.
absl::Status AddRows(const ScatteredRows& array, KernelCall& call);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_SCATTER_ROWS_H_
