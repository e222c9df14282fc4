#include "ops/exact.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

Exact P(absl::string_view text) {
  auto value = Exact::Parse(text);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : Exact::NaN();
}

Exact Apply(absl::string_view function, const Exact& x) {
  auto value = Exact::Apply(function, x);
  EXPECT_TRUE(value.has_value()) << function;
  return value.value_or(Exact::NaN());
}

TEST(Exact, TextIsCanonicalAndReadsBack) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"12", "12"},
      {"-0", "0"},
      {"0.10", "0.1"},
      {"1e-5", "1e-05"},
      {"1.25e-12", "1.25e-12"},
      {"1e3", "1000"},
      {"-2.50", "-2.5"},
      {"2/4", "0.5"},
      {"-1/3", "-1/3"},
      {"0.0001", "0.0001"},
      {"inf", "inf"},
      {"-inf", "-inf"},
      {"#0x1.8p+0", "1.5"},
      {"12.5e1", "125"},
      {"0e99", "0"},
      {"-0.0", "-0.0"},
      {"-0.00", "-0.0"},
      {"-0e99", "-0.0"},
      {"-0/3", "0"},
      {"#-0x0p+0", "-0.0"},
      {"#0x0p+0", "0"}};
  for (const auto& [text, canonical] : kTexts) {
    EXPECT_EQ(P(text).ToString(), canonical) << text;
    EXPECT_TRUE(IsSame(P(canonical), P(text)));
  }
  EXPECT_EQ(P("nan").ToString(), "nan");
  for (const Exact& x :
       {Exact::Pi(), Apply("exp", 1), P("1e-700"), Exact::FromDouble(0.1),
        Exact::FromDouble(5e-324), Apply("sqrt", 2) * Exact(-1)}) {
    EXPECT_EQ(P(x.ToString()), x);
    EXPECT_EQ(P(x.ToString()).ToString(), x.ToString());
    EXPECT_EQ(P(x.ToString()).IsRational(), x.IsRational());
  }
}

