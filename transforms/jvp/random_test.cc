// rules/core/random.rules: what the draws are distributed as, at fixed keys,
// and that derivatives go through them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/reference/reference.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/random_testing.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::Each;

constexpr int kDraws = 20000;
constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr char kFunctions[] = R"(
fn uniform32(low: f32[], high: f32[], key: key) -> f32[20000]
  = uniform(low, high, key, shape: [20000])

fn uniform64(low: f64[], high: f64[], key: key) -> f64[20000]
  = uniform(low, high, key, shape: [20000])

fn uniform16(low: bf16[], high: bf16[], key: key) -> bf16[20000]
  = uniform(low, high, key, shape: [20000])

fn normal32(mean: f32[], std: f32[], key: key) -> f32[20000]
  = normal(mean, std, key, shape: [20000])

fn normal64(mean: f64[], std: f64[], key: key) -> f64[20000]
  = normal(mean, std, key, shape: [20000])

fn bits(key: key) -> u64[20000] = random_bits(key, shape: [20000], dtype: u64)

fn pairs(key: key) -> u64[20000, 2] = random_bits(key, shape: [20000, 2], dtype: u64)

fn bernoulli32(p: f32[], key: key) -> bool[20000] = bernoulli(p, key, shape: [20000])

fn randint8(low: i8[], high: i8[], key: key) -> i8[20000]
  = randint(low, high, key, shape: [20000])

fn randint64(low: i64[], high: i64[], key: key) -> i64[20000]
  = randint(low, high, key, shape: [20000])

fn randint_u64(low: u64[], high: u64[], key: key) -> u64[20000]
  = randint(low, high, key, shape: [20000])

fn none(key: key) -> i64[0] = permutation(key, n: 0)

fn one(key: key) -> i64[1] = permutation(key, n: 1)

fn four(key: key) -> i64[4] = permutation(key, n: 4)

fn many(key: key) -> i64[1000] = permutation(key, n: 1000)

fn shuffled(x: f32[2, 5], key: key) -> f32[2, 5] = shuffle(x, key, axis: 1)

fn kept(x: f32[20000], key: key) -> f32[20000] = dropout(x, key, p: 0)

fn thinned(x: f32[20000], key: key) -> f32[20000] = dropout(x, key, p: 0.3)

fn dropped(x: f32[20000], key: key) -> f32[20000] = dropout(x, key, p: 1)

fn exponential32(rate: f32[], key: key) -> f32[20000]
  = exponential(rate, key, shape: [20000])

fn gumbel32(loc: f32[], scale: f32[], key: key) -> f32[20000]
  = gumbel(loc, scale, key, shape: [20000])

fn categorical20000(logits: f32[5], key: key) -> i64[20000]
  = categorical(broadcast_to(logits, shape: [20000, 5]), key)

fn folded(k: key, i: i32[3]) -> key[2, 3]
  = random_fold_in(reshape(random_split(k, count: 2), shape: [2, 1]), i)

fn folded_number(k: key) -> key[] = random_fold_in(k, 7)

fn over_split(k: key) -> f32[20000] = random_uniform(random_split(k, count: 20000), shape: [], dtype: f32)

fn over_folded(k: key) -> f32[20000]
  = random_uniform(random_fold_in(k, iota(20000)), shape: [], dtype: f32)
)";

Tensor F32(double x) { return Tensor::Scalar(DType::kF32, x); }

std::vector<double> Values(const Tensor& x) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.size(); ++i) values.push_back(x.GetDouble(i));
  return values;
}

double Mean(const std::vector<double>& x,
            const std::function<double(double)>& f) {
  double sum = 0;
  for (double v : x) sum += f(v);
  return sum / x.size();
}

// The square sum of (observed - expected) / sqrt(expected) over `counts`, whose
// expected shares are `shares`.
double ChiSquare(const std::vector<int>& counts,
                 const std::vector<double>& shares) {
  double total = 0;
  for (int count : counts) total += count;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * shares[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}
double ChiSquare(const std::vector<int>& counts) {
  return ChiSquare(counts,
                   std::vector<double>(counts.size(), 1.0 / counts.size()));
}

// sqrt(n) times the largest distance between the draws' distribution function
// and `cdf`: above 1.95 with probability 0.001.
double KolmogorovSmirnov(std::vector<double> x,
                         const std::function<double(double)>& cdf) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double distance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = cdf(x[i]);
    distance = std::max({distance, p - i / n, (i + 1) / n - p});
  }
  return distance * std::sqrt(n);
}
constexpr double kKolmogorovSmirnov = 1.95;

