// EvalInterval encloses EvalReal at many more bits: each pointwise primitive at
// random and special points and over intervals around them, and each structured
// one; what nothing decides is undecided, and an enclosure that is moved is
// found out.

#include "ops/reference/interval.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/real.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kBits = 128;      // of intervals
constexpr int kManyBits = 512;  // of the reals that they enclose

std::vector<double> Specials() {
  std::vector<double> values = {std::nan("")};
  for (const double v : {0.0, 4.9406564584124654e-324, 1e-20, 0.25, 0.5, 1.0,
                         1.5, 2.0, 2.5, 3.0, 17.0, 170.5, 746.0, 1e5, kInf}) {
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

std::vector<double> Points(int count, std::mt19937& random) {
  std::vector<double> values = Specials();
  std::uniform_real_distribution<double> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-12, 8);
  for (int i = 0; i < count; ++i) {
    double v = std::ldexp(mantissa(random), exponent(random));
    if (i % 5 == 1) v = 1 + std::ldexp(v, -12);
    values.push_back(random() % 2 == 0 ? v : -v);
  }
  return values;
}

Real RealOf(double v) { return Real(v, kManyBits); }

RealTensor RealsOf(std::vector<Real> values) {
  RealTensor tensor;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.reals = std::move(values);
  return tensor;
}

IntervalTensor IntervalsOf(std::vector<RealInterval> values) {
  IntervalTensor tensor;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.intervals = std::move(values);
  return tensor;
}

// The bounds low and high.
RealInterval Between(double low, double high) {
  RealInterval interval(kBits);
  mpfr_set_d(interval.low(), low, MPFR_RNDD);
  mpfr_set_d(interval.high(), high, MPFR_RNDU);
  interval.CheckBounds();
  return interval;
}

RealInterval Enclosed(Primitive primitive,
                      const std::vector<RealInterval>& operands) {
  std::vector<IntervalTensor> tensors;
  for (const RealInterval& operand : operands) {
    tensors.push_back(IntervalsOf({operand}));
  }
  const auto result = EvalInterval(primitive, {}, tensors, kBits);
  EXPECT_OK(result);
  if (!result.ok()) return RealInterval::Undecided("an error", kBits);
  return (*result)[0].intervals[0];
}

Real Exactly(Primitive primitive, const std::vector<Real>& operands) {
  std::vector<RealTensor> tensors;
  for (const Real& operand : operands) tensors.push_back(RealsOf({operand}));
  const auto result = EvalReal(primitive, {}, tensors, kManyBits);
  EXPECT_OK(result);
  return result.ok() ? (*result)[0].reals[0] : Real(kManyBits);
}

std::string At(Primitive primitive, const std::vector<RealInterval>& operands) {
  std::string text(PrimitiveName(primitive));
  for (const RealInterval& operand : operands)
    text += " " + operand.ToString(20);
  return text;
}

// The pointwise primitives of floats with `count` operands. Primitives that
// give bools, and primitives over bits, are tested apart.
std::vector<Primitive> FloatPrimitives(int count) {
  std::vector<Primitive> found;
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    if (ClassOf(primitive) != PrimitiveClass::kPointwise ||
        OperandCount(primitive) != count || primitive == Primitive::kConvert) {
      continue;
    }
    const std::vector<RealTensor> ones(count, RealsOf({RealOf(1)}));
    const auto result = EvalReal(primitive, {}, ones, kManyBits);
    if (result.ok() && IsFloat((*result)[0].dtype)) found.push_back(primitive);
  }
  return found;
}

// The numbers of the interval around `x`, which it spans by `part` of it.
RealInterval Around(double x, double part) {
  return Between(x - std::abs(x) * part, x + std::abs(x) * part);
}

