// Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// SC 2011): four random words as a function of a counter and a key. Internal to
// ops.

#ifndef CLEAVE_OPS_PHILOX_H_
#define CLEAVE_OPS_PHILOX_H_

#include <array>
#include <cstdint>

namespace cleave {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

// Word i of a key's stream: word i % 4 at the counter (i / 4, stream), the low
// halves first. Streams are independent.
enum class RandomStream : uint32_t { kBits = 0, kSplit = 1 };
uint32_t RandomWord(uint64_t key, RandomStream stream, uint64_t i);
// Words 2i (the low half) and 2i + 1.
uint64_t RandomWord64(uint64_t key, RandomStream stream, uint64_t i);

}  // namespace cleave

#endif  // CLEAVE_OPS_PHILOX_H_
