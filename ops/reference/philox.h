// Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// SC 2011): four random words as a function of a counter and a key. Internal to
// ops and to the tests of kernels.

#ifndef CLEAVE_OPS_REFERENCE_PHILOX_H_
#define CLEAVE_OPS_REFERENCE_PHILOX_H_

#include <array>
#include <cstdint>

namespace cleave {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

// Streams are independent: each has counters of its own.
enum class RandomStream : uint32_t { kBits = 0, kSplit = 1, kFoldIn = 2 };

// The words of a key's stream in order: word i is word i % 4 at the counter
// (i / 4, stream), the low halves first.
class RandomWords {
 public:
  RandomWords(uint64_t key, RandomStream stream) : key_(key), stream_(stream) {}
  uint32_t Next();
  // Two words, the low half first.
  uint64_t Next64();

 private:
  uint64_t key_;
  RandomStream stream_;
  uint64_t next_ = 0;  // the number of the next word
  std::array<uint32_t, 4> block_{};
};

// The key that `i` picks: the first two words, the low half first, at the
// counter (i, kFoldIn). All 2^64 numbers have counters of their own.
uint64_t FoldIn(uint64_t key, uint64_t i);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_PHILOX_H_