Real Inner(const RealInterval& x, std::mt19937& random) {
  Real width(kManyBits);
  if (x.IsPoint()) {
    mpfr_set(width.get(), x.low(), MPFR_RNDN);
    return width;
  }
  mpfr_sub(width.get(), x.high(), x.low(), MPFR_RNDN);
  std::uniform_int_distribution<int> sixteenths(0, 16);
  mpfr_mul_ui(width.get(), width.get(), sixteenths(random), MPFR_RNDN);
  mpfr_div_ui(width.get(), width.get(), 16, MPFR_RNDN);
  mpfr_add(width.get(), width.get(), x.low(), MPFR_RNDN);
  return width;
}

void ExpectEnclosesPoint(Primitive primitive, const std::vector<double>& at) {
  std::vector<RealInterval> intervals;
  std::vector<Real> reals;
  for (const double v : at) {
    intervals.emplace_back(v, kBits);
    reals.push_back(RealOf(v));
  }
  const RealInterval got = Enclosed(primitive, intervals);
  const Real want = Exactly(primitive, reals);
  EXPECT_EQ(got.undecided(), nullptr) << At(primitive, intervals);
  EXPECT_TRUE(got.Contains(want))
      << At(primitive, intervals) << ": " << want.ToString(60)
      << " is not within " << got.ToString(60);
  // A result that underflows lies between 0 and the least number.
  if (got.IsNumber() && mpfr_regular_p(want.get())) {
    EXPECT_GE(got.KnownBits(), kBits - 12)
        << At(primitive, intervals) << ": " << got.ToString(60);
  }
  if (got.IsPoint() && mpfr_zero_p(got.low())) {
    EXPECT_EQ(mpfr_signbit(got.low()) != 0, mpfr_signbit(want.get()) != 0)
        << At(primitive, intervals);
  }
}

TEST(EvalInterval, EnclosesUnaryPrimitivesAtPoints) {
  const std::vector<Primitive> primitives = FloatPrimitives(1);
  EXPECT_EQ(primitives.size(), 31u);
  std::mt19937 random(1);
  for (const Primitive primitive : primitives) {
    for (const double x : Points(40, random)) {
      ExpectEnclosesPoint(primitive, {x});
    }
  }
}

TEST(EvalInterval, EnclosesBinaryPrimitivesAtPoints) {
  const std::vector<Primitive> primitives = FloatPrimitives(2);
  EXPECT_EQ(primitives.size(), 11u);
  std::mt19937 random(2);
  for (const Primitive primitive : primitives) {
    const bool is_order = primitive == Primitive::kPolygamma;
    for (const double a : is_order ? std::vector<double>{0, 1, 2, 3, 8, 60}
                                   : Points(12, random)) {
      for (const double b : Points(12, random)) {
        // As many terms as the number is large.
        if (is_order && std::abs(b) >= 1e5 && std::isfinite(b)) continue;
        // The sign of a NaN means nothing over the reals.
        if (primitive == Primitive::kCopysign && std::isnan(b)) continue;
        ExpectEnclosesPoint(primitive, {a, b});
      }
    }
  }
}

// Counts of the intervals, and of those that are enclosed.
struct Decided {
  int all = 0;
  int decided = 0;
};

void ExpectEnclosesImages(Primitive primitive,
                          const std::vector<RealInterval>& operands,
                          std::mt19937& random, Decided& counts) {
  const RealInterval got = Enclosed(primitive, operands);
  ++counts.all;
  if (got.undecided() != nullptr) return;
  ++counts.decided;
  for (int trial = 0; trial < 3; ++trial) {
    std::vector<Real> inner;
    for (const RealInterval& operand : operands) {
      inner.push_back(Inner(operand, random));
    }
    const Real want = Exactly(primitive, inner);
    EXPECT_TRUE(got.Contains(want))
        << At(primitive, operands) << " at " << inner.back().ToString(60)
        << ": " << want.ToString(60) << " is not within " << got.ToString(60);
  }
}