TEST(Exact, MalformedTextIsRejected) {
  for (const char* text : {"",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "e5",
                           "0x10",
                           "1/0",
                           "1/-2",
                           "1/",
                           "--1",
                           "+1",
                           "1 ",
                           "#",
                           "#0x",
                           "#12",
                           "#inf",
                           "#0x1.8q",
                           "1e99999999999999",
                           "1e-99999999999999",
                           "infinity",
                           "1.5/2"}) {
    EXPECT_EQ(Exact::Parse(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_FALSE(Exact::Parse(std::string(20000, '1')).ok());
}

TEST(Exact, RationalArithmeticIsExact) {
  EXPECT_EQ(Exact(1) / Exact(3) * Exact(3), Exact(1));
  EXPECT_EQ(P("0.1") + P("0.2"), P("0.3"));
  EXPECT_NE(Exact::FromDouble(0.1), P("0.1"));
  EXPECT_EQ(Exact::FromDouble(0.1).ToDouble(), 0.1);
  EXPECT_TRUE((Exact(1) / Exact(3)).IsRational());
  EXPECT_EQ(Exact::FloorDiv(-7, 2), Exact(-4));
  EXPECT_EQ(Exact::FloorMod(-7, 2), Exact(1));
  EXPECT_EQ(Exact::FloorMod(7, -2), Exact(-1));
  EXPECT_EQ(Exact::FloorMod(P("5.5"), 2), P("1.5"));
  EXPECT_TRUE(Exact::FloorDiv(1, 0).IsNaN());
}

TEST(Exact, PowersAndRoots) {
  EXPECT_EQ(Exact::Pow(2, 10), Exact(1024));
  EXPECT_EQ(Exact::Pow(2, -2), P("0.25"));
  EXPECT_EQ(Exact::Pow(P("9/4"), P("3/2")), P("27/8"));
  EXPECT_EQ(Exact::Pow(P("1/27"), P("1/3")), P("1/3"));
  EXPECT_EQ(Exact::Pow(0, 0), Exact(1));
  EXPECT_EQ(Exact::Pow(0, -1), Exact::Infinity());
  EXPECT_TRUE(Exact::Pow(-8, P("1/3")).IsNaN());
  EXPECT_EQ(Exact::Pow(-1, 1000001), Exact(-1));
  EXPECT_EQ(Apply("cbrt", -27), Exact(-3));
  EXPECT_EQ(Apply("rsqrt", 16), P("0.25"));
  EXPECT_EQ(Apply("rsqrt", 0), Exact::Infinity());
  EXPECT_TRUE(Apply("sqrt", -1).IsNaN());
  EXPECT_TRUE(Apply("sqrt", -Exact::Infinity()).IsNaN());
  EXPECT_FALSE(Exact::Pow(3, 100000).IsRational());
  EXPECT_EQ(Exact::Pow(3, 1000000000), Exact::Infinity());
}

// A number of `bits` bits, and the log2 of its size.
double SizeAt(const Exact& x, int bits) {
  mpfr_t number;
  mpfr_init2(number, bits);
  x.ToMpfr(number);
  const double size = mpfr_zero_p(number) ? -std::numeric_limits<double>::max()
                                          : mpfr_get_exp(number);
  mpfr_clear(number);
  return size;
}

TEST(Exact, IrrationalsHaveTheBitsThatAreAskedFor) {
  const Exact zeros[] = {
      Apply("sin", Exact::Pi()), Apply("sin", Exact::Pi() * 6),
      Apply("sqrt", 2) * Apply("sqrt", 3) - Apply("sqrt", 6),
      Apply("log", 6) - Apply("log", 2) - Apply("log", 3),
      -(Apply("exp", P("0.1")) - Exact::Pow(Apply("exp", 1), P("0.1")))};
  for (const Exact& zero : zeros) {
    if (zero == Exact(0)) continue;
    EXPECT_GT(SizeAt(zero, 256), -kExactBits - 8) << zero.ToString();
    for (int bits : {640, 2560}) {
      EXPECT_LT(SizeAt(zero, bits), -bits + 8) << zero.ToString();
    }
    mpfr_t low, high;
    mpfr_inits2(256, low, high, nullptr);
    zero.Enclose(low, high);
    EXPECT_LE(mpfr_sgn(low), 0);
    EXPECT_GE(mpfr_sgn(high), 0);
    mpfr_clears(low, high, nullptr);
  }
  // No zero, however many bits it has.
  EXPECT_EQ(SizeAt(Apply("sin", Exact::Pi()) + P("1e-80"), 2560),
            SizeAt(P("1e-80"), 2560));
}

TEST(Exact, BoundsEncloseTheNumber) {
  mpfr_t low, high;
  mpfr_inits2(100, low, high, nullptr);
  for (const Exact& x :
       {Exact::Pi(), -Apply("exp", 1), Exact(1) / Exact(3), P("1e-700")}) {
    x.Enclose(low, high);
    EXPECT_LT(Exact::FromMpfr(low), x);
    EXPECT_LT(x, Exact::FromMpfr(high));
  }
  for (const Exact& x : {Exact(0), P("0.5"), P("-0.0"), Exact::Infinity()}) {
    x.Enclose(low, high);
    EXPECT_TRUE(IsSame(Exact::FromMpfr(low), x));
    EXPECT_TRUE(IsSame(Exact::FromMpfr(high), x));
  }
  mpfr_clears(low, high, nullptr);
}

// Squares share their operand: what is computed again is bounded.
TEST(Exact, ManyOperationsAreNotComputedAgain) {
  Exact x = Exact::Pi();
  for (int i = 0; i < 100; ++i) x = x * x / Exact::Pi();
  EXPECT_LT(SizeAt(x / x - Exact(1), 2560), -300);
}

TEST(Exact, NonFiniteValuesFollowIeee) {
  const Exact inf = Exact::Infinity();
  EXPECT_EQ(Exact(1) / Exact(0), inf);
  EXPECT_EQ(Exact(-1) / Exact(0), -inf);
  EXPECT_TRUE((Exact(0) / Exact(0)).IsNaN());
  EXPECT_TRUE((inf - inf).IsNaN());
  EXPECT_TRUE((inf * Exact(0)).IsNaN());
  EXPECT_EQ(Exact(5) / inf, Exact(0));
  EXPECT_FALSE(Exact::NaN() == Exact::NaN());
  EXPECT_TRUE(Exact::NaN() != Exact::NaN());
  EXPECT_FALSE(Exact::NaN() < Exact(1) || Exact(1) <= Exact::NaN());
  EXPECT_LT(-inf, Exact(std::numeric_limits<int64_t>::min()));
}

TEST(Exact, NegativeZeroIsAValueThatEqualsZero) {
  const Exact zero = Exact::FromDouble(-0.0);
  EXPECT_TRUE(zero.IsNegativeZero());
  EXPECT_FALSE(Exact(0).IsNegativeZero());
  EXPECT_FALSE(Exact::FromDouble(0.0).IsNegativeZero());
  EXPECT_FALSE(Exact::NaN().IsNegativeZero());
  EXPECT_FALSE(P("-1e-400").IsNegativeZero());
  EXPECT_EQ(zero, Exact(0));
  EXPECT_FALSE(zero < Exact(0) || Exact(0) < zero);
  EXPECT_TRUE(zero <= Exact(0) && Exact(0) <= zero);
  EXPECT_TRUE(zero.IsRational() && zero.IsInteger() && zero.IsFinite());
  EXPECT_EQ(zero.ToInt64(), 0);
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    EXPECT_TRUE(std::signbit(zero.RoundTo(dtype))) << DTypeName(dtype);
    EXPECT_FALSE(std::signbit(Exact(0).RoundTo(dtype))) << DTypeName(dtype);
  }
  EXPECT_TRUE(std::signbit(zero.ToDouble()));
  mpfr_t number;
  mpfr_init2(number, 20);
  zero.ToMpfr(number);
  EXPECT_TRUE(mpfr_zero_p(number) && mpfr_signbit(number));
  EXPECT_TRUE(Exact::FromMpfr(number).IsNegativeZero());
  Exact(0).ToMpfr(number);
  EXPECT_FALSE(mpfr_signbit(number));
  EXPECT_FALSE(Exact::FromMpfr(number).IsNegativeZero());
  mpfr_clear(number);
}

TEST(Exact, IdentityTellsZerosApartAndFindsNaN) {
  const Exact zero = Exact::FromDouble(-0.0);
  EXPECT_TRUE(IsSame(zero, P("-0.0")));
  EXPECT_FALSE(IsSame(zero, 0));
  EXPECT_FALSE(IsSame(0, zero));
  EXPECT_TRUE(IsSame(0, P("0.0")));
  EXPECT_TRUE(IsSame(Exact::NaN(), Exact::NaN()));
  EXPECT_FALSE(IsSame(Exact::NaN(), 0));
  EXPECT_TRUE(IsSame(P("0.5"), Exact(1) / Exact(2)));
  EXPECT_FALSE(IsSame(1, 2));
}

// The zero of the rationals has no sign, whatever is computed.
TEST(Exact, ArithmeticMakesNoNegativeZero) {
  const Exact inf = Exact::Infinity();
  for (const Exact& x :
       {-Exact(0), Exact(0) * Exact(-5), Exact(0) / Exact(-5), Exact(5) / -inf,
        Exact(-5) / inf, Exact(5) - Exact(5), Exact::FloorDiv(0, -5),
        Exact::FloorMod(0, -5), Exact::Pow(0, 3), Apply("ceil", P("-0.5")),
        Apply("neg", 0), Apply("sin", 0), Apply("log", 1),
        -Apply("exp", -Apply("exp", 100)), Apply("exp", -inf)}) {
    EXPECT_TRUE(IsSame(x, 0)) << x.ToString();
  }
}

TEST(Exact, NegativeZeroPassesThroughArithmeticAsInIeee) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Exact zero = Exact::FromDouble(-0.0);
  const auto is = [](const Exact& exact, double want) {
    const double got = exact.ToDouble();
    const bool equal = got == want && std::signbit(got) == std::signbit(want);
    EXPECT_TRUE(equal || (exact.IsNaN() && std::isnan(want)))
        << exact.ToString() << " for " << want;
  };
  for (const double y : {0.0, -0.0, 5.0, -5.0, 0.1, infinity, -infinity,
                         std::numeric_limits<double>::quiet_NaN()}) {
    SCOPED_TRACE(y);
    const Exact e = Exact::FromDouble(y);
    is(zero + e, -0.0 + y);
    is(e + zero, y + -0.0);
    is(zero - e, -0.0 - y);
    is(e - zero, y - -0.0);
    is(zero * e, -0.0 * y);
    is(e * zero, y * -0.0);
    is(zero / e, -0.0 / y);
    is(e / zero, y / -0.0);
    is(Exact::Pow(zero, e), std::pow(-0.0, y));
    is(Exact::Pow(e, zero), std::pow(y, -0.0));
  }
  is(zero * Apply("sqrt", 2), -0.0);
  is(zero / -Exact::Pi(), 0.0);
  is(-Exact::Pi() / zero, infinity);
  is(-zero, 0.0);
  is(Exact::Pow(zero, 3), -0.0);
  is(Exact::Pow(zero, 2), 0.0);
  is(Exact::Pow(zero, -3), -infinity);
  is(Exact::Pow(zero, -2), infinity);
  is(Exact::Pow(zero, P("0.5")), 0.0);
  is(Exact::FloorDiv(zero, 5), -0.0);
  is(Exact::FloorDiv(zero, -5), 0.0);
  is(Exact::FloorDiv(zero, Exact::Infinity()), -0.0);
  EXPECT_TRUE(Exact::FloorDiv(5, zero).IsNaN());
  is(Exact::FloorMod(zero, 5), 0.0);
  for (const char* odd : {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh",
                          "atanh", "erf", "expm1", "log1p", "sqrt", "cbrt",
                          "sign", "floor", "ceil", "round_nearest_even"}) {
    SCOPED_TRACE(odd);
    is(Apply(odd, zero), -0.0);
  }
  is(Apply("abs", zero), 0.0);
  is(Apply("neg", zero), 0.0);
  is(Apply("cos", zero), 1.0);
  is(Apply("exp", zero), 1.0);
  is(Apply("sigmoid", zero), 0.5);
  is(Apply("rsqrt", zero), -infinity);
  is(Apply("log", zero), -infinity);
  EXPECT_FALSE(Exact::Apply("softplus", zero).has_value());
}

TEST(Exact, Integers) {
  EXPECT_EQ(Exact(7).ToInt64(), 7);
  EXPECT_EQ(P("7.5").ToInt64(), std::nullopt);
  EXPECT_EQ(P("9223372036854775808").ToInt64(), std::nullopt);
  EXPECT_EQ(P("-9223372036854775808").ToInt64(),
            std::numeric_limits<int64_t>::min());
  EXPECT_FALSE(Exact::Infinity().IsInteger());
}

TEST(Exact, RoundToRoundsOnce) {
  // Just above the tie between 1 and 1 + 2^-10: by way of f32 it is a tie.
  const Exact tie = Exact(1) + Exact::Pow(2, -11);
  EXPECT_EQ(tie.RoundTo(DType::kF16), 1.0);
  EXPECT_EQ((tie + Exact::Pow(2, -200)).RoundTo(DType::kF16),
            1 + std::ldexp(1.0, -10));
  EXPECT_EQ(
      (Exact(1) + Exact::Pow(2, -8) + Exact::Pow(2, -60)).RoundTo(DType::kBF16),
      1 + std::ldexp(1.0, -7));
  EXPECT_EQ(P("65519.99").RoundTo(DType::kF16), 65504);
  EXPECT_EQ(Exact(65520).RoundTo(DType::kF16), HUGE_VAL);
  EXPECT_EQ(Exact(-65520).RoundTo(DType::kF16), -HUGE_VAL);
  // Subnormals of f16 are multiples of 2^-24; half of the least ties to 0.
  EXPECT_EQ(Exact::Pow(2, -25).RoundTo(DType::kF16), 0);
  EXPECT_EQ((Exact(3) * Exact::Pow(2, -25)).RoundTo(DType::kF16),
            std::ldexp(1.0, -23));
  EXPECT_EQ(Exact::Pow(2, -149).RoundTo(DType::kF32), std::ldexp(1.0, -149));
  EXPECT_EQ(Exact::Pow(2, -150).RoundTo(DType::kF32), 0);
  EXPECT_TRUE(std::signbit(P("-1e-400").ToDouble()));
  EXPECT_EQ(P("1e400").ToDouble(), HUGE_VAL);
}

TEST(Exact, RoundToAgreesWithHardware) {
  const uint64_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = rng();
    double value;
    static_assert(sizeof(bits) == sizeof(value), "f64");
    std::memcpy(&value, &bits, sizeof(value));
    // Half of the values near the range of f32.
    if (i % 2 == 0)
      value = std::ldexp(1 + (bits >> 11) * 0x1p-53,
                         static_cast<int>(bits % 310) - 155);
    if (std::isnan(value)) continue;
    const Exact exact = Exact::FromDouble(value);
    ASSERT_EQ(exact.ToDouble(), value);
    ASSERT_EQ(exact.RoundTo(DType::kF32), static_cast<float>(value)) << value;
  }
}

