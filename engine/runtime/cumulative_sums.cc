#include "engine/runtime/cumulative_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave::internal_kernel {
namespace {

// Elements of a block of a long line.
constexpr int64_t kBlock = 4096;
// Runs that are summed side by side: an addition takes as many cycles.
constexpr int kSideBySide = 4;
// Columns that are summed side by side where the axis is not the last.
constexpr int64_t kColumns = 512;

// T's sums are kept in State.
template <typename T, typename State>
class Sums {
 public:
  Sums(const SummedArray& array, KernelCall& call)
      : call_(call),
        reverse_(array.reverse),
        length_(array.shape[array.axis]),
        x_(static_cast<const T*>(array.x)),
        y_(static_cast<T*>(array.y)) {
    for (size_t d = 0; d < array.shape.size(); ++d) {
      const auto axis = static_cast<int64_t>(d);
      if (axis < array.axis) outer_ *= array.shape[d];
      if (axis > array.axis) inner_ *= array.shape[d];
    }
  }

  absl::Status Run() {
    if (length_ == 0 || outer_ == 0 || inner_ == 0) return absl::OkStatus();
    if (inner_ > 1) {
      SumColumns();
      return absl::OkStatus();
    }
    if (length_ <= kBlock) {
      SumRuns(outer_, [&](int64_t line) {
        return Piece{line * length_, length_, 0};
      });
      return absl::OkStatus();
    }
    return SumBlocks();
  }

 private:
  // Elements that follow each other in the order of summation, from where it
  // begins, and the sum of those before them in their line.
  struct Piece {
    int64_t first;
    int64_t count;
    State before;
  };

  static T Rounded(State sum) { return static_cast<T>(sum); }

  // Where element `i` of so many, in the order of summation, lies.
  int64_t Place(int64_t i, int64_t count) const {
    return reverse_ ? count - 1 - i : i;
  }

  void SumOne(const Piece& piece) const {
    State sum = piece.before;
    for (int64_t i = 0; i < piece.count; ++i) {
      const int64_t at = piece.first + Place(i, piece.count);
      sum += x_[at];
      y_[at] = Rounded(sum);
    }
  }

  // The same for pieces of one length.
  void SumTogether(const std::array<Piece, kSideBySide>& pieces) const {
    const int64_t count = pieces[0].count;
    std::array<State, kSideBySide> sums;
    for (int k = 0; k < kSideBySide; ++k) sums[k] = pieces[k].before;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = Place(i, count);
      for (int k = 0; k < kSideBySide; ++k) {
        sums[k] += x_[pieces[k].first + place];
      }
      for (int k = 0; k < kSideBySide; ++k) {
        y_[pieces[k].first + place] = Rounded(sums[k]);
      }
    }
  }

  // Sums pieces 0 to count - 1; one may have no elements.
  template <typename PieceOf>
  void SumRuns(int64_t count, PieceOf piece_of) {
    const int64_t groups = (count + kSideBySide - 1) / kSideBySide;
    call_.ParallelFor(groups, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g * kSideBySide;
        const int64_t many = std::min<int64_t>(kSideBySide, count - first);
        std::array<Piece, kSideBySide> pieces = {};
        bool even = many == kSideBySide;
        for (int64_t k = 0; k < many; ++k) {
          pieces[k] = piece_of(first + k);
          even = even && pieces[k].count == pieces[0].count;
        }
        if (even) {
          SumTogether(pieces);
        } else {
          for (int64_t k = 0; k < many; ++k) SumOne(pieces[k]);
        }
      }
    });
  }

  // The elements of a block, number `b` in the order of summation.
  Piece Block(int64_t line, int64_t b) const {
    const int64_t begin = b * kBlock;
    const int64_t count = std::min(kBlock, length_ - begin);
    const int64_t first = reverse_ ? length_ - begin - count : begin;
    return {line * length_ + first, count, 0};
  }

  State Total(const Piece& block) const {
    std::array<State, 16> sums = {};
    int64_t i = 0;
    for (; i + 16 <= block.count; i += 16) {
      for (int k = 0; k < 16; ++k) sums[k] += x_[block.first + i + k];
    }
    for (; i < block.count; ++i) sums[i % 16] += x_[block.first + i];
    State total = 0;
    for (const State& sum : sums) total += sum;
    return total;
  }

  static bool IsFinite(State sum) {
    if constexpr (std::is_floating_point_v<State>) return std::isfinite(sum);
    return true;
  }

  absl::Status SumBlocks() {
    const int64_t blocks = (length_ + kBlock - 1) / kBlock;
    const size_t bytes = outer_ * blocks * sizeof(State);
    auto* const before = static_cast<State*>(call_.Allocate(bytes));
    if (before == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", bytes, " bytes, to sum"));
    }
    call_.ParallelFor(outer_ * blocks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        before[i] = Total(Block(i / blocks, i % blocks));
      }
    });
    // From the sums of the blocks to those before them. A line with one that is
    // not finite is marked by its first block.
    for (int64_t line = 0; line < outer_; ++line) {
      State sum = 0;
      bool finite = true;
      for (int64_t b = 0; b < blocks; ++b) {
        State& entry = before[line * blocks + b];
        const State next = sum + entry;
        finite = finite && IsFinite(entry) && IsFinite(next);
        entry = sum;
        sum = next;
      }
      before[line * blocks] = finite ? 0 : 1;
    }
    SumRuns(outer_ * blocks, [&](int64_t i) {
      const int64_t line = i / blocks;
      const bool one_by_one = before[line * blocks] != 0;
      if (i % blocks == 0) {
        return one_by_one ? Piece{line * length_, length_, 0} : Block(line, 0);
      }
      if (one_by_one) return Piece{0, 0, 0};
      Piece block = Block(line, i % blocks);
      block.before = before[i];
      return block;
    });
    KernelCall::Free(before);
    return absl::OkStatus();
  }

  // The lines of many columns side by side.
  void SumColumns() {
    const int64_t tasks = (inner_ + kColumns - 1) / kColumns;
    call_.ParallelFor(outer_ * tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % tasks * kColumns;
        const int64_t count = std::min(kColumns, inner_ - column);
        const int64_t first = i / tasks * length_ * inner_ + column;
        std::array<State, kColumns> sums = {};
        for (int64_t r = 0; r < length_; ++r) {
          const int64_t at = first + Place(r, length_) * inner_;
          for (int64_t c = 0; c < count; ++c) {
            sums[c] += x_[at + c];
            y_[at + c] = Rounded(sums[c]);
          }
        }
      }
    });
  }

  KernelCall& call_;
  const bool reverse_;
  const int64_t length_;
  int64_t outer_ = 1;
  int64_t inner_ = 1;
  const T* const x_;
  T* const y_;
};

}  // namespace

absl::Status CumulativeSums(const SummedArray& array, KernelCall& call) {
  CLEAVE_CHECK(InClass(array.dtype, DTypeClass::kReal) &&
               ByteSize(array.dtype) >= 4)
      << DTypeName(array.dtype);
  if (array.dtype == DType::kF32) return Sums<float, double>(array, call).Run();
  if (array.dtype == DType::kF64) {
    return Sums<double, double>(array, call).Run();
  }
  // Modulo 2^32 or 2^64, signed or not.
  if (ByteSize(array.dtype) == 4) {
    return Sums<uint32_t, uint32_t>(array, call).Run();
  }
  return Sums<uint64_t, uint64_t>(array, call).Run();
}

}  // namespace cleave::internal_kernel
