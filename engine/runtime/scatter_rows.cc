#include "engine/runtime/scatter_rows.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "engine/runtime/updates_by_block.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// Elements of a row whose sums are kept at a time.
constexpr int64_t kColumns = 512;
// Elements of a block: their sums fit the second cache of a core.
constexpr int64_t kBlockElements = 32768;
// Rows of so many elements at most are added to where they are; updates of
// longer ones are sorted by their rows first.
constexpr int64_t kShortRow = 8;
// Rows per update from which on it pays to look for the rows that change; a
// short row takes less time than the look.
constexpr int64_t kSparseRows = 4;
constexpr int64_t kSparseShortRows = 32;

// So many lines are shared among threads, and fewer ones of so many elements
// are not each shared, either.
constexpr int64_t kFewLines = 16;
constexpr int64_t kShortLine = 2048;
// Elements and updates of a task of short lines.
constexpr int64_t kTaskElements = 65536;

// Bytes of a result that one task clears: the processor writes so many at once
// without reading them first.
constexpr int64_t kClearedBytes = int64_t{4} << 20;

// Updates lie anywhere: those that come so many later are fetched beforehand,
// so many bytes of each.
constexpr ptrdiff_t kAhead = 8;
constexpr size_t kFetched = 512;
constexpr size_t kCacheLine = 64;

// A block of rows, and its updates in their order.
struct Block {
  int64_t first = 0;
  int64_t rows = 0;
  const RowUpdate* begin = nullptr;
  const RowUpdate* end = nullptr;

  ptrdiff_t updates() const { return end - begin; }
};

struct Plus {
  template <typename State, typename T>
  static void Combine(State& state, T update) {
    state += update;
  }
};
struct Largest {
  template <typename T>
  static void Combine(T& state, T update) {
    state = std::max(state, update);
  }
};
struct Last {
  template <typename T>
  static void Combine(T& state, T update) {
    state = update;
  }
};

// `count` elements of x from `at` on, or of what stands for it.
template <typename T, typename State>
void Begin(const ScatteredRows& array, int64_t at, int64_t count,
           State* states) {
  if (array.x == nullptr) {
    std::fill_n(states, count, static_cast<State>(array.fill));
  } else {
    std::copy_n(static_cast<const T*>(array.x) + at, count, states);
  }
}

// The results of `count` elements from `at` on.
template <typename T, typename State>
void End(const ScatteredRows& array, int64_t at, int64_t count,
         const State* states) {
  T* const y = static_cast<T*>(array.y) + at;
  if (array.base == nullptr) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(states[i]);
    return;
  }
  const T* const base = static_cast<const T*>(array.base) + at;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = base[i] + static_cast<T>(states[i]);
  }
}

// Rows that nothing is added to.
template <typename T>
void Leave(const ScatteredRows& array, int64_t row, int64_t rows) {
  const int64_t at = row * array.width;
  const int64_t count = rows * array.width;
  T* const y = static_cast<T*>(array.y) + at;
  Begin<T>(array, at, count, y);
  if (array.base != nullptr) End<T>(array, at, count, y);
}

// The updates [begin, end) of one row; those up to `last` come behind them.
template <typename T, typename State, typename Operation>
void AddToRow(const ScatteredRows& array, int64_t row, const RowUpdate* begin,
              const RowUpdate* end, const RowUpdate* last) {
  // Two numbers have the same sum in T as in a state of twice the digits that
  // is rounded once.
  const bool in_place = std::is_same_v<T, State> ||
                        end - begin + (array.x == nullptr ? 0 : 1) <= 2;
  std::array<State, kColumns> sums;
  for (int64_t column = 0; column < array.width; column += kColumns) {
    const int64_t count = std::min(kColumns, array.width - column);
    const int64_t at = row * array.width + column;
    const auto* const u = static_cast<const T*>(array.u) + column;
    const size_t fetched = std::min(count * sizeof(T), kFetched);
    const auto add = [&](auto* states) {
      Begin<T>(array, at, count, states);
      for (const RowUpdate* i = begin; i < end; ++i) {
        if (last - i > kAhead) {
          const auto* const next =
              reinterpret_cast<const char*>(u + i[kAhead].index * array.width);
          for (size_t b = 0; b < fetched; b += kCacheLine) {
            __builtin_prefetch(next + b);
          }
        }
        const T* const update = u + i->index * array.width;
        for (int64_t c = 0; c < count; ++c) {
          Operation::Combine(states[c], update[c]);
        }
      }
    };
    if (in_place) {
      T* const y = static_cast<T*>(array.y) + at;
      add(y);
      if (array.base != nullptr) End<T>(array, at, count, y);
    } else {
      add(sums.data());
      End<T>(array, at, count, sums.data());
    }
  }
}

