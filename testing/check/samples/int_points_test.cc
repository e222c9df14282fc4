#include "testing/check/samples/int_points.h"

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"

namespace cleave {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(IntPoints, SpecialIntsReachBothEnds) {
  EXPECT_THAT(SpecialInts(DType::kI8),
              IsSupersetOf({0, 1, -1, 2, -2, 3, -3, 63, -65, 127, -127, -128}));
  EXPECT_THAT(SpecialInts(DType::kU8), IsSupersetOf({0, 1, 127, 128, 255}));
  EXPECT_THAT(SpecialInts(DType::kI64),
              IsSupersetOf({kMost, kLeast, (int64_t{1} << 40) + 1}));
  // 2^63 and 2^64 - 1.
  EXPECT_THAT(SpecialInts(DType::kU64), IsSupersetOf({kLeast, int64_t{-1}}));
  for (const int64_t value : SpecialInts(DType::kU16)) {
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 65535);
  }
}

TEST(IntPoints, IntsNearLeaveOutWhatTheDTypeHasNot) {
  EXPECT_THAT(IntsNear({10}, DType::kI16),
              UnorderedElementsAre(9, 10, 11, -9, -10, -11));
  EXPECT_THAT(IntsNear({255, 1000}, DType::kU8), ElementsAre(254, 255));
  EXPECT_THAT(IntsNear({kMost}, DType::kU64),
              IsSupersetOf({kMost - 1, kMost, kLeast}));
}

TEST(IntPoints, LogUniformIntsMeetEachNumberOfBits) {
  std::mt19937_64 random(1);
  std::set<int> bits;
  bool negative = false;
  for (int i = 0; i < 2000; ++i) {
    const int64_t value = LogUniformInt(DType::kI64, random);
    negative |= value < 0;
    int count = 0;
    for (int64_t left = value < 0 ? -value : value; left > 0; left /= 2) {
      ++count;
    }
    bits.insert(count);
  }
  EXPECT_EQ(bits.size(), 63u);
  EXPECT_TRUE(negative);
}

}  // namespace
}  // namespace cleave
