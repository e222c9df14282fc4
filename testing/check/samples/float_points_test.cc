#include "testing/check/samples/float_points.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "ops/tensor.h"

namespace cleave {
namespace {

TEST(FloatPoints, OrdinalsOfF32AreItsBits) {
  for (float value : {0.0f, 1.0f, 1.5f, 1e-45f, 1.1754944e-38f, 3.4028235e38f,
                      std::numeric_limits<float>::infinity()}) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    EXPECT_EQ(Ordinal(value, DType::kF32), bits) << value;
    EXPECT_EQ(Ordinal(-value, DType::kF32), -bits) << value;
    EXPECT_EQ(FromOrdinal(bits, DType::kF32), value);
  }
}

TEST(FloatPoints, OrdinalsRoundTrip) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<int64_t> any(-MaxOrdinal(dtype),
                                               MaxOrdinal(dtype));
    for (int i = 0; i < 1000; ++i) {
      const int64_t ordinal = any(random);
      const double value = FromOrdinal(ordinal, dtype);
      EXPECT_EQ(Ordinal(value, dtype), ordinal) << DTypeName(dtype);
      EXPECT_EQ(RoundToDType(value, dtype), value) << DTypeName(dtype);
    }
  }
}

TEST(FloatPoints, SixteenBitDTypesHaveAllTheirValues) {
  // 2^16 patterns, less all NaN but one.
  EXPECT_EQ(AllValues(DType::kF16).size(), 65536u - 2 * 1023 + 1);
  EXPECT_EQ(AllValues(DType::kBF16).size(), 65536u - 2 * 127 + 1);
}

TEST(FloatPoints, UlpErrorCountsUnitsOfTheExpectedValue) {
  const float next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(UlpError(Real(1.0, 64), next, DType::kF32), 1);
  EXPECT_EQ(UlpError(Real(1.0, 64), 1.0, DType::kF32), 0);
  EXPECT_EQ(UlpError(Real(0.0, 64), 1e-45f, DType::kF32), 1);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(UlpError(Real(infinity, 64), infinity, DType::kF32), 0);
  EXPECT_EQ(UlpError(Real(1.0, 64), std::nan(""), DType::kF32), infinity);
  EXPECT_EQ(UlpError(Real(std::nan(""), 64), 1.0, DType::kF32), infinity);
  EXPECT_EQ(UlpError(Real(std::nan(""), 64), std::nan(""), DType::kF32), 0);
  // A value that overflows may be infinite; one that does not overflow is far
  // from infinity.
  EXPECT_EQ(UlpError(Real(1e39, 64), infinity, DType::kF32), 0);
  EXPECT_GT(UlpError(Real(1e38, 64), infinity, DType::kF32), 1e6);
  EXPECT_EQ(UlpError(Real(1.0, 64), -infinity, DType::kF32), infinity);
}

TEST(FloatPoints, GridIsSpreadOverAllExponents) {
  std::mt19937_64 random(7);
  const std::vector<double> grid = UlpUniformGrid(DType::kF32, 20000, random);
  int denormal = 0;
  int large = 0;
  for (double value : grid) {
    EXPECT_TRUE(std::isfinite(value));
    denormal += std::abs(value) < 0x1p-126;
    large += std::abs(value) > 0x1p100;
  }
  EXPECT_GT(denormal, 50);
  EXPECT_GT(large, 1500);
}

}  // namespace
}  // namespace cleave
