#include "testing/check/samples/pair_cover.h"

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(PairCover, EveryTwoChoicesMeetInFewRows) {
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    std::mt19937_64 random(seed);
    const std::vector<int> sizes = {3, 2, 5, 4};
    PairCover cover(sizes);
    std::set<std::pair<std::pair<int, int>, std::pair<int, int>>> met;
    while (const auto row = cover.Next(random)) {
      for (int a = 0; a < 4; ++a) {
        ASSERT_LT((*row)[a], sizes[a]);
        for (int b = a + 1; b < 4; ++b) {
          met.insert({{a, (*row)[a]}, {b, (*row)[b]}});
        }
      }
      cover.Accept(*row);
    }
    EXPECT_EQ(met.size(), 3 * 2 + 3 * 5 + 3 * 4 + 2 * 5 + 2 * 4 + 5 * 4);
    EXPECT_EQ(cover.covered(), cover.pairs());
    // 20 are needed; all combinations are 120.
    EXPECT_LE(cover.rows(), 30);
  }
}

TEST(PairCover, ASingleFactorTakesEachOfItsChoices) {
  std::mt19937_64 random(1);
  PairCover cover({4});
  while (const auto row = cover.Next(random)) cover.Accept(*row);
  EXPECT_EQ(cover.rows(), 4);
}

// The first factor's last choice is never taken.
TEST(PairCover, PairsThatAreRefusedAreGivenUpAndCounted) {
  std::mt19937_64 random(1);
  PairCover cover({3, 3});
  int refused = 0;
  while (const auto row = cover.Next(random)) {
    if ((*row)[0] == 2) {
      ++refused;
      cover.Reject(*row);
    } else {
      cover.Accept(*row);
    }
  }
  EXPECT_EQ(cover.covered(), 6);
  EXPECT_EQ(cover.pairs(), 9);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(cover.ToString(), "6 of 9 pairs in 6 combinations");
}

TEST(PairCover, ForbiddenPairsAreNone) {
  std::mt19937_64 random(1);
  PairCover cover({3, 3, 3});
  // (0, 2) with all others, and the pair of (1, 1) and (2, 2).
  cover.Forbid({2, 0, 0}, {0});
  cover.Forbid({0, 1, 2}, {1, 2});
  EXPECT_EQ(cover.pairs(), 27 - 6 - 1);
  while (const auto row = cover.Next(random)) {
    EXPECT_NE((*row)[0], 2);
    cover.Accept(*row);
  }
  EXPECT_EQ(cover.covered(), cover.pairs());
}

// A choice that many refused rows had is no longer tried, unless one was
// accepted.
TEST(PairCover, SuspectedChoicesAreGivenUpAndCounted) {
  std::mt19937_64 random(1);
  PairCover cover({2, 2});
  cover.Accept({0, 0});
  for (int i = 0; i < 100; ++i) {
    cover.Suspect({1, 0}, 0);
    cover.Suspect({1, 0}, 1);
  }
  while (const auto row = cover.Next(random)) {
    EXPECT_NE((*row)[0], 1);
    cover.Accept(*row);
  }
  EXPECT_EQ(cover.ToString(), "2 of 4 pairs in 3 combinations");
}

}  // namespace
}  // namespace cleave
