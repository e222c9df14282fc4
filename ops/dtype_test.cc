#include "ops/dtype.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(DType, NamesParseBackAndAreDistinct) {
  std::set<std::string> names;
  for (DType dtype : AllDTypes()) {
    names.insert(std::string(DTypeName(dtype)));
    auto parsed = ParseDType(DTypeName(dtype));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, dtype);
  }
  EXPECT_EQ(names.size(), AllDTypes().size());
  EXPECT_EQ(AllDTypes().size(), 16u);
}

TEST(DType, UnknownNamesAreRejectedWithTheChoices) {
  auto parsed = ParseDType("float32");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr("unknown dtype `float32`; the dtypes are bool, u8"));
  EXPECT_FALSE(ParseDType("").ok());
  EXPECT_FALSE(ParseDType("F32").ok());
  EXPECT_THAT(std::string(ParseDTypeClass("floating").status().message()),
              HasSubstr("unknown dtype class `floating`"));
}

TEST(DType, ClassNamesParseBack) {
  for (int i = 0; i <= static_cast<int>(DTypeClass::kAny); ++i) {
    const auto dtype_class = static_cast<DTypeClass>(i);
    auto parsed = ParseDTypeClass(DTypeClassName(dtype_class));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, dtype_class);
  }
  EXPECT_EQ(DTypeClassName(DTypeClass::kInexact), "inexact");
}

// int, float < real < number; float, complex < inexact < number < any.
TEST(DType, ClassesNest) {
  for (DType d : AllDTypes()) {
    const bool is_int = InClass(d, DTypeClass::kInt);
    const bool is_float = InClass(d, DTypeClass::kFloat);
    const bool is_complex = InClass(d, DTypeClass::kComplex);
    EXPECT_EQ(InClass(d, DTypeClass::kReal), is_int || is_float);
    EXPECT_EQ(InClass(d, DTypeClass::kInexact), is_float || is_complex);
    EXPECT_EQ(InClass(d, DTypeClass::kNumber),
              is_int || is_float || is_complex);
    EXPECT_TRUE(InClass(d, DTypeClass::kAny));
    EXPECT_EQ(InClass(d, DTypeClass::kBool), d == DType::kBool);
  }
  EXPECT_TRUE(InClass(DType::kBF16, DTypeClass::kFloat));
  EXPECT_FALSE(InClass(DType::kBool, DTypeClass::kNumber));
  EXPECT_FALSE(InClass(DType::kKey, DTypeClass::kNumber));
}

TEST(DType, SizesAndSigns) {
  EXPECT_EQ(ByteSize(DType::kBool), 1);
  EXPECT_EQ(ByteSize(DType::kBF16), 2);
  EXPECT_EQ(ByteSize(DType::kC128), 16);
  EXPECT_TRUE(IsSigned(DType::kI8));
  EXPECT_FALSE(IsSigned(DType::kU64));
  EXPECT_TRUE(IsSigned(DType::kF16));
  EXPECT_FALSE(IsSigned(DType::kBool));
}

TEST(DType, AccumulationTypes) {
  EXPECT_EQ(AccumulationType(DType::kF16), DType::kF32);
  EXPECT_EQ(AccumulationType(DType::kBF16), DType::kF32);
  EXPECT_EQ(AccumulationType(DType::kF32), DType::kF32);
  EXPECT_EQ(AccumulationType(DType::kF64), DType::kF64);
  EXPECT_EQ(AccumulationType(DType::kC64), DType::kC64);
  EXPECT_EQ(AccumulationType(DType::kC128), DType::kC128);
  EXPECT_EQ(AccumulationType(DType::kBool), DType::kI64);
  EXPECT_EQ(AccumulationType(DType::kU8), DType::kI64);
  EXPECT_EQ(AccumulationType(DType::kU64), DType::kU64);
}

TEST(DType, SignificandBits) {
  EXPECT_EQ(SignificandBits(DType::kF16), 11);
  EXPECT_EQ(SignificandBits(DType::kBF16), 8);
  EXPECT_EQ(SignificandBits(DType::kF32), 24);
  EXPECT_EQ(SignificandBits(DType::kF64), 53);
}

}  // namespace
}  // namespace cleave