TEST(EvalInterval, EnclosesTheImagesOfUnaryPrimitives) {
  std::mt19937 random(3);
  for (const Primitive primitive : FloatPrimitives(1)) {
    Decided narrow;
    Decided wide;
    for (const double x : Points(40, random)) {
      if (!std::isfinite(x)) continue;
      for (const double part : {0x1p-40, 0x1p-10}) {
        ExpectEnclosesImages(primitive, {Around(x, part)}, random, narrow);
      }
      for (const double part : {0.3, 1.0, 2.0}) {
        ExpectEnclosesImages(primitive, {Around(x, part)}, random, wide);
      }
    }
    // A third of the numbers lies within the narrowest domain.
    EXPECT_GT(narrow.decided, narrow.all / 3) << PrimitiveName(primitive);
    EXPECT_GT(wide.decided, 0) << PrimitiveName(primitive);
  }
}

TEST(EvalInterval, EnclosesTheImagesOfBinaryPrimitives) {
  std::mt19937 random(4);
  for (const Primitive primitive : FloatPrimitives(2)) {
    Decided counts;
    const bool is_order = primitive == Primitive::kPolygamma;
    for (const double a :
         is_order ? std::vector<double>{0, 1, 2, 7} : Points(8, random)) {
      for (const double b : Points(8, random)) {
        if (!std::isfinite(a) || !std::isfinite(b)) continue;
        if (is_order && std::abs(b) >= 1e5) continue;
        for (const double part : {0x1p-40, 0.3, 2.0}) {
          const std::vector<RealInterval> both = {
              is_order ? RealInterval(a, kBits) : Around(a, part),
              Around(b, part)};
          ExpectEnclosesImages(primitive, both, random, counts);
          // As many points: masks, exponents and orders are points.
          ExpectEnclosesImages(primitive, {RealInterval(a, kBits), both[1]},
                               random, counts);
          if (!is_order) {
            ExpectEnclosesImages(primitive, {both[0], RealInterval(b, kBits)},
                                 random, counts);
          }
        }
      }
    }
    EXPECT_GT(counts.decided, counts.all / 4) << PrimitiveName(primitive);
  }
}

TEST(EvalInterval, EnclosesFmaLdexpAndConstants) {
  std::mt19937 random(5);
  Decided counts;
  for (const double x : Points(40, random)) {
    if (!std::isfinite(x)) continue;
    ExpectEnclosesPoint(Primitive::kFma, {x, 3, 0.1});
    ExpectEnclosesImages(Primitive::kFma,
                         {Around(x, 0.1), Around(3, 0.1), Around(-2, 0.1)},
                         random, counts);
    IntervalTensor exponent;
    exponent.dtype = DType::kI32;
    exponent.shape = {1};
    exponent.discrete = Tensor::FromInts(DType::kI32, {1}, {-7});
    const RealInterval wide = Around(x, 0.5);
    const auto scaled = EvalInterval(Primitive::kLdexp, {},
                                     {IntervalsOf({wide}), exponent}, kBits);
    ASSERT_OK(scaled);
    Real want = Inner(wide, random);
    mpfr_div_2ui(want.get(), want.get(), 7, MPFR_RNDN);
    EXPECT_TRUE((*scaled)[0].intervals[0].Contains(want)) << x;
  }
  EXPECT_EQ(counts.decided, counts.all);
  const RealInterval third(*Exact::Parse("1/3"), kBits);
  EXPECT_FALSE(third.IsPoint());
  EXPECT_TRUE(third.Contains(Real(*Exact::Parse("1/3"), kManyBits)));
  EXPECT_TRUE(RealInterval(*Exact::Parse("0.25"), kBits).IsPoint());
}

Tensor Vector(const std::vector<int64_t>& shape, std::mt19937& random) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  std::uniform_real_distribution<double> uniform(-2, 2);
  std::vector<double> values(size);
  for (double& v : values) v = uniform(random);
  // Equal ones, too.
  if (size > 3) values[3] = values[1];
  return Tensor::FromDoubles(DType::kF64, shape, values);
}

struct Case {
  Primitive primitive;
  Attributes attributes;
  std::vector<Tensor> operands;
};

