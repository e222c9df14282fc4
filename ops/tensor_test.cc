#include "ops/tensor.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

uint16_t Bits(DType dtype, double value) {
  const Tensor tensor = Tensor::Scalar(dtype, value);
  uint16_t bits;
  std::memcpy(&bits, tensor.data(), sizeof(bits));
  return bits;
}

double FromBits(DType dtype, uint16_t bits) {
  Tensor tensor(dtype, {});
  std::memcpy(tensor.mutable_data(), &bits, sizeof(bits));
  return tensor.GetDouble(0);
}

TEST(Tensor, KnownEncodings) {
  EXPECT_EQ(Bits(DType::kF16, 1), 0x3c00);
  EXPECT_EQ(Bits(DType::kF16, -2), 0xc000);
  EXPECT_EQ(Bits(DType::kF16, 65504), 0x7bff);
  EXPECT_EQ(Bits(DType::kF16, 65519.99), 0x7bff);
  EXPECT_EQ(Bits(DType::kF16, 65520), 0x7c00);
  EXPECT_EQ(Bits(DType::kF16, -kInf), 0xfc00);
  EXPECT_EQ(Bits(DType::kF16, kNan) & 0x7fff, 0x7e00);
  EXPECT_EQ(Bits(DType::kF16, -0.0), 0x8000);
  EXPECT_EQ(Bits(DType::kF16, 0x1p-24), 0x0001);
  EXPECT_EQ(Bits(DType::kF16, 0x1p-25), 0x0000);
  EXPECT_EQ(Bits(DType::kF16, 0x1.000001p-25), 0x0001);
  EXPECT_EQ(Bits(DType::kF16, -5e-324), 0x8000);
  EXPECT_EQ(Bits(DType::kF16, 0x1p-14), 0x0400);
  // The largest subnormal, and the tie that rounds up to the least normal.
  EXPECT_EQ(Bits(DType::kF16, 1023 * 0x1p-24), 0x03ff);
  EXPECT_EQ(Bits(DType::kF16, 1023.5 * 0x1p-24), 0x0400);
  EXPECT_EQ(Bits(DType::kBF16, 1), 0x3f80);
  EXPECT_EQ(Bits(DType::kBF16, 0x1.fep127), 0x7f7f);
  EXPECT_EQ(Bits(DType::kBF16, 0x1.ffp127), 0x7f80);
  EXPECT_EQ(Bits(DType::kBF16, 0x1p-133), 0x0001);
  EXPECT_EQ(Bits(DType::kBF16, 0x1p-134), 0x0000);
  EXPECT_EQ(Bits(DType::kBF16, kNan) & 0x7fff, 0x7fc0);
}

TEST(Tensor, All16BitValuesRoundTrip) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (int bits = 0; bits < 0x10000; ++bits) {
      const double value = FromBits(dtype, static_cast<uint16_t>(bits));
      if (std::isnan(value)) continue;
      ASSERT_EQ(Bits(dtype, value), bits) << DTypeName(dtype);
      ASSERT_EQ(RoundToDType(value, dtype), value);
    }
  }
}

// Between every two neighbours: below, at and above the tie.
TEST(Tensor, RoundsToNearestEvenOnce) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const int infinity = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    for (int bits = 0; bits + 1 < infinity; ++bits) {
      const double low = FromBits(dtype, static_cast<uint16_t>(bits));
      const double high = FromBits(dtype, static_cast<uint16_t>(bits + 1));
      const double middle = low + (high - low) / 2;
      ASSERT_EQ(Bits(dtype, middle), bits % 2 == 0 ? bits : bits + 1);
      // These are ties in f32: rounding by way of it goes wrong.
      ASSERT_EQ(Bits(dtype, std::nextafter(middle, 0)), bits);
      ASSERT_EQ(Bits(dtype, std::nextafter(middle, kInf)), bits + 1);
      ASSERT_EQ(RoundToDType(-middle, dtype), -RoundToDType(middle, dtype));
    }
  }
}

TEST(Tensor, F32RoundsOnce) {
  EXPECT_EQ(RoundToDType(0.1, DType::kF32), 0.1f);
  EXPECT_EQ(RoundToDType(0x1p-150, DType::kF32), 0);
  EXPECT_EQ(RoundToDType(0x1.8p-150, DType::kF32), 0x1p-149);
  EXPECT_EQ(RoundToDType(1e39, DType::kF32), kInf);
  EXPECT_TRUE(std::isnan(RoundToDType(kNan, DType::kF32)));
  EXPECT_TRUE(std::signbit(RoundToDType(-0.0, DType::kBF16)));
}

