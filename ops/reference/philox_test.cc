#include "ops/reference/philox.h"

#include <set>

#include "gtest/gtest.h"

namespace cleave {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, HasTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                       {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CountsWordsThroughBlocks) {
  const uint64_t key = 0x0123456789abcdef;
  const std::array<uint32_t, 2> words = {0x89abcdef, 0x01234567};
  for (const RandomStream stream :
       {RandomStream::kBits, RandomStream::kSplit}) {
    RandomWords narrow(key, stream), wide(key, stream);
    for (uint32_t block = 0; block < 3; ++block) {
      const Words want =
          Philox4x32({block, 0, static_cast<uint32_t>(stream), 0}, words);
      for (const uint32_t word : want) EXPECT_EQ(narrow.Next(), word);
      EXPECT_EQ(wide.Next64(), uint64_t{want[1]} << 32 | want[0]);
      EXPECT_EQ(wide.Next64(), uint64_t{want[3]} << 32 | want[2]);
    }
  }
}

TEST(Philox, FoldsInAtCountersOfItsOwn) {
  const uint64_t key = 0x0123456789abcdef;
  const std::array<uint32_t, 2> words = {0x89abcdef, 0x01234567};
  const Words one = Philox4x32({1, 0, 2, 0}, words);
  EXPECT_EQ(FoldIn(key, 1), uint64_t{one[1]} << 32 | one[0]);
  const Words all_ones = Philox4x32({0xffffffff, 0xffffffff, 2, 0}, words);
  EXPECT_EQ(FoldIn(key, ~uint64_t{0}),
            uint64_t{all_ones[1]} << 32 | all_ones[0]);
}

// A key's bits, the keys split from it and those folded in never meet: a
// thousand of each, of two keys, are all different.
TEST(Philox, StreamsDoNotCollide) {
  constexpr uint64_t kCount = 1000;
  std::set<uint64_t> seen;
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}}) {
    RandomWords bits(key, RandomStream::kBits);
    RandomWords split(key, RandomStream::kSplit);
    for (uint64_t i = 0; i < kCount; ++i) {
      seen.insert(bits.Next64());
      seen.insert(split.Next64());
      seen.insert(FoldIn(key, i));
      // Numbers that differ in the high half only.
      seen.insert(FoldIn(key, (i + 1) << 32));
    }
  }
  EXPECT_EQ(seen.size(), 2 * 4 * kCount);
}

}  // namespace
}  // namespace cleave
