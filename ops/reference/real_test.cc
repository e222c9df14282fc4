// EvalReal against EvalReference: each pointwise primitive within 1 ulp of the
// real result rounded once, in f64 at random and special points, in f16 and
// bf16 everywhere.

#include "ops/reference/real.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/reference/reference.h"

namespace cleave {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

std::vector<double> Specials() {
  const double tiny = std::numeric_limits<double>::denorm_min();
  std::vector<double> values = {kNaN};
  for (const double v : {0.0,   tiny, 1e-310, 2.3e-308, 1e-20,
                         0.25,  0.5,  1.0,    1.5,      2.0,
                         2.5,   3.0,  17.0,   170.5,    709.0,
                         746.0, 1e5,  1e16,   1e300,    1.7976931348623157e308,
                         kInf}) {
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

// Points whose exponents are uniform, both signs, and points near 0 and 1.
std::vector<double> Points(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> values = Specials();
  std::uniform_real_distribution<double> mantissa(1, 2);
  std::uniform_int_distribution<int> wide(-1022, 1023), narrow(-12, 8);
  for (int i = 0; i < count; ++i) {
    const int exponent = i % 4 == 0 ? wide(random) : narrow(random);
    double v = std::ldexp(mantissa(random), exponent);
    if (i % 5 == 1) v = 1 + std::ldexp(mantissa(random), narrow(random) - 12);
    values.push_back(random() % 2 == 0 ? v : -v);
  }
  return values;
}

// Numbers of the doubles in order; -0 and 0 are one.
int64_t Ordinal(double v) {
  int64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits < 0 ? std::numeric_limits<int64_t>::min() - bits : bits;
}

// Steps between two doubles; 0 for two NaNs, the most for one.
uint64_t Ulps(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return ~uint64_t{0};
  if (a == 0 && b == 0) return std::signbit(a) == std::signbit(b) ? 0 : 1000;
  const uint64_t x = Ordinal(a), y = Ordinal(b);
  return Ordinal(a) > Ordinal(b) ? x - y : y - x;
}

Tensor Vector(DType dtype, const std::vector<double>& values) {
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(values.size())},
                             values);
}

const Primitive kUnary[] = {
    Primitive::kAbs,   Primitive::kNeg,     Primitive::kSign,
    Primitive::kCeil,  Primitive::kFloor,   Primitive::kRoundNearestEven,
    Primitive::kExp,   Primitive::kExpm1,   Primitive::kLog,
    Primitive::kLog1p, Primitive::kSqrt,    Primitive::kRsqrt,
    Primitive::kCbrt,  Primitive::kSin,     Primitive::kCos,
    Primitive::kTan,   Primitive::kAsin,    Primitive::kAcos,
    Primitive::kAtan,  Primitive::kSinh,    Primitive::kCosh,
    Primitive::kTanh,  Primitive::kAsinh,   Primitive::kAcosh,
    Primitive::kAtanh, Primitive::kSigmoid, Primitive::kErf,
    Primitive::kErfc,  Primitive::kErfinv,  Primitive::kLgamma,
    Primitive::kNograd};

const Primitive kBinary[] = {
    Primitive::kAdd, Primitive::kSub,     Primitive::kMul,   Primitive::kDiv,
    Primitive::kRem, Primitive::kPow,     Primitive::kAtan2, Primitive::kMax,
    Primitive::kMin, Primitive::kCopysign};

void ExpectWithin(uint64_t ulps, Primitive primitive,
                  const std::vector<Tensor>& operands) {
  std::vector<RealTensor> reals;
  for (const Tensor& operand : operands) {
    reals.push_back(RealTensor::FromTensor(operand, kDefaultRealBits));
  }
  const auto got = EvalReference(primitive, {}, operands);
  ASSERT_TRUE(got.ok()) << got.status();
  const auto want = EvalReal(primitive, {}, reals, kDefaultRealBits);
  ASSERT_TRUE(want.ok()) << want.status();
  const Tensor rounded = (*want)[0].RoundTo(operands[0].dtype());
  int failures = 0;
  for (int64_t i = 0; i < rounded.size() && failures < 5; ++i) {
    const double g = (*got)[0].GetDouble(i), w = rounded.GetDouble(i);
    if (Ulps(g, w) <= ulps) continue;
    ++failures;
    std::string at;
    for (const Tensor& operand : operands) {
      char text[64];
      std::snprintf(text, sizeof text, " %.17g", operand.GetDouble(i));
      at += text;
    }
    char text[128];
    std::snprintf(text, sizeof text, " got %.17g, want %.17g", g, w);
    ADD_FAILURE() << PrimitiveName(primitive) << at << text;
  }
}

TEST(EvalReal, AgreesWithF64OnUnaryPrimitives) {
  for (const Primitive primitive : kUnary) {
    ExpectWithin(1, primitive, {Vector(DType::kF64, Points(1500, 7))});
  }
}

TEST(EvalReal, AgreesWithF64OnBinaryPrimitives) {
  std::vector<double> a = Points(1500, 11), b = Points(1500, 13);
  for (const double x : Specials()) {
    for (const double y : Specials()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const Primitive primitive : kBinary) {
    ExpectWithin(1, primitive,
                 {Vector(DType::kF64, a), Vector(DType::kF64, b)});
  }
}

TEST(EvalReal, AgreesWithF64OnFma) {
  ExpectWithin(0, Primitive::kFma,
               {Vector(DType::kF64, Points(2000, 1)),
                Vector(DType::kF64, Points(2000, 2)),
                Vector(DType::kF64, Points(2000, 3))});
}

// Rounding once, where a product, a sum and a conversion round three times.
TEST(EvalReal, AgreesWithNarrowFmaExactly) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    ExpectWithin(
        0, Primitive::kFma,
        {Vector(dtype, Points(2000, 4)), Vector(dtype, Points(2000, 5)),
         Vector(dtype, Points(2000, 6))});
  }
}

