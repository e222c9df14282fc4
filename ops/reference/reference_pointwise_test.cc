// Pointwise reference kernels at special values, dtype by dtype. Agreement with
// MPFR over ranges is in ops/reference/real_test.cc.

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "ops/reference/reference.h"

namespace cleave {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

Tensor Floats(DType dtype, const std::vector<double>& values) {
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(values.size())},
                             values);
}
Tensor Ints(DType dtype, const std::vector<int64_t>& values) {
  return Tensor::FromInts(dtype, {static_cast<int64_t>(values.size())}, values);
}
Tensor Bools(const std::vector<int64_t>& values) {
  return Ints(DType::kBool, values);
}

void ExpectValue(Primitive primitive, const Attributes& attributes,
                 const std::vector<Tensor>& operands, const Tensor& want) {
  const auto got = EvalReference(primitive, attributes, operands);
  ASSERT_TRUE(got.ok()) << PrimitiveName(primitive) << ": " << got.status();
  EXPECT_TRUE(SameValue((*got)[0], want))
      << PrimitiveName(primitive) << " of " << operands[0].ToString()
      << " gives " << (*got)[0].ToString() << ", not " << want.ToString();
}

const DType kFloats[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
const DType kInts[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64,
                       DType::kI8, DType::kI16, DType::kI32, DType::kI64};

TEST(ReferencePointwise, UnaryFloatsAtSpecialValues) {
  const struct {
    Primitive primitive;
    std::vector<double> x, want;
  } kCases[] = {
      {Primitive::kAbs, {-0.0, -kInf, kNaN, -2}, {0, kInf, kNaN, 2}},
      {Primitive::kNeg, {0, -0.0, kInf, kNaN}, {-0.0, 0, -kInf, kNaN}},
      {Primitive::kSign,
       {-0.0, 0, -3, 2, -kInf, kNaN},
       {-0.0, 0, -1, 1, -1, kNaN}},
      {Primitive::kCeil, {-0.5, 1.25, -kInf, kNaN}, {-0.0, 2, -kInf, kNaN}},
      {Primitive::kFloor, {-0.5, 1.25, -0.0, kInf}, {-1, 1, -0.0, kInf}},
      {Primitive::kRoundNearestEven,
       {0.5, 1.5, 2.5, -0.5, -2.5, kInf},
       {0, 2, 2, -0.0, -2, kInf}},
      {Primitive::kExp, {-kInf, 0, -0.0, kInf, kNaN}, {0, 1, 1, kInf, kNaN}},
      {Primitive::kExpm1, {-kInf, 0, -0.0, kInf}, {-1, 0, -0.0, kInf}},
      {Primitive::kLog,
       {0, -0.0, 1, kInf, -1, kNaN},
       {-kInf, -kInf, 0, kInf, kNaN, kNaN}},
      {Primitive::kLog1p,
       {-1, 0, -0.0, kInf, -2},
       {-kInf, 0, -0.0, kInf, kNaN}},
      {Primitive::kSqrt, {0, -0.0, 4, kInf, -1}, {0, -0.0, 2, kInf, kNaN}},
      {Primitive::kRsqrt, {0, -0.0, 4, kInf, -1}, {kInf, -kInf, 0.5, 0, kNaN}},
      {Primitive::kCbrt, {-8, -0.0, kInf}, {-2, -0.0, kInf}},
      {Primitive::kSin, {0, -0.0, kInf, kNaN}, {0, -0.0, kNaN, kNaN}},
      {Primitive::kCos, {0, kInf}, {1, kNaN}},
      {Primitive::kTan, {-0.0, kInf}, {-0.0, kNaN}},
      {Primitive::kAsin, {-0.0, 2}, {-0.0, kNaN}},
      {Primitive::kAcos, {1, 2}, {0, kNaN}},
      {Primitive::kAtan, {-0.0, 0}, {-0.0, 0}},
      {Primitive::kSinh, {-0.0, kInf, -kInf}, {-0.0, kInf, -kInf}},
      {Primitive::kCosh, {0, -kInf}, {1, kInf}},
      {Primitive::kTanh, {-0.0, kInf, -kInf}, {-0.0, 1, -1}},
      {Primitive::kAsinh, {-0.0, -kInf}, {-0.0, -kInf}},
      {Primitive::kAcosh, {1, 0.5, kInf}, {0, kNaN, kInf}},
      {Primitive::kAtanh, {-0.0, 1, -1, 2}, {-0.0, kInf, -kInf, kNaN}},
      {Primitive::kSigmoid, {0, kInf, -kInf, kNaN}, {0.5, 1, 0, kNaN}},
      {Primitive::kErf, {-0.0, kInf, -kInf, kNaN}, {-0.0, 1, -1, kNaN}},
      {Primitive::kErfc, {0, kInf, -kInf, kNaN}, {1, 0, 2, kNaN}},
      {Primitive::kErfinv,
       {-0.0, 1, -1, 1.5, kNaN},
       {-0.0, kInf, -kInf, kNaN, kNaN}},
      {Primitive::kLgamma,
       {1, 2, 0, -3, kInf, -kInf},
       {0, 0, kInf, kInf, kInf, kInf}},
      {Primitive::kNograd, {-0.0, kNaN, 3}, {-0.0, kNaN, 3}},
  };
  for (const auto& c : kCases) {
    for (const DType dtype : kFloats) {
      ExpectValue(c.primitive, {}, {Floats(dtype, c.x)}, Floats(dtype, c.want));
      // Empty and 0-d.
      ExpectValue(c.primitive, {}, {Tensor(dtype, {0, 3})},
                  Tensor(dtype, {0, 3}));
      ExpectValue(c.primitive, {}, {Tensor::Scalar(dtype, c.x[0])},
                  Tensor::Scalar(dtype, c.want[0]));
    }
  }
}

TEST(ReferencePointwise, BinaryFloatsAtSpecialValues) {
  const struct {
    Primitive primitive;
    std::vector<double> a, b, want;
  } kCases[] = {
      {Primitive::kAdd, {kInf, -0.0, -0.0}, {-kInf, -0.0, 0}, {kNaN, -0.0, 0}},
      {Primitive::kSub, {kInf, 0, -0.0}, {kInf, 0, 0}, {kNaN, 0, -0.0}},
      {Primitive::kMul, {0, -0.0, kInf}, {kInf, 3, -1}, {kNaN, -0.0, -kInf}},
      {Primitive::kDiv,
       {1, -1, 0, kInf, 1},
       {0, 0, 0, kInf, -0.0},
       {kInf, -kInf, kNaN, kNaN, -kInf}},
      {Primitive::kRem,
       {5, -5, 5, -4, 1, kInf, 3},
       {3, 3, -3, 2, 0, 2, kInf},
       {2, -2, 2, -0.0, kNaN, kNaN, 3}},
      {Primitive::kPow,
       {0, kNaN, 1, -8, -0.0, -0.0, 2, -1, -2},
       {0, 0, kNaN, 1.5, -1, -2, -kInf, kInf, 3},
       {1, 1, 1, kNaN, -kInf, kInf, 0, 1, -8}},
      {Primitive::kAtan2, {0, -0.0, 0, kNaN}, {1, 1, 0, 0}, {0, -0.0, 0, kNaN}},
      {Primitive::kCopysign, {3, kNaN, 2}, {-0.0, -1, 1}, {-3, kNaN, 2}},
      {Primitive::kMax,
       {-0.0, 0, kNaN, 1, -kInf},
       {0, -0.0, 1, kNaN, kInf},
       {0, 0, kNaN, kNaN, kInf}},
      {Primitive::kMin,
       {-0.0, 0, kNaN, 1, -kInf},
       {0, -0.0, 1, kNaN, kInf},
       {-0.0, -0.0, kNaN, kNaN, -kInf}},
      {Primitive::kPolygamma,
       {0, 1, 2, -1},
       {0, 0, -0.0, 1},
       {-kInf, kInf, kInf, kNaN}},
  };
  for (const auto& c : kCases) {
    for (const DType dtype : kFloats) {
      ExpectValue(c.primitive, {}, {Floats(dtype, c.a), Floats(dtype, c.b)},
                  Floats(dtype, c.want));
      ExpectValue(c.primitive, {}, {Tensor(dtype, {0}), Tensor(dtype, {0})},
                  Tensor(dtype, {0}));
    }
  }
}

TEST(ReferencePointwise, ComparisonsWithNaNAreFalse) {
  const std::vector<double> a = {1, 1, 2, -0.0, kNaN, kNaN};
  const std::vector<double> b = {1, 2, 1, 0.0, 1, kNaN};
  for (const DType dtype : kFloats) {
    const std::vector<Tensor> x = {Floats(dtype, a), Floats(dtype, b)};
    ExpectValue(Primitive::kEq, {}, x, Bools({1, 0, 0, 1, 0, 0}));
    ExpectValue(Primitive::kNe, {}, x, Bools({0, 1, 1, 0, 1, 1}));
    ExpectValue(Primitive::kLt, {}, x, Bools({0, 1, 0, 0, 0, 0}));
    ExpectValue(Primitive::kLe, {}, x, Bools({1, 1, 0, 1, 0, 0}));
    ExpectValue(Primitive::kGt, {}, x, Bools({0, 0, 1, 0, 0, 0}));
    ExpectValue(Primitive::kGe, {}, x, Bools({1, 0, 1, 1, 0, 0}));
    ExpectValue(Primitive::kIsnan, {}, {x[0]}, Bools({0, 0, 0, 0, 1, 1}));
    ExpectValue(Primitive::kIsinf, {}, {Floats(dtype, {kInf, -kInf, kNaN, 1})},
                Bools({1, 1, 0, 0}));
  }
  // 2^64 - 1 is the greatest u64, though its bits are those of -1.
  ExpectValue(Primitive::kLt, {},
              {Ints(DType::kU8, {1}), Ints(DType::kU8, {255})}, Bools({1}));
  const auto top = EvalReference(Primitive::kNot, {}, {Ints(DType::kU64, {0})});
  ASSERT_TRUE(top.ok());
  ExpectValue(Primitive::kLt, {}, {Ints(DType::kU64, {1}), (*top)[0]},
              Bools({1}));
}

TEST(ReferencePointwise, IntegersWrap) {
  for (const DType dtype : kInts) {
    const Tensor five = Ints(dtype, {5}), three = Ints(dtype, {3});
    ExpectValue(Primitive::kAdd, {}, {five, three}, Ints(dtype, {8}));
    ExpectValue(Primitive::kSub, {}, {five, three}, Ints(dtype, {2}));
    ExpectValue(Primitive::kMul, {}, {five, three}, Ints(dtype, {15}));
    ExpectValue(Primitive::kFloorDiv, {}, {five, three}, Ints(dtype, {1}));
    ExpectValue(Primitive::kFloorMod, {}, {five, three}, Ints(dtype, {2}));
    ExpectValue(Primitive::kRem, {}, {five, three}, Ints(dtype, {2}));
    ExpectValue(Primitive::kPow, {}, {five, three}, Ints(dtype, {125}));
    ExpectValue(Primitive::kAnd, {}, {five, three}, Ints(dtype, {1}));
    ExpectValue(Primitive::kOr, {}, {five, three}, Ints(dtype, {7}));
    ExpectValue(Primitive::kXor, {}, {five, three}, Ints(dtype, {6}));
    ExpectValue(Primitive::kShiftLeft, {}, {five, three}, Ints(dtype, {40}));
    ExpectValue(Primitive::kShiftRight, {}, {five, three}, Ints(dtype, {0}));
    ExpectValue(Primitive::kMax, {}, {five, three}, Ints(dtype, {5}));
    ExpectValue(Primitive::kSign, {}, {Ints(dtype, {0, 7})},
                Ints(dtype, {0, 1}));
    for (const Primitive primitive :
         {Primitive::kFloorDiv, Primitive::kFloorMod, Primitive::kRem}) {
      EXPECT_EQ(EvalReference(primitive, {}, {five, Ints(dtype, {0})})
                    .status()
                    .code(),
                absl::StatusCode::kOutOfRange);
    }
  }
  const Tensor low = Ints(DType::kI64, {kMin64});
  ExpectValue(Primitive::kNeg, {}, {low}, low);
  ExpectValue(Primitive::kAbs, {}, {low}, low);
  ExpectValue(Primitive::kSub, {}, {low, Ints(DType::kI64, {1})},
              Ints(DType::kI64, {kMax64}));
  ExpectValue(Primitive::kFloorDiv, {}, {low, Ints(DType::kI64, {-1})}, low);
  ExpectValue(Primitive::kRem, {}, {low, Ints(DType::kI64, {-1})},
              Ints(DType::kI64, {0}));
  ExpectValue(Primitive::kAdd, {},
              {Ints(DType::kU8, {200}), Ints(DType::kU8, {100})},
              Ints(DType::kU8, {44}));
  ExpectValue(Primitive::kAdd, {},
              {Ints(DType::kI8, {100}), Ints(DType::kI8, {100})},
              Ints(DType::kI8, {-56}));
  const Tensor a = Ints(DType::kI32, {-7, 7, -7, 6});
  const Tensor b = Ints(DType::kI32, {2, -2, -2, -3});
  ExpectValue(Primitive::kFloorDiv, {}, {a, b},
              Ints(DType::kI32, {-4, -4, 3, -2}));
  ExpectValue(Primitive::kFloorMod, {}, {a, b},
              Ints(DType::kI32, {1, -1, -1, 0}));
  ExpectValue(Primitive::kRem, {}, {a, b}, Ints(DType::kI32, {-1, 1, -1, 0}));
  ExpectValue(Primitive::kShiftRight, {},
              {Ints(DType::kI8, {-8, -8, 8}), Ints(DType::kI8, {1, 99, 99})},
              Ints(DType::kI8, {-4, -1, 0}));
  ExpectValue(
      Primitive::kPow, {},
      {Ints(DType::kI32, {2, -1, 1, 0}), Ints(DType::kI32, {-1, -3, -9, 0})},
      Ints(DType::kI32, {0, -1, 1, 1}));
}

TEST(ReferencePointwise, Bools) {
  const Tensor a = Bools({0, 0, 1, 1}), b = Bools({0, 1, 0, 1});
  ExpectValue(Primitive::kAnd, {}, {a, b}, Bools({0, 0, 0, 1}));
  ExpectValue(Primitive::kOr, {}, {a, b}, Bools({0, 1, 1, 1}));
  ExpectValue(Primitive::kXor, {}, {a, b}, Bools({0, 1, 1, 0}));
  ExpectValue(Primitive::kNot, {}, {a}, Bools({1, 1, 0, 0}));
  ExpectValue(Primitive::kEq, {}, {a, b}, Bools({1, 0, 0, 1}));
  ExpectValue(Primitive::kNot, {}, {Ints(DType::kI8, {0, 5})},
              Ints(DType::kI8, {-1, -6}));
}

TEST(ReferencePointwise, ConvertTruncatesAndSaturates) {
  const Tensor x =
      Floats(DType::kF64, {1.9, -1.9, 300, -300, 1e30, -kInf, kInf, kNaN});
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kI8}}, {x},
              Ints(DType::kI8, {1, -1, 127, -128, 127, -128, 127, 0}));
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kU8}}, {x},
              Ints(DType::kU8, {1, 0, 255, 0, 255, 0, 255, 0}));
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kI64}}, {x},
              Ints(DType::kI64, {1, -1, 300, -300, kMax64, kMin64, kMax64, 0}));
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kBool}},
              {Floats(DType::kF32, {0, -0.0, 0.5, kNaN})}, Bools({0, 0, 1, 1}));
  // Integers wrap.
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kI8}},
              {Ints(DType::kI32, {255, 128, -129})},
              Ints(DType::kI8, {-1, -128, 127}));
  // 2^24 + 1 lies in the middle of two f32, this is a little more: rounding by
  // way of f64 would lose it.
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kF32}},
              {Ints(DType::kI64, {above})},
              Floats(DType::kF32, {std::ldexp(1, 60) + std::ldexp(1, 37)}));
  // f64 to f16 rounds once, not by way of f32.
  ExpectValue(Primitive::kConvert, {{"dtype", DType::kF16}},
              {Floats(DType::kF64, {1 + std::ldexp(1, -11) + std::ldexp(1, -40),
                                    65520, 65519, std::ldexp(1, -25)})},
              Floats(DType::kF16, {1 + std::ldexp(1, -10), kInf, 65504, 0}));
}

