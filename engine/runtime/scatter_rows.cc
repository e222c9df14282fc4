#include "engine/runtime/scatter_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave::internal_kernel {
namespace {

// Elements of a row whose sums are kept at a time.
constexpr int64_t kColumns = 512;
// Elements of a task.
constexpr int64_t kTaskElements = 8192;

// Updates lie anywhere: those that come so many later are fetched beforehand,
// so many bytes of each.
constexpr uint32_t kAhead = 8;
constexpr size_t kFetched = 512;
constexpr size_t kCacheLine = 64;

// The updates in the order of their rows: those of row r are
// order[begin[r] .. begin[r + 1]); `count` in all.
struct Sorted {
  const uint32_t* begin;
  const uint32_t* order;
  uint32_t count;
};

Sorted SortByRow(const ScatteredRows& array, uint32_t* begin, uint32_t* order) {
  const auto is_row = [&](int64_t index) {
    return index >= 0 && index < array.rows;
  };
  // Counts of row r at r + 1, then where each begins, which placing moves on to
  // where the next one does.
  std::fill_n(begin, array.rows + 2, 0);
  for (int64_t i = 0; i < array.updates; ++i) {
    if (is_row(array.indices[i])) ++begin[array.indices[i] + 2];
  }
  for (int64_t r = 0; r <= array.rows; ++r) begin[r + 1] += begin[r];
  for (int64_t i = 0; i < array.updates; ++i) {
    const int64_t row = array.indices[i];
    if (is_row(row)) order[begin[row + 1]++] = static_cast<uint32_t>(i);
  }
  return {begin, order, begin[array.rows]};
}

template <typename T, typename State>
void AddTo(const ScatteredRows& array, const Sorted& sorted, int64_t row) {
  const auto* const x = static_cast<const T*>(array.x);
  const auto* const base = static_cast<const T*>(array.base);
  const auto* const u = static_cast<const T*>(array.u);
  T* const y = static_cast<T*>(array.y) + row * array.width;
  const uint32_t first = sorted.begin[row];
  const uint32_t last = sorted.begin[row + 1];
  if (first == last && base == nullptr) {
    if (x != nullptr) {
      std::memcpy(y, x + row * array.width, array.width * sizeof(T));
    } else {
      std::memset(y, 0, array.width * sizeof(T));
    }
    return;
  }
  std::array<State, kColumns> sums;
  for (int64_t column = 0; column < array.width; column += kColumns) {
    const int64_t count = std::min(kColumns, array.width - column);
    for (int64_t c = 0; c < count; ++c) {
      sums[c] = x == nullptr ? 0 : x[row * array.width + column + c];
    }
    for (uint32_t i = first; i < last; ++i) {
      if (i + kAhead < sorted.count) {
        const auto* const next = reinterpret_cast<const char*>(
            u + sorted.order[i + kAhead] * array.width + column);
        const size_t bytes = std::min(count * sizeof(T), kFetched);
        for (size_t b = 0; b < bytes; b += kCacheLine) {
          __builtin_prefetch(next + b);
        }
      }
      const T* const update = u + sorted.order[i] * array.width + column;
      for (int64_t c = 0; c < count; ++c) sums[c] += update[c];
    }
    if (base == nullptr) {
      for (int64_t c = 0; c < count; ++c) {
        y[column + c] = static_cast<T>(sums[c]);
      }
    } else {
      const T* const added = base + row * array.width + column;
      for (int64_t c = 0; c < count; ++c) {
        y[column + c] = added[c] + static_cast<T>(sums[c]);
      }
    }
  }
}

}  // namespace

absl::Status AddRows(const ScatteredRows& array, KernelCall& call) {
  if (array.rows == 0 || array.width == 0) return absl::OkStatus();
  CLEAVE_CHECK(array.updates < UINT32_MAX) << array.updates;
  const size_t bytes = (array.rows + 2 + array.updates) * sizeof(uint32_t);
  auto* const begin = static_cast<uint32_t*>(call.Allocate(bytes));
  if (begin == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes, to scatter"));
  }
  const Sorted sorted = SortByRow(array, begin, begin + array.rows + 2);
  const auto add = array.dtype == DType::kF32   ? AddTo<float, double>
                   : array.dtype == DType::kF64 ? AddTo<double, double>
                   : ByteSize(array.dtype) == 4 ? AddTo<uint32_t, uint32_t>
                                                : AddTo<uint64_t, uint64_t>;
  const int64_t task = std::max<int64_t>(1, kTaskElements / array.width);
  call.ParallelFor((array.rows + task - 1) / task,
                   [&](int64_t first, int64_t last) {
                     const int64_t end = std::min(array.rows, last * task);
                     for (int64_t row = first * task; row < end; ++row) {
                       add(array, sorted, row);
                     }
                   });
  KernelCall::Free(begin);
  return absl::OkStatus();
}

}  // namespace cleave::internal_kernel
