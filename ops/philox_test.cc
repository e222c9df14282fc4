#include "ops/philox.h"

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
  const Words second = Philox4x32({1, 0, 0, 0}, {0x89abcdef, 0x01234567});
  EXPECT_EQ(RandomWord(key, RandomStream::kBits, 4), second[0]);
  EXPECT_EQ(RandomWord(key, RandomStream::kBits, 7), second[3]);
  EXPECT_EQ(RandomWord64(key, RandomStream::kBits, 3),
            uint64_t{second[3]} << 32 | second[2]);
  EXPECT_NE(RandomWord(key, RandomStream::kSplit, 4), second[0]);
}

}  // namespace
}  // namespace cleave