TEST(ReferencePointwise, BitsAndNeighbours) {
  ExpectValue(Primitive::kBitcastConvert, {{"dtype", DType::kU16}},
              {Floats(DType::kBF16, {1, -0.0, kInf})},
              Ints(DType::kU16, {0x3f80, 0x8000, 0x7f80}));
  ExpectValue(Primitive::kBitcastConvert, {{"dtype", DType::kF32}},
              {Ints(DType::kI32, {0x3f800000})}, Floats(DType::kF32, {1}));
  ExpectValue(Primitive::kNextafter, {},
              {Floats(DType::kF16, {1, 1, 0, 0, -0.0, 65504, kNaN}),
               Floats(DType::kF16, {2, 0, 1, -1, 0, kInf, 0})},
              Floats(DType::kF16,
                     {1 + std::ldexp(1, -10), 1 - std::ldexp(1, -11),
                      std::ldexp(1, -24), -std::ldexp(1, -24), 0, kInf, kNaN}));
}

TEST(ReferencePointwise, LdexpAndSelect) {
  ExpectValue(Primitive::kLdexp, {},
              {Floats(DType::kF32, {1, 3, 1, -0.0, kNaN, kInf, 1.5}),
               Ints(DType::kI32, {3, -1, 2147483647, 5, 5, -2147483647, -149})},
              Floats(DType::kF32,
                     {8, 1.5, kInf, -0.0, kNaN, kInf, std::ldexp(1, -148)}));
  ExpectValue(Primitive::kSelect, {},
              {Bools({1, 0}), Floats(DType::kF32, {kNaN, 2}),
               Floats(DType::kF32, {3, -0.0})},
              Floats(DType::kF32, {kNaN, -0.0}));
}

