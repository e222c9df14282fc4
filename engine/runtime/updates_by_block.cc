#include "engine/runtime/updates_by_block.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave::internal_kernel {
namespace {

// Updates of a task, and how many tasks there are at most: each counts the
// updates of every block.
constexpr int64_t kChunk = 16384;
constexpr int64_t kMostChunks = 64;
// So many blocks share the work of a machine, and so many at most are told
// apart: a task writes to that many places at a time.
constexpr int64_t kFewBlocks = 32;
constexpr int64_t kMostBlocks = 1024;

bool IsRow(int64_t index, int64_t rows) { return index >= 0 && index < rows; }

int Log2OfBlock(int64_t rows, int64_t most_rows) {
  int log2 = 0;
  while ((int64_t{2} << log2) <= most_rows &&
         (rows >> (log2 + 1)) >= kFewBlocks) {
    ++log2;
  }
  while ((rows >> log2) >= kMostBlocks) ++log2;
  return log2;
}

}  // namespace

absl::StatusOr<UpdatesByBlock> SortByBlock(const int64_t* indices,
                                           int64_t updates, int64_t rows,
                                           int64_t most_rows,
                                           KernelCall& call) {
  CLEAVE_CHECK(updates < UINT32_MAX) << updates;
  UpdatesByBlock result;
  result.log2_rows = Log2OfBlock(rows, most_rows);
  const int64_t blocks = ((rows - 1) >> result.log2_rows) + 1;
  result.blocks = blocks;
  const int64_t chunks = std::clamp<int64_t>(updates / kChunk, 1, kMostChunks);
  // Numbers in pairs, so that what lies behind them is aligned.
  const size_t begins = (blocks + 2) / 2 * 2;
  const size_t counts = (chunks * blocks + 1) / 2 * 2;
  const size_t bytes =
      (begins + counts) * sizeof(uint32_t) + updates * sizeof(RowUpdate);
  auto* const begin = static_cast<uint32_t*>(call.Allocate(bytes));
  if (begin == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes, to scatter"));
  }
  // By chunk: the counts of its updates, then where the next one goes.
  uint32_t* const places = begin + begins;
  auto* const sorted = reinterpret_cast<RowUpdate*>(places + counts);
  std::fill_n(places, chunks * blocks, 0);
  const int log2 = result.log2_rows;
  call.ParallelFor(chunks, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      uint32_t* const of_chunk = places + c * blocks;
      const int64_t end = updates * (c + 1) / chunks;
      for (int64_t i = updates * c / chunks; i < end; ++i) {
        if (IsRow(indices[i], rows)) ++of_chunk[indices[i] >> log2];
      }
    }
  });
  uint32_t before = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    begin[b] = before;
    for (int64_t c = 0; c < chunks; ++c) {
      const uint32_t count = places[c * blocks + b];
      places[c * blocks + b] = before;
      before += count;
    }
  }
  begin[blocks] = before;
  const int64_t within = (int64_t{1} << log2) - 1;
  call.ParallelFor(chunks, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      uint32_t* const next = places + c * blocks;
      const int64_t end = updates * (c + 1) / chunks;
      for (int64_t i = updates * c / chunks; i < end; ++i) {
        if (!IsRow(indices[i], rows)) continue;
        sorted[next[indices[i] >> log2]++] = {
            static_cast<uint32_t>(indices[i] & within),
            static_cast<uint32_t>(i)};
      }
    }
  });
  result.begin = begin;
  result.updates = sorted;
  return result;
}

void FreeUpdates(const UpdatesByBlock& updates) {
  KernelCall::Free(const_cast<uint32_t*>(updates.begin));
}

}  // namespace cleave::internal_kernel