// Each would have ended the process.
TEST(Tensor, MistakesMakeInvalidTensors) {
  const struct {
    Tensor tensor;
    absl::StatusCode code;
    const char* message;
  } kMistakes[] = {
      {Tensor(DType::kF32, {-1}), absl::StatusCode::kInvalidArgument,
       "extent is negative"},
      {Tensor(DType::kF32, {1 << 20, 1 << 20}),
       absl::StatusCode::kResourceExhausted, "more than"},
      {Tensor::FromDoubles(DType::kF32, {2}, {1}),
       absl::StatusCode::kInvalidArgument, "1 values for f32[2]"},
      {Tensor::FromInts(DType::kI32, {}, {1, 2}),
       absl::StatusCode::kInvalidArgument, "2 values for i32[]"},
      {Tensor::FromInts(DType::kF32, {1}, {1}),
       absl::StatusCode::kInvalidArgument, "f32"},
      {Tensor::FromInts(DType::kI8, {1}, {128}),
       absl::StatusCode::kInvalidArgument, "128 is out of range of i8"},
      {Tensor::FromInts(DType::kBool, {1}, {2}),
       absl::StatusCode::kInvalidArgument, "2 is out of range of bool"},
      {Tensor::Scalar(DType::kI64, 0x1p63), absl::StatusCode::kInvalidArgument,
       "out of range of i64"},
      {Tensor::Scalar(DType::kU64, -1), absl::StatusCode::kInvalidArgument,
       "-1 is out of range of u64"},
      {Tensor::Scalar(DType::kI32, kNan), absl::StatusCode::kInvalidArgument,
       "nan is out of range of i32"},
      {Tensor::Invalid(absl::OkStatus()), absl::StatusCode::kInvalidArgument,
       "a mistake"},
  };
  for (const auto& mistake : kMistakes) {
    SCOPED_TRACE(mistake.tensor.ToString());
    EXPECT_FALSE(mistake.tensor.valid());
    EXPECT_EQ(mistake.tensor.status().code(), mistake.code);
    EXPECT_THAT(std::string(mistake.tensor.status().message()),
                testing::HasSubstr(mistake.message));
    EXPECT_THAT(mistake.tensor.ToString(), testing::HasSubstr("<invalid: "));
    EXPECT_FALSE(SameValue(mistake.tensor, mistake.tensor));
    EXPECT_EQ(mistake.tensor.DoubleAt(0).status(), mistake.tensor.status());
  }
  EXPECT_TRUE(std::isnan(RoundToDType(1, DType::kI32)));
}