class DrawsTest : public RandomTest {
 protected:
  DrawsTest() : RandomTest(kFunctions) {}
};

TEST_F(DrawsTest, UniformIsUniform) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const char* name = dtype == DType::kF32   ? "uniform32"
                       : dtype == DType::kF64 ? "uniform64"
                                              : "uniform16";
    const std::vector<double> x = Values(Run(
        name, {Tensor::Scalar(dtype, -1), Tensor::Scalar(dtype, 3), Key(1)}));
    std::vector<int> counts(32);
    for (double v : x) {
      ASSERT_GE(v, -1);
      ASSERT_LT(v, 3);
      ++counts[static_cast<int>((v + 1) * 8)];
    }
    // Within four standard deviations of the mean and of the variance.
    const double mean = Mean(x, [](double v) { return v; });
    EXPECT_NEAR(mean, 1, 4 * 4 / std::sqrt(12.0 * kDraws));
    EXPECT_NEAR(Mean(x, [](double v) { return (v - 1) * (v - 1); }), 16 / 12.0,
                4 * 16 / std::sqrt(180.0 * kDraws));
    // 31 degrees of freedom: above 70 with probability 1e-4.
    EXPECT_LT(ChiSquare(counts), 70);
  }
}

TEST_F(DrawsTest, UniformStaysBelowItsUpperBound) {
  // One number lies in [1, 1 + eps), and rounding would leave it often.
  const auto only = [&](const char* name, DType dtype, double eps) {
    const Tensor one = Tensor::Scalar(dtype, 1);
    EXPECT_THAT(
        Values(Run(name, {one, Tensor::Scalar(dtype, 1 + eps), Key(2)})),
        Each(1.0));
  };
  only("uniform16", DType::kBF16, 0x1p-7);
  only("uniform32", DType::kF32, 0x1p-23);
  only("uniform64", DType::kF64, 0x1p-52);
  // The whole range neither overflows nor loses an end; wide steps round up.
  const double most = std::numeric_limits<float>::max();
  for (double v : Values(Run("uniform32", {F32(-most), F32(most), Key(3)}))) {
    EXPECT_GE(v, -most);
    EXPECT_LT(v, most);
  }
  const Tensor large = Tensor::Scalar(DType::kBF16, 256);
  double top = 0;
  for (double v : Values(Run(
           "uniform16", {Tensor::Scalar(DType::kBF16, 0), large, Key(4)}))) {
    EXPECT_LT(v, 256);
    top = std::max(top, v);
  }
  EXPECT_EQ(top, 255);
  // Nothing lies between: the lower bound.
  EXPECT_THAT(Values(Run("uniform32", {F32(2), F32(2), Key(5)})), Each(2.0));
  EXPECT_THAT(Values(Run("uniform32", {F32(2), F32(1), Key(5)})), Each(2.0));
}

double NormalCdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

TEST_F(DrawsTest, NormalIsNormal) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    SCOPED_TRACE(DTypeName(dtype));
    const Tensor y =
        Run(dtype == DType::kF32 ? "normal32" : "normal64",
            {Tensor::Scalar(dtype, 10), Tensor::Scalar(dtype, 2), Key(6)});
    std::vector<double> z = Values(y);
    for (double& v : z) v = (v - 10) / 2;
    const auto moment = [&](int k) {
      return Mean(z, [k](double v) { return std::pow(v, k); });
    };
    // Four standard deviations: the variances of x to x^4 are 1, 2, 15, 96.
    const double root = std::sqrt(static_cast<double>(kDraws));
    EXPECT_NEAR(moment(1), 0, 4 / root);
    EXPECT_NEAR(moment(2), 1, 4 * std::sqrt(2) / root);
    EXPECT_NEAR(moment(3), 0, 4 * std::sqrt(15) / root);
    EXPECT_NEAR(moment(4), 3, 4 * std::sqrt(96) / root);
    EXPECT_LT(KolmogorovSmirnov(z, NormalCdf), kKolmogorovSmirnov);
  }
}