TEST(EvalReal, AgreesWithF64OnPolygamma) {
  std::vector<double> orders, points;
  for (const double m : {0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 20.0, 1.5, -1.0}) {
    for (const double x : Points(60, 17)) {
      orders.push_back(m);
      points.push_back(x);
    }
  }
  ExpectWithin(1, Primitive::kPolygamma,
               {Vector(DType::kF64, orders), Vector(DType::kF64, points)});
}

TEST(EvalReal, AgreesExactlyOnArithmeticOfEveryFloat) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Primitive primitive :
         {Primitive::kAdd, Primitive::kSub, Primitive::kMul, Primitive::kDiv,
          Primitive::kRem, Primitive::kPow, Primitive::kAtan2}) {
      ExpectWithin(
          0, primitive,
          {Vector(dtype, Points(1000, 21)), Vector(dtype, Points(1000, 22))});
    }
  }
}

// Every value of the 16-bit formats, rounded as MPFR rounds it.
TEST(EvalReal, AgreesExactlyOn16BitFloats) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Tensor all(dtype, {65536});
    for (int i = 0; i < 65536; ++i) {
      const uint16_t bits = static_cast<uint16_t>(i);
      std::memcpy(all.mutable_data() + 2 * i, &bits, 2);
    }
    for (const Primitive primitive :
         {Primitive::kSqrt, Primitive::kExp, Primitive::kTanh,
          Primitive::kSigmoid, Primitive::kRsqrt}) {
      ExpectWithin(0, primitive, {all});
    }
  }
}

// Values of the literature (Abramowitz and Stegun, DLMF 5.15).
TEST(RealFunctions, PolygammaHasItsKnownValues) {
  const struct {
    double m, x;
    const char* want;
  } kCases[] = {
      {0, 1, "-0.57721566490153286061"},   // -gamma
      {1, 1, "1.6449340668482264365"},     // pi^2 / 6
      {1, 0.5, "4.9348022005446793094"},   // pi^2 / 2
      {2, 1, "-2.4041138063191885708"},    // -2 zeta(3)
      {3, 1, "6.4939394022668291491"},     // pi^4 / 15
      {1, -0.5, "8.9348022005446793094"},  // pi^2 / 2 + 4
      {1, 0, "inf"},
      {1, -2, "inf"},
      {2, 0, "-inf"},
      {2, -0.0, "inf"},
      {2, -3, "nan"},
      {0, -1, "nan"},
      {2, kInf, "-0"},
      {3, kInf, "0"},
      {1, -kInf, "nan"},
      {1.5, 1, "nan"},
  };
  for (const auto& c : kCases) {
    const auto got = EvalReal(
        Primitive::kPolygamma, {},
        {RealTensor::FromTensor(Tensor::Scalar(DType::kF64, c.m), 200),
         RealTensor::FromTensor(Tensor::Scalar(DType::kF64, c.x), 200)},
        200);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].reals[0].ToString(20), c.want)
        << "polygamma(" << c.m << ", " << c.x << ")";
  }
}

