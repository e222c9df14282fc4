#include "engine/runtime/scatter_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave::internal_kernel {
namespace {

// Elements of a row whose sums are kept at a time.
constexpr int64_t kColumns = 512;
// Elements of a task.
constexpr int64_t kTaskElements = 8192;

// Bytes of a result that one task clears: the processor writes so many at once
// without reading them first.
constexpr int64_t kClearedBytes = int64_t{4} << 20;
// Rows per update from which on the whole result is cleared, and few rows are
// written again.
constexpr int64_t kSparseRows = 4;

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
  uint32_t before = 0;
  for (int64_t r = 0; r <= array.rows; ++r) {
    before += begin[r + 1];
    begin[r + 1] = before;
  }
  for (int64_t i = 0; i < array.updates; ++i) {
    const int64_t row = array.indices[i];
    if (is_row(row)) order[begin[row + 1]++] = static_cast<uint32_t>(i);
  }
  return {begin, order, begin[array.rows]};
}

// `count` sums of a row from a column on: of x, or 0, and the row's updates.
template <typename T, typename Sum>
void AddUpdates(const ScatteredRows& array, const Sorted& sorted, int64_t row,
                int64_t column, int64_t count, Sum* sums) {
  const auto* const u = static_cast<const T*>(array.u) + column;
  if (array.x == nullptr) {
    std::fill_n(sums, count, Sum{0});
  } else {
    std::copy_n(static_cast<const T*>(array.x) + row * array.width + column,
                count, sums);
  }
  const size_t fetched = std::min(count * sizeof(T), kFetched);
  for (uint32_t i = sorted.begin[row]; i < sorted.begin[row + 1]; ++i) {
    if (i + kAhead < sorted.count) {
      const auto* const next = reinterpret_cast<const char*>(
          u + sorted.order[i + kAhead] * array.width);
      for (size_t b = 0; b < fetched; b += kCacheLine) {
        __builtin_prefetch(next + b);
      }
    }
    const T* const update = u + sorted.order[i] * array.width;
    for (int64_t c = 0; c < count; ++c) sums[c] += update[c];
  }
}

template <typename T, typename State>
void AddTo(const ScatteredRows& array, const Sorted& sorted, int64_t row) {
  // Two numbers have the same sum in T as in a state of twice the digits that
  // is rounded once.
  const uint32_t terms =
      sorted.begin[row + 1] - sorted.begin[row] + (array.x == nullptr ? 0 : 1);
  const bool in_place = std::is_same_v<T, State> || terms <= 2;
  std::array<State, kColumns> sums;
  for (int64_t column = 0; column < array.width; column += kColumns) {
    const int64_t count = std::min(kColumns, array.width - column);
    const int64_t begin = row * array.width + column;
    T* const y = static_cast<T*>(array.y) + begin;
    if (in_place) {
      AddUpdates<T>(array, sorted, row, column, count, y);
    } else {
      AddUpdates<T>(array, sorted, row, column, count, sums.data());
      for (int64_t c = 0; c < count; ++c) y[c] = static_cast<T>(sums[c]);
    }
    if (array.base == nullptr) continue;
    const T* const base = static_cast<const T*>(array.base) + begin;
    for (int64_t c = 0; c < count; ++c) y[c] = base[c] + y[c];
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
  const bool zeros = array.x == nullptr && array.base == nullptr;
  const int64_t row_bytes = array.width * ByteSize(array.dtype);
  auto* const y = static_cast<std::byte*>(array.y);
  const auto count_tasks = [&](int64_t rows) {
    return (rows + task - 1) / task;
  };
  if (zeros && array.updates * kSparseRows <= array.rows) {
    const int64_t all = array.rows * row_bytes;
    call.ParallelFor((all + kClearedBytes - 1) / kClearedBytes,
                     [&](int64_t first, int64_t last) {
                       const int64_t from = first * kClearedBytes;
                       const int64_t to = std::min(all, last * kClearedBytes);
                       std::memset(y + from, 0, to - from);
                     });
    call.ParallelFor(
        count_tasks(sorted.count), [&](int64_t first, int64_t last) {
          const int64_t end = std::min<int64_t>(sorted.count, last * task);
          for (int64_t i = first * task; i < end; ++i) {
            // The first update of its row stands for all.
            const int64_t row = array.indices[sorted.order[i]];
            if (sorted.begin[row] == i) add(array, sorted, row);
          }
        });
  } else {
    const auto is_empty = [&](int64_t row) {
      return sorted.begin[row] == sorted.begin[row + 1];
    };
    call.ParallelFor(count_tasks(array.rows), [&](int64_t first, int64_t last) {
      const int64_t end = std::min(array.rows, last * task);
      int64_t row = first * task;
      while (row < end) {
        if (!zeros || !is_empty(row)) {
          add(array, sorted, row++);
          continue;
        }
        // Memory is cleared at once without being read.
        const int64_t from = row;
        while (row < end && is_empty(row)) ++row;
        std::memset(y + from * row_bytes, 0, (row - from) * row_bytes);
      }
    });
  }
  KernelCall::Free(begin);
  return absl::OkStatus();
}

}  // namespace cleave::internal_kernel