std::vector<Case> StructuredCases(std::mt19937& random) {
  const auto ints = [](std::vector<int64_t> values) {
    return StaticValue::Ints(values);
  };
  const auto f64 = [&](const std::vector<int64_t>& shape) {
    return Vector(shape, random);
  };
  const Attributes axis = {{"axis", 0}, {"reverse", true}};
  const Attributes axes = {{"axes", ints({0, 2})}};
  const Tensor index = Tensor::FromInts(DType::kI64, {4, 1}, {2, 0, 2, 1});
  const Tensor fill = Tensor::Scalar(DType::kF64, 7);
  std::vector<Case> cases = {
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
      {Primitive::kGather,
       {{"axes", ints({0})}, {"batch", 0}, {"mode", "fill"}},
       {f64({3, 2}), index, fill}},
      {Primitive::kSort, {{"axis", 0}, {"descending", true}}, {f64({9})}},
      {Primitive::kNonzero, {{"size", Dim::Variable("k")}}, {f64({3, 5})}},
      {Primitive::kReverse, {{"axes", ints({0})}}, {f64({5})}},
  };
  for (const Primitive primitive :
       {Primitive::kReduceSum, Primitive::kReduceProd, Primitive::kReduceMax,
        Primitive::kReduceMin, Primitive::kArgmax, Primitive::kArgmin}) {
    cases.push_back({primitive, axes, {f64({3, 2, 4})}});
  }
  for (const char* mode : {"add", "mul", "max", "min", "set"}) {
    cases.push_back({Primitive::kScatter,
                     {{"axes", ints({0})}, {"batch", 0}, {"mode", mode}},
                     {f64({3, 2}), index, f64({4, 2})}});
  }
  return cases;
}