TEST(RealFunctions, PolygammaRefusesHugeOrders) {
  const auto got = EvalReference(
      Primitive::kPolygamma, {},
      {Tensor::Scalar(DType::kF64, 1e9), Tensor::Scalar(DType::kF64, 1)});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(RealFunctions, ErfinvInvertsErf) {
  const std::string near_one = "0." + std::string(80, '9');
  for (const int bits : {300, 2500}) {
    for (const std::string& text :
         {std::string("1e-3000"), std::string("1e-30"), std::string("9.5e-7"),
          std::string("9.6e-7"), std::string("0.001"), std::string("0.5"),
          std::string("0.50001"), std::string("-0.7"), std::string("0.999999"),
          near_one}) {
      const Real x(*Exact::Parse(text), bits);
      RealTensor t;
      t.reals = {x};
      const auto y = EvalReal(Primitive::kErfinv, {}, {t}, bits);
      ASSERT_TRUE(y.ok()) << y.status();
      const auto back = EvalReal(Primitive::kErf, {}, *y, bits);
      ASSERT_TRUE(back.ok()) << back.status();
      const int digits = bits / 4;
      EXPECT_EQ((*back)[0].reals[0].ToString(digits), x.ToString(digits));
    }
  }
}

// erfc tells the digits that erf loses beside 1.
TEST(RealFunctions, ErfinvKeepsTheTail) {
  constexpr int kBits = 3000;
  for (const int exponent : {-2, -53, -400, -1074, -2900}) {
    Real x(1, kBits);
    Real tail(1, kBits);
    mpfr_mul_2si(tail.get(), tail.get(), exponent, MPFR_RNDN);
    mpfr_sub(x.get(), x.get(), tail.get(), MPFR_RNDN);  // exact
    RealTensor t;
    t.reals = {x};
    const auto y = EvalReal(Primitive::kErfinv, {}, {t}, kBits);
    ASSERT_TRUE(y.ok()) << y.status();
    const auto back = EvalReal(Primitive::kErfc, {}, *y, kBits);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ((*back)[0].reals[0].ToString(800), tail.ToString(800))
        << exponent;
  }
}

TEST(Real, RoundsOnceToNarrowFloats) {
  // Just above the middle of two f16 by less than a double can tell.
  Real x(1.0 + std::ldexp(1.0, -11), 300);
  Real tiny(std::ldexp(1.0, -200), 300);
  mpfr_add(x.get(), x.get(), tiny.get(), MPFR_RNDN);
  EXPECT_EQ(x.RoundTo(DType::kF16), 1 + std::ldexp(1.0, -10));
  EXPECT_EQ(x.RoundTo(DType::kF64), 1 + std::ldexp(1.0, -11));
  EXPECT_EQ(Real(1e39, 300).RoundTo(DType::kF32), kInf);
  EXPECT_EQ(Real(65520, 300).RoundTo(DType::kF16), kInf);
  EXPECT_EQ(Real(65519.99, 300).RoundTo(DType::kF16), 65504);
  EXPECT_TRUE(std::signbit(Real(-1e-300, 300).RoundTo(DType::kF32)));
}

TEST(Real, CopiesAndMoves) {
  const Real a(2.5, 100);
  Real b = a;
  Real c(7, 53);
  c = b;
  EXPECT_EQ(c.bits(), 100);
  const Real d = std::move(b);
  EXPECT_EQ(d.ToDouble(), 2.5);
  EXPECT_EQ(c.ToString(5), "2.5");
}

TEST(Real, CopiesAreWrittenToAlone) {
  Real a(2.5, 300);
  Real b = a;
  Real moved = std::move(b);
  mpfr_set_d(moved.get(), 3, MPFR_RNDN);
  moved.set_exactness(Exactness::kRounded);
  EXPECT_EQ(a.ToDouble(), 2.5);
  EXPECT_EQ(a.exactness(), Exactness::kExact);
  EXPECT_EQ(moved.ToDouble(), 3);
  EXPECT_EQ(moved.exactness(), Exactness::kRounded);
  // The number is its own, and takes part in what it is the result of.
  std::vector<Real> all(3, a);
  all[1] = all[2];
  mpfr_add(all[1].get(), all[1].get(), a.get(), MPFR_RNDN);
  EXPECT_EQ(all[0].ToDouble(), 2.5);
  EXPECT_EQ(all[1].ToDouble(), 5);
  EXPECT_EQ(all[2].ToDouble(), 2.5);
  a = std::vector<Real>(all)[1];
  EXPECT_EQ(a.ToDouble(), 5);
}

TEST(EvalReal, KeepsConstantsAndSumsUnrounded) {
  const auto third = EvalReal(
      Primitive::kConstant,
      {{"value", Exact(1) / Exact(3)}, {"dtype", DType::kF16}}, {}, 300);
  ASSERT_TRUE(third.ok()) << third.status();
  RealTensor pair;
  pair.dtype = DType::kF16;
  pair.shape = {2};
  pair.reals = {(*third)[0].reals[0], Real(std::ldexp(1.0, -100), 300)};
  const auto sum =
      EvalReal(Primitive::kReduceSum,
               {{"axes", StaticValue::Ints(std::vector<int>{0})}}, {pair}, 300);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ((*sum)[0].reals[0].ToString(40),
            "0.3333333333333333333333333333341221942386");
}

// Each structured kernel gives the same over integers that reals and floats
// hold exactly: one kernel serves both.
TEST(EvalReal, AgreesWithF64OnStructuredPrimitives) {
  const auto ints = [](const std::vector<int>& v) {
    return StaticValue::Ints(v);
  };
  std::mt19937 random(5);
  const auto f64 = [&](std::vector<int64_t> shape) {
    Tensor x(DType::kF64, std::move(shape));
    for (int64_t i = 0; i < x.size(); ++i) {
      x.SetDouble(i, static_cast<int>(random() % 9) - 4);
    }
    return x;
  };
  const Tensor fill = Tensor::Scalar(DType::kF64, kNaN);
  const Tensor index = Tensor::FromInts(DType::kI64, {4, 1}, {2, 0, 2, 9});
  const Attributes axis = {{"axis", 0}, {"reverse", true}};
  const Attributes axes = {{"axes", ints({0, 2})}};
  const Attributes rows = {{"axes", ints({0})}, {"batch", 0}, {"mode", "fill"}};
  Attributes windows = {{"sizes", ints({2})},
                        {"strides", ints({1})},
                        {"dilations", ints({2})},
                        {"low", ints({1})},
                        {"counts", ints({4})}};
  Attributes windows_add = windows;
  windows_add.Set("shape", ints({5}));
  struct Case {
    Primitive primitive;
    Attributes attributes;
    std::vector<Tensor> operands;
  };
  std::vector<Case> cases = {
      {Primitive::kTranspose, {{"axes", ints({1, 0})}}, {f64({2, 3})}},
      {Primitive::kReshape, {{"shape", ints({6})}}, {f64({2, 3})}},
      {Primitive::kPad,
       {{"low", ints({2})}, {"high", ints({-1})}, {"interior", ints({1})}},
       {f64({3}), fill}},
      {Primitive::kConcatenate, {{"axis", 0}}, {f64({2}), f64({0}), f64({3})}},
      {Primitive::kWindows, windows, {f64({2, 5}), fill}},
      {Primitive::kWindowsAdd, windows_add, {f64({2, 4, 2})}},
      {Primitive::kDotGeneral,
       {{"batch_a", ints({0})},
        {"batch_b", ints({0})},
        {"contract_a", ints({2})},
        {"contract_b", ints({1})}},
       {f64({2, 3, 4}), f64({2, 4, 5})}},
      {Primitive::kConv,
       {{"stride", ints({2})},
        {"low", ints({1})},
        {"high", ints({2})},
        {"lhs_dilation", ints({2})},
        {"rhs_dilation", ints({2})},
        {"groups", 2},
        {"batch_groups", 1}},
       {f64({2, 4, 5}), f64({6, 2, 3})}},
      {Primitive::kLinearScan, axis, {f64({4, 2}), f64({4, 2}), f64({2})}},
      {Primitive::kCumulativeMax, axis, {f64({4, 2})}},
      {Primitive::kCumulativeMin, axis, {f64({4, 2})}},
      {Primitive::kGather, rows, {f64({3, 2}), index, fill}},
      {Primitive::kSort, {{"axis", 0}, {"descending", true}}, {f64({9})}},
      {Primitive::kNonzero, {{"size", Dim::Variable("k")}}, {f64({3, 5})}},
      {Primitive::kNonzero, {{"size", Dim::Variable("k")}}, {index}},
      {Primitive::kReverse, {{"axes", ints({0})}}, {index}},
      {Primitive::kIota, {{"size", 4}}, {}},
      {Primitive::kConvert, {{"dtype", DType::kF64}}, {index}},
  };
  for (const Primitive primitive :
       {Primitive::kReduceSum, Primitive::kReduceProd, Primitive::kReduceMax,
        Primitive::kReduceMin, Primitive::kArgmax, Primitive::kArgmin}) {
    cases.push_back({primitive, axes, {f64({3, 2, 4})}});
    cases.push_back({primitive, axes, {f64({3, 2, 0})}});
  }
  for (const char* mode : {"add", "mul", "max", "min", "set"}) {
    Attributes attributes = rows;
    attributes.Set("mode", mode);
    cases.push_back(
        {Primitive::kScatter, attributes, {f64({3, 2}), index, f64({4, 2})}});
  }
  for (const Case& c : cases) {
    std::vector<RealTensor> reals;
    for (const Tensor& operand : c.operands) {
      reals.push_back(RealTensor::FromTensor(operand, 200));
    }
    const auto want = EvalReference(c.primitive, c.attributes, c.operands);
    ASSERT_TRUE(want.ok()) << want.status();
    const auto got = EvalReal(c.primitive, c.attributes, reals, 200);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (size_t i = 0; i < got->size(); ++i) {
      EXPECT_TRUE(SameValue((*got)[i].RoundTo((*want)[i].dtype()), (*want)[i]))
          << PrimitiveName(c.primitive);
    }
  }
}

TEST(EvalReal, ConvertsToIntegersByTruncating) {
  const Tensor x =
      Vector(DType::kF64, {-2.9, 2.9, 1e30, -1e30, kNaN, kInf, -0.5});
  const auto got = EvalReal(Primitive::kConvert, {{"dtype", DType::kI32}},
                            {RealTensor::FromTensor(x, 200)}, 200);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].discrete.ToString(),
            Tensor::FromInts(DType::kI32, {7},
                             {-2, 2, 2147483647, -2147483648, 0, 2147483647, 0})
                .ToString());
}