TEST(ReferencePointwise, ComplexNumbers) {
  const auto z = EvalReference(
      Primitive::kComplex, {},
      {Floats(DType::kF64, {3, 0}), Floats(DType::kF64, {4, kNaN})});
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_EQ((*z)[0].dtype(), DType::kC128);
  ExpectValue(Primitive::kAbs, {}, {(*z)[0]}, Floats(DType::kF64, {5, kNaN}));
  ExpectValue(Primitive::kImag, {}, {(*z)[0]}, Floats(DType::kF64, {4, kNaN}));
  ExpectValue(Primitive::kIsnan, {}, {(*z)[0]}, Bools({0, 1}));
  ExpectValue(Primitive::kEq, {}, {(*z)[0], (*z)[0]}, Bools({1, 0}));
  const auto square = EvalReference(Primitive::kMul, {}, {(*z)[0], (*z)[0]});
  ASSERT_TRUE(square.ok()) << square.status();
  EXPECT_EQ((*square)[0].GetComplex(0), std::complex<double>(-7, 24));
}

// z^0 is 1 of any z, as x^0 is of real numbers; 0^w is 0.
TEST(ReferencePointwise, ComplexPowersOfZero) {
  const Tensor zero(DType::kC128, {1});
  Tensor two(DType::kC128, {1});
  two.SetComplex(0, {2, 0});
  for (const Tensor& base : {zero, two}) {
    const auto power = EvalReference(Primitive::kPow, {}, {base, zero});
    ASSERT_TRUE(power.ok()) << power.status();
    EXPECT_EQ((*power)[0].GetComplex(0), std::complex<double>(1, 0));
  }
  const auto power = EvalReference(Primitive::kPow, {}, {zero, two});
  ASSERT_TRUE(power.ok()) << power.status();
  EXPECT_EQ((*power)[0].GetComplex(0), std::complex<double>(0, 0));
}

TEST(EvalReference, RefusesInvalidTensors) {
  const Tensor bad(DType::kF32, {-1});
  EXPECT_EQ(EvalReference(Primitive::kNeg, {}, {bad}).status(), bad.status());
}

}  // namespace
}  // namespace cleave