// The rows of a block one after the other, their updates sorted into `sorted`;
// `counts` has room for a number per row.
template <typename T, typename State, typename Operation>
void AddByRow(const ScatteredRows& array, const Block& block, bool is_cleared,
              uint32_t* counts, RowUpdate* sorted) {
  std::fill_n(counts, block.rows, 0);
  for (const RowUpdate* i = block.begin; i < block.end; ++i) ++counts[i->row];
  uint32_t before = 0;
  for (int64_t r = 0; r < block.rows; ++r) {
    before += counts[r];
    counts[r] = before - counts[r];
  }
  for (const RowUpdate* i = block.begin; i < block.end; ++i) {
    sorted[counts[i->row]++] = *i;
  }
  const RowUpdate* const last = sorted + block.updates();
  int64_t done = 0;  // rows of the block
  const auto leave_until = [&](int64_t row) {
    if (!is_cleared && row > done) {
      Leave<T>(array, block.first + done, row - done);
    }
  };
  for (const RowUpdate* i = sorted; i < last;) {
    const RowUpdate* end = i;
    while (end < last && end->row == i->row) ++end;
    leave_until(i->row);
    AddToRow<T, State, Operation>(array, block.first + i->row, i, end, last);
    done = i->row + 1;
    i = end;
  }
  leave_until(block.rows);
}

// All rows of a block at a time; `states` has room for their elements.
template <typename T, typename State, typename Operation>
void AddInPlace(const ScatteredRows& array, const Block& block, State* states) {
  const int64_t at = block.first * array.width;
  const int64_t count = block.rows * array.width;
  Begin<T>(array, at, count, states);
  const auto* const u = static_cast<const T*>(array.u);
  if (array.width == 1) {
    for (const RowUpdate* i = block.begin; i < block.end; ++i) {
      Operation::Combine(states[i->row], u[i->index]);
    }
    return End<T>(array, at, count, states);
  }
  for (const RowUpdate* i = block.begin; i < block.end; ++i) {
    State* const row = states + i->row * array.width;
    const T* const update = u + i->index * array.width;
    for (int64_t c = 0; c < array.width; ++c) {
      Operation::Combine(row[c], update[c]);
    }
  }
  End<T>(array, at, count, states);
}

template <typename T, typename State, typename Operation>
absl::Status Add(const ScatteredRows& array, KernelCall& call) {
  const int64_t most_rows = std::max<int64_t>(1, kBlockElements / array.width);
  CLEAVE_ASSIGN_OR_RETURN(
      const UpdatesByBlock updates,
      SortByBlock(array.indices, array.updates, array.rows, most_rows, call));
  // A thread needs room for the sums of a block, or for a count of each row and
  // sorted updates.
  const int64_t block_rows = int64_t{1} << updates.log2_rows;
  const bool is_short = array.width <= kShortRow;
  const int64_t sparse = is_short ? kSparseShortRows : kSparseRows;
  const bool is_cleared = array.x == nullptr && array.base == nullptr &&
                          array.fill == 0 &&
                          array.updates * sparse <= array.rows;
  if (is_cleared) {
    auto* const y = static_cast<std::byte*>(array.y);
    const int64_t all = array.rows * array.width * sizeof(T);
    call.ParallelFor((all + kClearedBytes - 1) / kClearedBytes,
                     [&](int64_t first, int64_t last) {
                       const int64_t from = first * kClearedBytes;
                       const int64_t to = std::min(all, last * kClearedBytes);
                       std::memset(y + from, 0, to - from);
                     });
  }
  std::atomic<bool> is_refused{false};
  call.ParallelFor(updates.blocks, [&](int64_t first, int64_t last) {
    const uint32_t* const begin = updates.begin;
    size_t most = 0;  // updates of a block
    for (int64_t b = first; b < last; ++b) {
      most = std::max<size_t>(most, begin[b + 1] - begin[b]);
    }
    const size_t counts_bytes = (block_rows + 1) / 2 * 2 * sizeof(uint32_t);
    const size_t bytes =
        std::max(counts_bytes + most * sizeof(RowUpdate),
                 is_short ? block_rows * array.width * sizeof(State) : 0);
    auto* const scratch = static_cast<std::byte*>(call.Allocate(bytes));
    if (scratch == nullptr) {
      is_refused.store(true, std::memory_order_relaxed);
      return;
    }
    for (int64_t b = first; b < last; ++b) {
      Block block;
      block.first = b << updates.log2_rows;
      block.rows = std::min(block_rows, array.rows - block.first);
      block.begin = updates.updates + begin[b];
      block.end = updates.updates + begin[b + 1];
      if (is_short && block.updates() * sparse > block.rows) {
        AddInPlace<T, State, Operation>(array, block,
                                        reinterpret_cast<State*>(scratch));
      } else {
        AddByRow<T, State, Operation>(
            array, block, is_cleared, reinterpret_cast<uint32_t*>(scratch),
            reinterpret_cast<RowUpdate*>(scratch + counts_bytes));
      }
    }
    KernelCall::Free(scratch);
  });
  FreeUpdates(updates);
  if (is_refused.load(std::memory_order_relaxed)) {
    return absl::ResourceExhaustedError("no memory for the sums of a scatter");
  }
  return absl::OkStatus();
}