// The draw is the quantile of the middle of the part of (0, 1) that the bits
// pick, in the tails as well: there 24 bits would be wrong in the first digits.
TEST_F(DrawsTest, NormalIsTheQuantileOfItsBits) {
  const Tensor bits = Run("bits", {Key(7)});
  const Tensor z = Run("normal64", {Tensor::Scalar(DType::kF64, 0),
                                    Tensor::Scalar(DType::kF64, 1), Key(7)});
  const Tensor narrow = Run("normal32", {F32(0), F32(1), Key(7)});
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t part = static_cast<uint64_t>(bits.GetInt(i)) >> 12;
    // The nearer end is 0 or 1: from there the distance is exact.
    const double below = (static_cast<double>(part) + 0.5) * 0x1p-52;
    const double p = std::min(below, 1 - below);
    const double v = z.GetDouble(i);
    EXPECT_EQ(v < 0, below < 0.5);
    EXPECT_NEAR(NormalCdf(-std::fabs(v)), p, 1e-13 * p);
    EXPECT_EQ(narrow.GetDouble(i), static_cast<float>(v));
  }
}

TEST_F(DrawsTest, BernoulliHasItsShare) {
  const auto share = [&](double p) {
    return Mean(Values(Run("bernoulli32", {F32(p), Key(8)})),
                [](double v) { return v; });
  };
  EXPECT_NEAR(share(0.3), 0.3, 4 * std::sqrt(0.21 / kDraws));
  EXPECT_EQ(share(0), 0);
  EXPECT_EQ(share(1e-12), 0);
  EXPECT_EQ(share(1), 1);
  EXPECT_EQ(share(std::nan("")), 0);
}

TEST_F(DrawsTest, RandintIsUniform) {
  const Tensor x =
      Run("randint8", {Tensor::FromInts(DType::kI8, {}, {-3}),
                       Tensor::FromInts(DType::kI8, {}, {7}), Key(9)});
  std::vector<int> counts(10);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_GE(x.GetInt(i), -3);
    ASSERT_LT(x.GetInt(i), 7);
    ++counts[x.GetInt(i) + 3];
  }
  // 9 degrees of freedom: above 34 with probability 1e-4.
  EXPECT_LT(ChiSquare(counts), 34);
  // Nothing lies between: the lower bound.
  const Tensor low = Tensor::FromInts(DType::kI8, {}, {5});
  EXPECT_THAT(Values(Run("randint8", {low, low, Key(9)})), Each(5.0));
}

// The whole of 128 bits counts: of 3 * 2^62 numbers, 64 bits would give every
// third one twice as often as the others.
TEST_F(DrawsTest, RandintIsUnbiasedOverWideRanges) {
  const uint64_t n = uint64_t{3} << 62;
  const Tensor x =
      Run("randint_u64",
          {Tensor::FromInts(DType::kU64, {}, {5}),
           Tensor::FromInts(DType::kU64, {}, {static_cast<int64_t>(n + 5)}),
           Key(10)});
  const Tensor words = Run("pairs", {Key(10)});
  std::vector<int> rests(3);
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t got = static_cast<uint64_t>(x.GetInt(i)) - 5;
    using Wide = unsigned __int128;
    const Wide upper = static_cast<uint64_t>(words.GetInt(2 * i));
    const Wide lower = static_cast<uint64_t>(words.GetInt(2 * i + 1));
    const Wide want = (upper * n + (lower * n >> 64)) >> 64;
    ASSERT_EQ(got, static_cast<uint64_t>(want));
    ++rests[got % 3];
  }
  // 2 degrees of freedom: above 19 with probability 1e-4.
  EXPECT_LT(ChiSquare(rests), 19);
  // All of i64 but its largest number, with bounds of different signs.
  const Tensor all = Run(
      "randint64",
      {Tensor::FromInts(DType::kI64, {}, {std::numeric_limits<int64_t>::min()}),
       Tensor::FromInts(DType::kI64, {}, {std::numeric_limits<int64_t>::max()}),
       Key(11)});
  std::vector<int> eighths(8);
  for (int i = 0; i < kDraws; ++i) ++eighths[(all.GetInt(i) >> 61) + 4];
  // 7 degrees of freedom: above 30 with probability 1e-4.
  EXPECT_LT(ChiSquare(eighths), 30);
}