TEST(Tensor, ElementsThatAreNotThereHaveNoValue) {
  const Tensor x = Tensor::FromDoubles(DType::kF32, {2}, {1, 2.5});
  EXPECT_EQ(*x.DoubleAt(1), 2.5);
  EXPECT_EQ(*x.ComplexAt(1), std::complex<double>(2.5));
  for (const int64_t i : {int64_t{-1}, int64_t{2}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(x.DoubleAt(i).status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_TRUE(std::isnan(x.GetDouble(i)));
    EXPECT_EQ(x.GetInt(i), 0);
    EXPECT_TRUE(std::isnan(x.GetComplex(i).real()));
  }
  EXPECT_EQ(x.IntAt(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(x.GetInt(0), 0);
  const Tensor z = Tensor(DType::kC64, {1});
  EXPECT_FALSE(z.DoubleAt(0).ok());
  EXPECT_TRUE(z.ComplexAt(0).ok());
  EXPECT_TRUE(std::isnan(z.GetDouble(0)));
  EXPECT_EQ(*Tensor::FromInts(DType::kI8, {1}, {-3}).IntAt(0), -3);
  EXPECT_FALSE(Tensor(DType::kKey, {1}).ComplexAt(0).ok());
}

TEST(Tensor, ARefusedElementLeavesTheOthers) {
  Tensor x = Tensor::FromInts(DType::kI8, {2}, {1, 2});
  const Tensor copy = x;
  x.SetInt(1, 300);
  x.SetInt(2, 0);
  x.SetComplex(0, {0, 1});
  EXPECT_FALSE(x.valid());
  EXPECT_THAT(std::string(x.status().message()),
              testing::HasSubstr("300 is out of range of i8"));
  EXPECT_TRUE(SameValue(copy, Tensor::FromInts(DType::kI8, {2}, {1, 2})));
}

TEST(Tensor, IntegersKeepTheirRange) {
  EXPECT_EQ(Tensor::FromInts(DType::kI8, {2}, {-128, 127}).GetInt(0), -128);
  EXPECT_EQ(Tensor::Scalar(DType::kU64, 0x1.8p63).GetDouble(0), 0x1.8p63);
  EXPECT_EQ(Tensor::Scalar(DType::kI64, -0x1p63).GetInt(0),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Tensor::Scalar(DType::kU32, 4294967295.0).GetInt(0), 4294967295);
}

TEST(Tensor, Complex) {
  Tensor tensor(DType::kC64, {2});
  tensor.SetComplex(1, {1.5, -0.1});
  EXPECT_EQ(tensor.GetComplex(1), std::complex<double>(1.5, -0.1f));
  EXPECT_EQ(tensor.ToString(), "c64[2] [(0, 0), (1.5, -0.1)]");
  EXPECT_EQ(Tensor::Scalar(DType::kF32, 2).GetComplex(0).real(), 2);
}

TEST(Tensor, CreateRejectsBadShapes) {
  EXPECT_EQ(Tensor::Create(DType::kF32, {2, -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor::Create(DType::kF32, {int64_t{1} << 40}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Create(DType::kF32, {int64_t{1} << 62, int64_t{1} << 62})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  auto empty = Tensor::Create(DType::kF32, {int64_t{1} << 62, 0});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size(), 0);
  EXPECT_EQ(Tensor().shape(), std::vector<int64_t>{0});
  EXPECT_EQ(Tensor(DType::kF64, {}).size(), 1);
}

TEST(Tensor, SameValue) {
  const auto f = [](std::vector<double> v) {
    return Tensor::FromDoubles(DType::kF32, {2}, v);
  };
  EXPECT_TRUE(SameValue(f({1, kNan}), f({1, -kNan})));
  EXPECT_FALSE(SameValue(f({1, 0.0}), f({1, -0.0})));
  EXPECT_FALSE(SameValue(f({1, 2}), f({1, 3})));
  EXPECT_FALSE(SameValue(f({1, kNan}), f({1, 3})));
  EXPECT_FALSE(SameValue(Tensor(DType::kF32, {2}), Tensor(DType::kI32, {2})));
  EXPECT_FALSE(
      SameValue(Tensor(DType::kF32, {2}), Tensor(DType::kF32, {1, 2})));
}

TEST(Tensor, TextIsShortest) {
  EXPECT_EQ(Tensor::FromDoubles(DType::kF32, {3}, {1, 0.1, -kInf}).ToString(),
            "f32[3] [1, 0.1, -inf]");
  EXPECT_EQ(Tensor::FromDoubles(DType::kF64, {1}, {0.1f}).ToString(),
            "f64[1] [0.10000000149011612]");
  EXPECT_EQ(Tensor::FromDoubles(DType::kBF16, {2}, {0.1, kNan}).ToString(),
            "bf16[2] [0.1, nan]");
  EXPECT_EQ(Tensor::FromInts(DType::kBool, {2}, {1, 0}).ToString(),
            "bool[2] [true, false]");
  EXPECT_EQ(Tensor::FromInts(DType::kU64, {}, {-1}).ToString(),
            "u64[] [18446744073709551615]");
}

TEST(Tensor, CopiesShareData) {
  const Tensor a = Tensor::Scalar(DType::kF32, 1);
  const Tensor b = a;
  EXPECT_EQ(a.data(), b.data());
}

TEST(Tensor, DataBeginsAt64Bytes) {
  for (const int64_t size : {1, 3, 64, 1000, 1 << 20}) {
    for (const DType dtype : {DType::kU8, DType::kF64}) {
      const Tensor zeros(dtype, {size});
      EXPECT_EQ(reinterpret_cast<uintptr_t>(zeros.data()) % 64, 0);
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(zeros.GetDouble(i), 0);
      auto open = Tensor::CreateUninitialized(dtype, {size});
      ASSERT_TRUE(open.ok());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(open->data()) % 64, 0);
      EXPECT_EQ(open->byte_size(), zeros.byte_size());
      std::memset(open->mutable_data(), 0, open->byte_size());
      EXPECT_TRUE(SameValue(*open, zeros));
    }
  }
  EXPECT_EQ(Tensor(DType::kF32, {0, 3}).byte_size(), 0);
}

TEST(Tensor, UninitializedRefusesWhatCreateRefuses) {
  EXPECT_EQ(Tensor::CreateUninitialized(DType::kF32, {-1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor::CreateUninitialized(DType::kF32, {1 << 20, 1 << 20})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Tensor, TakesMemoryThatBeginsAt64Bytes) {
  int freed = 0;
  alignas(64) std::byte bytes[72] = {};
  const float value = 2.5f;
  std::memcpy(bytes + 4, &value, 4);
  {
    const auto tensor = Tensor::FromMemory(
        DType::kF32, {2},
        std::shared_ptr<std::byte>(bytes, [&](std::byte*) { ++freed; }));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->data(), bytes);
    EXPECT_EQ(tensor->GetDouble(1), 2.5);
    const Tensor copy = *tensor;
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
  const auto own = [](std::byte* at) {
    return std::shared_ptr<std::byte>(at, [](std::byte*) {});
  };
  for (const auto& data : {own(bytes + 4), std::shared_ptr<std::byte>()}) {
    EXPECT_EQ(Tensor::FromMemory(DType::kF32, {2}, data).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Tensor::FromMemory(DType::kF32, {-1}, own(bytes)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Tensor::FromMemory(DType::kF32, {0}, nullptr).ok());
}

}  // namespace
}  // namespace cleave