TEST(EvalReal, KnowsZerosThatRoundingMade) {
  // 1 - (1 + exp(x)), and log(1 + exp(x)), after `bits`.
  const auto evaluate = [](double at, int bits) {
    const RealTensor x =
        RealTensor::FromTensor(Tensor::Scalar(DType::kF64, at), bits);
    const RealTensor one =
        RealTensor::FromTensor(Tensor::Scalar(DType::kF64, 1), bits);
    const auto apply = [&](Primitive primitive,
                           const std::vector<RealTensor>& operands) {
      auto result = EvalReal(primitive, {}, operands, bits);
      EXPECT_TRUE(result.ok()) << result.status();
      return std::move((*result)[0]);
    };
    const RealTensor sum =
        apply(Primitive::kAdd, {one, apply(Primitive::kExp, {x})});
    return std::vector<Exactness>{
        sum.reals[0].exactness(),
        apply(Primitive::kSub, {one, sum}).reals[0].exactness(),
        apply(Primitive::kLog, {sum}).reals[0].exactness(),
        apply(Primitive::kFloor, {apply(Primitive::kLog, {sum})})
            .reals[0]
            .exactness()};
  };
  using E = Exactness;
  EXPECT_EQ(evaluate(-2000, 256),
            (std::vector<E>{E::kRounded, E::kLost, E::kLost, E::kLost}));
  EXPECT_EQ(evaluate(-2000, 4000), (std::vector<E>{E::kRounded, E::kRounded,
                                                   E::kRounded, E::kRounded}));
  EXPECT_EQ(evaluate(0, 256),
            (std::vector<E>{E::kExact, E::kExact, E::kRounded, E::kRounded}));
}