TEST_F(DrawsTest, PermutationIsUniform) {
  EXPECT_EQ(Run("none", {Key(12)}).size(), 0);
  EXPECT_EQ(Run("one", {Key(12)}).GetInt(0), 0);
  const Tensor large = Run("many", {Key(12)});
  std::set<int64_t> places;
  int fixed = 0;
  for (int64_t i = 0; i < large.size(); ++i) {
    places.insert(large.GetInt(i));
    fixed += large.GetInt(i) == i;
  }
  EXPECT_EQ(places.size(), 1000);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), 999);
  EXPECT_LT(fixed, 10);  // 1 is expected
  // All 24 orders of four, by a key for each draw.
  constexpr int kOrders = 4800;
  ASSERT_OK_AND_ASSIGN(const Graph batched, Vmap(Function("four"), {kSplit},
                                                 Dim(kOrders), {0}, *rules_));
  const Tensor orders = RunGraph(batched, {Key(13)})[0];
  std::vector<std::string> names;
  std::string digits = "0123";
  do {
    names.push_back(digits);
  } while (std::next_permutation(digits.begin(), digits.end()));
  std::vector<int> counts(names.size());
  for (int i = 0; i < kOrders; ++i) {
    std::string order;
    for (int j = 0; j < 4; ++j) {
      order += static_cast<char>('0' + orders.GetInt(4 * i + j));
    }
    const auto it = std::find(names.begin(), names.end(), order);
    ASSERT_NE(it, names.end()) << order;
    ++counts[it - names.begin()];
  }
  // 23 degrees of freedom: above 58 with probability 1e-4.
  EXPECT_LT(ChiSquare(counts), 58);
}

TEST_F(DrawsTest, ShuffleMovesSlices) {
  std::vector<double> x;
  for (int i = 0; i < 10; ++i) x.push_back(i);
  const Tensor y =
      Run("shuffled", {Tensor::FromDoubles(DType::kF32, {2, 5}, x), Key(14)});
  std::set<double> first;
  for (int j = 0; j < 5; ++j) {
    first.insert(y.GetDouble(j));
    EXPECT_EQ(y.GetDouble(5 + j), y.GetDouble(j) + 5);
  }
  EXPECT_EQ(first, (std::set<double>{0, 1, 2, 3, 4}));
}

TEST_F(DrawsTest, DropoutKeepsTheMean) {
  const Tensor ones = Tensor::FromDoubles(DType::kF32, {kDraws},
                                          std::vector<double>(kDraws, 1));
  const Tensor y = Run("thinned", {ones, Key(15)});
  const double scaled = 1.0f / 0.7f;
  int kept = 0;
  for (double v : Values(y)) {
    ASSERT_TRUE(v == 0 || v == scaled) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept, 0.7 * kDraws, 4 * std::sqrt(0.21 * kDraws));
  EXPECT_NEAR(Mean(Values(y), [](double v) { return v; }), 1,
              4 * std::sqrt(0.3 / 0.7 / kDraws));
  EXPECT_TRUE(SameValue(Run("kept", {ones, Key(15)}), ones));
  // All is dropped, whatever it is.
  Tensor odd = ones;
  odd = Tensor::FromDoubles(DType::kF32, {kDraws},
                            std::vector<double>(kDraws, kInf));
  EXPECT_TRUE(
      SameValue(Run("dropped", {odd, Key(15)}), Tensor(DType::kF32, {kDraws})));
}

TEST_F(DrawsTest, ExponentialAndGumbelHaveTheirDistributions) {
  const std::vector<double> waits =
      Values(Run("exponential32", {F32(2), Key(16)}));
  EXPECT_THAT(waits, Each(::testing::Gt(0)));
  EXPECT_LT(
      KolmogorovSmirnov(waits, [](double x) { return -std::expm1(-2 * x); }),
      kKolmogorovSmirnov);
  EXPECT_LT(KolmogorovSmirnov(
                Values(Run("gumbel32", {F32(1), F32(3), Key(17)})),
                [](double x) { return std::exp(-std::exp(-(x - 1) / 3)); }),
            kKolmogorovSmirnov);
}

TEST_F(DrawsTest, CategoricalFollowsTheSoftmax) {
  const Tensor logits =
      Tensor::FromDoubles(DType::kF32, {5}, {0, 1, -kInf, 2, -1});
  const Tensor x = Run("categorical20000", {logits, Key(18)});
  std::vector<int> counts(5);
  for (int i = 0; i < kDraws; ++i) ++counts[x.GetInt(i)];
  EXPECT_EQ(counts[2], 0);
  const double total = 1 + std::exp(1) + std::exp(2) + std::exp(-1);
  // 3 degrees of freedom: above 21 with probability 1e-4.
  EXPECT_LT(ChiSquare({counts[0], counts[1], counts[3], counts[4]},
                      {1 / total, std::exp(1) / total, std::exp(2) / total,
                       std::exp(-1) / total}),
            21);
}