// One of the lines by itself.
template <typename T>
ScatteredRows LineOf(const ScatteredRows& array, int64_t line) {
  ScatteredRows part = array;
  part.lines = 1;
  const int64_t at = line * array.rows * array.width;
  if (array.x != nullptr) part.x = static_cast<const T*>(array.x) + at;
  if (array.base != nullptr) part.base = static_cast<const T*>(array.base) + at;
  part.y = static_cast<T*>(array.y) + at;
  part.indices = array.indices + line * array.updates;
  part.u = static_cast<const T*>(array.u) + line * array.updates * array.width;
  return part;
}

// The updates of a line in their order, to what `states` begins with.
template <typename T, typename State, typename Operation>
void CombineLine(const ScatteredRows& line, State* states) {
  const auto* u = static_cast<const T*>(line.u);
  const auto rows = static_cast<uint64_t>(line.rows);
  if (line.width == 1) {
    for (int64_t i = 0; i < line.updates; ++i) {
      const auto row = static_cast<uint64_t>(line.indices[i]);
      if (row < rows) Operation::Combine(states[row], u[i]);
    }
    return;
  }
  for (int64_t i = 0; i < line.updates; ++i, u += line.width) {
    const auto row = static_cast<uint64_t>(line.indices[i]);
    if (row >= rows) continue;
    State* const sums = states + row * line.width;
    for (int64_t c = 0; c < line.width; ++c) Operation::Combine(sums[c], u[c]);
  }
}

// A short line; `states` has room for its elements.
template <typename T, typename State, typename Operation>
void AddToLine(const ScatteredRows& line, State* states) {
  const int64_t count = line.rows * line.width;
  if constexpr (std::is_same_v<T, State>) {
    if (line.base == nullptr) {
      T* const y = static_cast<T*>(line.y);
      Begin<T>(line, 0, count, y);
      return CombineLine<T, T, Operation>(line, y);
    }
  }
  Begin<T>(line, 0, count, states);
  CombineLine<T, State, Operation>(line, states);
  End<T>(line, 0, count, states);
}

template <typename T, typename State, typename Operation>
absl::Status AddLines(const ScatteredRows& array, KernelCall& call) {
  if (array.lines == 1) return Add<T, State, Operation>(array, call);
  const int64_t elements = array.rows * array.width;
  // Threads share the rows of long lines, of few ones, and lines of all others.
  if (elements > kBlockElements ||
      (array.lines < kFewLines && elements > kShortLine)) {
    for (int64_t i = 0; i < array.lines; ++i) {
      CLEAVE_RETURN_IF_ERROR(
          (Add<T, State, Operation>(LineOf<T>(array, i), call)));
    }
    return absl::OkStatus();
  }
  const int64_t of_task =
      std::max<int64_t>(1, kTaskElements / (elements + array.updates + 1));
  const int64_t tasks = (array.lines + of_task - 1) / of_task;
  std::atomic<bool> is_refused{false};
  call.ParallelFor(tasks, [&](int64_t first, int64_t last) {
    auto* const states =
        static_cast<State*>(call.Allocate(elements * sizeof(State)));
    if (states == nullptr) {
      is_refused.store(true, std::memory_order_relaxed);
      return;
    }
    const int64_t end = std::min(array.lines, last * of_task);
    for (int64_t i = first * of_task; i < end; ++i) {
      AddToLine<T, State, Operation>(LineOf<T>(array, i), states);
    }
    KernelCall::Free(states);
  });
  if (is_refused.load(std::memory_order_relaxed)) {
    return absl::ResourceExhaustedError("no memory for the sums of a scatter");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddRows(const ScatteredRows& array, KernelCall& call) {
  if (array.lines == 0 || array.rows == 0 || array.width == 0) {
    return absl::OkStatus();
  }
  if (array.combination == RowCombination::kLast) {
    switch (ByteSize(array.dtype)) {
      case 1:
        return AddLines<uint8_t, uint8_t, Last>(array, call);
      case 2:
        return AddLines<uint16_t, uint16_t, Last>(array, call);
      case 4:
        return AddLines<uint32_t, uint32_t, Last>(array, call);
      default:
        return AddLines<uint64_t, uint64_t, Last>(array, call);
    }
  }
  if (array.combination == RowCombination::kLargest) {
    switch (array.dtype) {
      case DType::kI32:
        return AddLines<int32_t, int32_t, Largest>(array, call);
      case DType::kU32:
        return AddLines<uint32_t, uint32_t, Largest>(array, call);
      case DType::kI64:
        return AddLines<int64_t, int64_t, Largest>(array, call);
      default:
        return AddLines<uint64_t, uint64_t, Largest>(array, call);
    }
  }
  if (array.dtype == DType::kF32) {
    return AddLines<float, double, Plus>(array, call);
  }
  if (array.dtype == DType::kF64) {
    return AddLines<double, double, Plus>(array, call);
  }
  return ByteSize(array.dtype) == 4
             ? AddLines<uint32_t, uint32_t, Plus>(array, call)
             : AddLines<uint64_t, uint64_t, Plus>(array, call);
}

}  // namespace cleave::internal_kernel