TEST(EvalReal, RefusesBitPatterns) {
  const RealTensor x =
      RealTensor::FromTensor(Tensor::Scalar(DType::kF32, 1), 200);
  EXPECT_EQ(EvalReal(Primitive::kNextafter, {}, {x, x}, 200).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      EvalReal(Primitive::kBitcastConvert, {{"dtype", DType::kI32}}, {x}, 200)
          .status()
          .code(),
      absl::StatusCode::kUnimplemented);
}

TEST(EvalReal, RefusesWhatNoPrecisionFits) {
  const Tensor one = Tensor::Scalar(DType::kF32, 1);
  const RealTensor x = RealTensor::FromTensor(one, -5);
  EXPECT_TRUE(SameValue(x.RoundTo(DType::kF32), one));
  for (const int bits : {-1, 1, kMaxRealBits + 1}) {
    EXPECT_EQ(EvalReal(Primitive::kNeg, {}, {x}, bits).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(std::isnan(x.reals[0].RoundTo(DType::kI32)));
  EXPECT_TRUE(std::isnan(Exact(1).RoundTo(DType::kI32)));
  RealTensor wrong = x;
  wrong.shape = {3};
  EXPECT_FALSE(wrong.RoundTo(DType::kF32).valid());
  const RealTensor ints =
      RealTensor::FromTensor(Tensor::FromInts(DType::kI32, {1}, {3}), 200);
  EXPECT_FALSE(ints.RoundTo(DType::kF32).valid());
}

}  // namespace
}  // namespace cleave
