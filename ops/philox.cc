#include "ops/philox.h"

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

uint32_t RandomWord(uint64_t key, RandomStream stream, uint64_t i) {
  const uint64_t block = i / 4;
  return Philox4x32(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
       static_cast<uint32_t>(stream), 0},
      {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)})[i % 4];
}

uint64_t RandomWord64(uint64_t key, RandomStream stream, uint64_t i) {
  const uint64_t low = RandomWord(key, stream, 2 * i);
  const uint64_t high = RandomWord(key, stream, 2 * i + 1);
  return high << 32 | low;
}

}  // namespace cleave