TEST(Exact, Functions) {
  const std::pair<const char*, double (*)(double)> kFunctions[] = {
      {"exp", std::exp},
      {"expm1", std::expm1},
      {"log", std::log},
      {"log1p", std::log1p},
      {"sin", std::sin},
      {"cos", std::cos},
      {"tan", std::tan},
      {"asin", std::asin},
      {"acos", std::acos},
      {"atan", std::atan},
      {"sinh", std::sinh},
      {"cosh", std::cosh},
      {"tanh", std::tanh},
      {"asinh", std::asinh},
      {"atanh", std::atanh},
      {"erf", std::erf},
      {"erfc", std::erfc},
      {"lgamma", std::lgamma},
      {"cbrt", std::cbrt},
      {"sqrt", std::sqrt},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"round_nearest_even", std::nearbyint}};
  for (const auto& [name, function] : kFunctions) {
    for (double x : {0.3, 0.75, 0.015625}) {
      EXPECT_NEAR(Apply(name, Exact::FromDouble(x)).ToDouble(), function(x),
                  1e-14 * (1 + std::abs(function(x))))
          << name << " " << x;
    }
  }
  EXPECT_NEAR(Apply("acosh", 3).ToDouble(), std::acosh(3.0), 1e-15);
  EXPECT_EQ(Apply("sigmoid", 0), P("0.5"));
  EXPECT_EQ(Apply("sigmoid", -Exact::Infinity()), Exact(0));
  EXPECT_EQ(Apply("round_nearest_even", P("2.5")), Exact(2));
  EXPECT_EQ(Apply("round_nearest_even", P("-3.5")), Exact(-4));
  EXPECT_EQ(Apply("floor", P("-0.5")), Exact(-1));
  EXPECT_EQ(Apply("ceil", P("-0.5")), Exact(0));
  EXPECT_EQ(Apply("sign", P("-0.5")), Exact(-1));
  EXPECT_TRUE(Apply("sign", Exact::NaN()).IsNaN());
  EXPECT_EQ(Apply("abs", -2), Exact(2));
  EXPECT_EQ(Apply("neg", 2), Exact(-2));
  EXPECT_EQ(Apply("log", 0), -Exact::Infinity());
  EXPECT_TRUE(Apply("log", -1).IsNaN());
  EXPECT_EQ(Apply("exp", 0), Exact(1));
  EXPECT_TRUE(Apply("exp", 0).IsRational());
  EXPECT_FALSE(Exact::Apply("softplus", 1).has_value());
}

// A hostile chain stays cheap, and near 1 nothing is lost.
TEST(Exact, ExtremesAreBoundedAndAccurate) {
  EXPECT_EQ(Apply("exp", Apply("exp", 100)), Exact::Infinity());
  EXPECT_TRUE(Apply("sin", Apply("exp", Apply("exp", 100))).IsNaN());
  EXPECT_EQ(Apply("exp", -Apply("exp", 100)), Exact(0));
  Exact x = P("1/3");
  for (int i = 0; i < 30; ++i) x = x * x + P("1/7");
  EXPECT_TRUE(x.IsFinite());
  const Exact tiny = Exact::Pow(3, -200);
  EXPECT_NEAR((Apply("log", Exact(1) + tiny) / tiny).ToDouble(), 1, 1e-15);
}

}  // namespace
}  // namespace cleave