// Whether all of `reals` lies within `intervals`: the one comparison of the two
// evaluations.
::testing::AssertionResult Encloses(
    const std::vector<IntervalTensor>& intervals,
    const std::vector<RealTensor>& reals) {
  if (intervals.size() != reals.size()) {
    return ::testing::AssertionFailure() << "the results differ in number";
  }
  for (size_t r = 0; r < reals.size(); ++r) {
    if (intervals[r].shape != reals[r].shape ||
        intervals[r].intervals.size() != reals[r].reals.size()) {
      return ::testing::AssertionFailure() << "the shapes differ";
    }
    for (size_t i = 0; i < reals[r].reals.size(); ++i) {
      if (intervals[r].intervals[i].Contains(reals[r].reals[i])) continue;
      return ::testing::AssertionFailure()
             << "element " << i << " of result " << r << ": "
             << reals[r].reals[i].ToString(50) << " is not within "
             << intervals[r].intervals[i].ToString(50);
    }
    for (int64_t i = 0; reals[r].reals.empty() && i < reals[r].discrete.size();
         ++i) {
      if (intervals[r].discrete.GetInt(i) == reals[r].discrete.GetInt(i)) {
        continue;
      }
      return ::testing::AssertionFailure() << "integer " << i;
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(EvalInterval, EnclosesStructuredPrimitives) {
  std::mt19937 random(6);
  // Points; bounds so narrow that every order stays decided; wide ones.
  for (const double part : {0.0, 0x1p-60, 0.25}) {
    for (const Case& c : StructuredCases(random)) {
      std::vector<IntervalTensor> intervals;
      std::vector<RealTensor> reals;
      for (const Tensor& operand : c.operands) {
        intervals.push_back(IntervalTensor::FromTensor(operand, kBits));
        reals.push_back(RealTensor::FromTensor(operand, kManyBits));
        for (size_t i = 0; part > 0 && i < reals.back().reals.size(); ++i) {
          RealInterval& wide = intervals.back().intervals[i];
          mpfr_sub_d(wide.low(), wide.low(), part, MPFR_RNDD);
          mpfr_add_d(wide.high(), wide.high(), part, MPFR_RNDU);
          reals.back().reals[i] = Inner(wide, random);
        }
      }
      const auto got =
          EvalInterval(c.primitive, c.attributes, intervals, kBits);
      const auto want = EvalReal(c.primitive, c.attributes, reals, kManyBits);
      ASSERT_OK(want);
      const bool decides = c.primitive == Primitive::kSort ||
                           c.primitive == Primitive::kArgmax ||
                           c.primitive == Primitive::kArgmin ||
                           c.primitive == Primitive::kNonzero;
      if (part > 0 && !got.ok()) {
        EXPECT_TRUE(decides && IsUndecided(got.status())) << got.status();
        continue;
      }
      ASSERT_OK(got);
      EXPECT_TRUE(Encloses(*got, *want)) << PrimitiveName(c.primitive);
    }
  }
}

TEST(EvalInterval, DecidesAnOrderOnlyWhereNothingOverlaps) {
  const IntervalTensor apart =
      IntervalsOf({Between(3, 4), Between(1, 2), Between(5, 5)});
  const IntervalTensor overlapping =
      IntervalsOf({Between(3, 4), Between(1, 2), Between(3.5, 5)});
  const Attributes sort = {{"axis", 0}, {"descending", false}};
  const auto sorted = EvalInterval(Primitive::kSort, sort, {apart}, kBits);
  ASSERT_OK(sorted);
  EXPECT_EQ((*sorted)[1].discrete.GetInt(0), 1);
  EXPECT_TRUE(IsUndecided(
      EvalInterval(Primitive::kSort, sort, {overlapping}, kBits).status()));
  const auto less = [](const RealInterval& a, const RealInterval& b) {
    return EvalInterval(Primitive::kLt, {},
                        {IntervalsOf({a}), IntervalsOf({b})}, kBits);
  };
  ASSERT_OK(less(Between(1, 2), Between(3, 4)));
  EXPECT_EQ((*less(Between(1, 2), Between(3, 4)))[0].discrete.GetInt(0), 1);
  // 2 is not less than 2.
  EXPECT_EQ((*less(Between(2, 3), Between(1, 2)))[0].discrete.GetInt(0), 0);
  EXPECT_EQ((*less(Between(2, 2), Between(2, 2)))[0].discrete.GetInt(0), 0);
  const auto open = less(Between(1, 3), Between(2, 4));
  EXPECT_TRUE(IsUndecided(open.status()));
  EXPECT_THAT(std::string(open.status().message()), StartsWith("undecided: "));
  // The greater of the two is enclosed all the same.
  const RealInterval greater =
      Enclosed(Primitive::kMax, {Between(1, 3), Between(2, 4)});
  EXPECT_EQ(mpfr_cmp_ui(greater.low(), 2), 0);
  EXPECT_EQ(mpfr_cmp_ui(greater.high(), 4), 0);
}

TEST(EvalInterval, DecidesIntegersOnlyWhereBoundsShareThem) {
  const auto integer = [](const RealInterval& v, DType dtype) {
    return EvalInterval(Primitive::kConvert, {{"dtype", dtype}},
                        {IntervalsOf({v})}, kBits);
  };
  EXPECT_EQ((*integer(Between(2.1, 2.9), DType::kI32))[0].discrete.GetInt(0),
            2);
  EXPECT_TRUE(IsUndecided(integer(Between(1.9, 2.1), DType::kI32).status()));
  EXPECT_TRUE(IsUndecided(integer(Between(-1, 1), DType::kBool).status()));
  EXPECT_EQ((*integer(Between(0.1, 1), DType::kBool))[0].discrete.GetInt(0), 1);
  // floor is enclosed, if widely.
  const RealInterval floor = Enclosed(Primitive::kFloor, {Between(1.9, 2.1)});
  EXPECT_EQ(mpfr_cmp_ui(floor.low(), 1), 0);
  EXPECT_EQ(mpfr_cmp_ui(floor.high(), 2), 0);
}

TEST(EvalInterval, SaysWhatItDoesNotDecide) {
  const auto why = [](Primitive primitive, std::vector<RealInterval> operands) {
    const RealInterval got = Enclosed(primitive, operands);
    return std::string(got.undecided() == nullptr ? "" : got.undecided());
  };
  EXPECT_THAT(why(Primitive::kDiv, {Between(1, 2), Between(-1, 1)}),
              HasSubstr("may be 0"));
  // A zero of either sign.
  EXPECT_THAT(why(Primitive::kDiv, {Between(1, 2), Between(0, 0)}),
              HasSubstr("may be 0"));
  EXPECT_THAT(why(Primitive::kLog, {Between(-1, 1)}), HasSubstr("domain"));
  EXPECT_THAT(why(Primitive::kSub, {Between(1, kInf), Between(1, kInf)}),
              HasSubstr("infinities"));
  EXPECT_THAT(why(Primitive::kMul, {Between(0, 1), Between(1, kInf)}),
              HasSubstr("infinity"));
  EXPECT_THAT(why(Primitive::kLgamma, {Between(-1.5, -0.5)}),
              HasSubstr("pole"));
  // log(-1), 0 / 0 and inf - inf have no value, for certain.
  EXPECT_TRUE(Enclosed(Primitive::kLog, {Between(-2, -1)}).IsNaN());
  const RealInterval zero(0.0, kBits);
  const RealInterval infinity(kInf, kBits);
  EXPECT_TRUE(Enclosed(Primitive::kDiv, {zero, zero}).IsNaN());
  EXPECT_TRUE(Enclosed(Primitive::kSub, {infinity, infinity}).IsNaN());
  // 1 / -0 is -inf: a point keeps the sign of its zero.
  EXPECT_EQ(Enclosed(Primitive::kDiv,
                     {RealInterval(1.0, kBits), RealInterval(-0.0, kBits)})
                .ToString(3),
            "[-inf, -inf]");
}

// An element that nothing decides does no harm where it is not selected, and
// ends what rests on it.
TEST(EvalInterval, KeepsUndecidedElementsApart) {
  const IntervalTensor values = IntervalsOf(
      {RealInterval::Undecided("test", kBits), RealInterval(1.0, kBits)});
  const IntervalTensor others =
      IntervalsOf({RealInterval(2.0, kBits), RealInterval(3.0, kBits)});
  IntervalTensor condition;
  condition.dtype = DType::kBool;
  condition.shape = {2};
  condition.discrete = Tensor::FromInts(DType::kBool, {2}, {0, 1});
  const auto selected =
      EvalInterval(Primitive::kSelect, {}, {condition, values, others}, kBits);
  ASSERT_OK(selected);
  EXPECT_EQ((*selected)[0].intervals[0].ToString(2), "[2, 2]");
  EXPECT_EQ((*selected)[0].intervals[1].ToString(2), "[1, 1]");
  const auto sum = EvalInterval(Primitive::kAdd, {}, {values, others}, kBits);
  ASSERT_OK(sum);
  EXPECT_EQ((*sum)[0].intervals[0].ToString(2), "undecided: test");
  EXPECT_TRUE(IsUndecided(
      EvalInterval(Primitive::kLt, {}, {values, others}, kBits).status()));
}

// An enclosure that is off by 2^-100 of its value is no enclosure.
TEST(EvalInterval, AnEnclosureThatIsMovedIsFound) {
  std::mt19937 random(7);
  int found = 0;
  for (const Primitive primitive : {Primitive::kExp, Primitive::kErfinv,
                                    Primitive::kSin, Primitive::kLgamma}) {
    const double x = std::uniform_real_distribution<double>(0.1, 0.9)(random);
    RealInterval got = Enclosed(primitive, {RealInterval(x, kBits)});
    const Real want = Exactly(primitive, {RealOf(x)});
    ASSERT_TRUE(got.Contains(want));
    Real step(kBits);
    mpfr_div_2ui(step.get(), got.high(), 100, MPFR_RNDN);
    mpfr_add(got.low(), got.low(), step.get(), MPFR_RNDN);
    mpfr_add(got.high(), got.high(), step.get(), MPFR_RNDN);
    found += !got.Contains(want);
  }
  EXPECT_EQ(found, 4);
}

}  // namespace
}  // namespace cleave