// Fields of keys and integers broadcast; narrow integers widen.
TEST_F(DrawsTest, FoldsInOverBroadcastKeys) {
  const Tensor keys =
      Run("folded", {Key(19), Tensor::FromInts(DType::kI32, {3}, {0, 1, -1})});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> split,
      EvalReference(Primitive::kRandomSplit, {{"count", 2}}, {Key(19)}));
  std::set<int64_t> distinct;
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> one,
          EvalReference(
              Primitive::kRandomFoldIn, {},
              {Key(split[0].GetInt(k)),
               Tensor::FromInts(DType::kI64, {}, {i == 2 ? -1 : i})}));
      EXPECT_EQ(keys.GetInt(3 * k + i), one[0].GetInt(0));
      distinct.insert(keys.GetInt(3 * k + i));
    }
  }
  EXPECT_EQ(distinct.size(), 6);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> seven,
      EvalReference(Primitive::kRandomFoldIn, {},
                    {Key(19), Tensor::FromInts(DType::kI64, {}, {7})}));
  EXPECT_TRUE(SameValue(Run("folded_number", {Key(19)}), seven[0]));
}

// One draw of each of many keys is as uniform as many draws of one key.
TEST_F(DrawsTest, NewKeysAreIndependent) {
  for (const char* name : {"over_split", "over_folded"}) {
    const std::vector<double> x = Values(Run(name, {Key(25)}));
    std::vector<int> counts(32);
    // How often the second of two neighbours is larger: they are not ordered.
    int ascents = 0;
    for (int i = 0; i < kDraws; ++i) {
      ++counts[static_cast<int>(x[i] * 32)];
      if (i > 0) ascents += x[i] > x[i - 1];
    }
    // 31 degrees of freedom: above 70 with probability 1e-4.
    EXPECT_LT(ChiSquare(counts), 70) << name;
    // The variance of the number of ascents is (n + 1) / 12.
    EXPECT_NEAR(ascents, kDraws / 2.0, 4 * std::sqrt(kDraws / 12.0)) << name;
  }
}

// Tangents of the function's inputs but for the key, which is the last one.
TEST_F(DrawsTest, DerivativesGoThroughTheDraw) {
  const auto tangent = [&](const std::string& name,
                           const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& tangents) {
    std::vector<bool> active(inputs.size(), true);
    active.back() = false;
    const absl::StatusOr<JvpResult> jvp = Jvp(Function(name), active, *rules_);
    CLEAVE_CHECK(jvp.ok()) << jvp.status().ToString();
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), tangents.begin(), tangents.end());
    return RunGraph(jvp->graph, all)[1];
  };
  // mean + std z
  const Tensor z = Run("normal64", {Tensor::Scalar(DType::kF64, 0),
                                    Tensor::Scalar(DType::kF64, 1), Key(22)});
  const Tensor dy =
      tangent("normal64",
              {Tensor::Scalar(DType::kF64, 10), Tensor::Scalar(DType::kF64, 2),
               Key(22)},
              {Tensor::Scalar(DType::kF64, 1), Tensor::Scalar(DType::kF64, 3)});
  for (int i = 0; i < kDraws; ++i) {
    EXPECT_DOUBLE_EQ(dy.GetDouble(i), 1 + 3 * z.GetDouble(i));
  }
  // low (1 - u) + high u
  const Tensor u = Run("uniform32", {F32(0), F32(1), Key(23)});
  const Tensor du =
      tangent("uniform32", {F32(-1), F32(1), Key(23)}, {F32(2), F32(5)});
  for (int i = 0; i < kDraws; ++i) {
    EXPECT_NEAR(du.GetDouble(i), 2 + 3 * u.GetDouble(i), 1e-6);
  }
  // The tangents of what is kept, scaled.
  std::vector<double> x, dx;
  for (int i = 0; i < kDraws; ++i) {
    x.push_back(i % 7 + 1);
    dx.push_back(i % 5);
  }
  const Tensor xs = Tensor::FromDoubles(DType::kF32, {kDraws}, x);
  const Tensor dxs = Tensor::FromDoubles(DType::kF32, {kDraws}, dx);
  const Tensor y = Run("thinned", {xs, Key(24)});
  const Tensor dropout = tangent("thinned", {xs, Key(24)}, {dxs});
  for (int i = 0; i < kDraws; ++i) {
    const float want =
        y.GetDouble(i) == 0 ? 0 : static_cast<float>(dx[i]) / 0.7f;
    EXPECT_EQ(dropout.GetDouble(i), want);
  }
  EXPECT_TRUE(SameValue(tangent("kept", {xs, Key(24)}, {dxs}), dxs));
  EXPECT_TRUE(SameValue(tangent("dropped", {xs, Key(24)}, {dxs}),
                        Tensor(DType::kF32, {kDraws})));
}

}  // namespace
}  // namespace cleave
