#include "ops/reference/philox.h"

namespace cleave {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

namespace {

// The four words of one counter.
std::array<uint32_t, 4> Block(uint64_t key, RandomStream stream, uint64_t i) {
  return Philox4x32(
      {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
       static_cast<uint32_t>(stream), 0},
      {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}

}  // namespace

uint32_t RandomWords::Next() {
  if (next_ % 4 == 0) block_ = Block(key_, stream_, next_ / 4);
  return block_[next_++ % 4];
}

uint64_t RandomWords::Next64() {
  const uint64_t low = Next();
  return uint64_t{Next()} << 32 | low;
}

uint64_t FoldIn(uint64_t key, uint64_t i) {
  const std::array<uint32_t, 4> words = Block(key, RandomStream::kFoldIn, i);
  return uint64_t{words[1]} << 32 | words[0];
}

}  // namespace cleave
