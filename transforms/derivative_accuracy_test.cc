// The derivatives of one-operand primitives in f32 against the exact ones, over
// the whole domain: far tails, neighbourhoods of zeros and poles included.

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp.h"
#include "transforms/test_rules.h"

namespace cleave {
namespace {

constexpr int kPoints = 400;
constexpr int kBits = 600;
constexpr int kRelativeStep = -80;  // h = 2^-80 x

struct Domain {
  Primitive primitive;
  float low;
  float high;
};

// Integers in the order of the floats.
int64_t ToOrdinal(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : bits;
}

float FromOrdinal(int64_t ordinal) {
  const int32_t bits = static_cast<int32_t>(
      ordinal < 0 ? (int64_t{1} << 31 | -ordinal) : ordinal);
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// The distance of neighbouring floats at x.
double UlpOf(double x) {
  const int exponent = std::ilogb(std::fabs(x));
  return std::ldexp(1.0, std::max(exponent, -126) - 23);
}

class DerivativeAccuracyTest : public ::testing::TestWithParam<Domain> {};

// Within 4 ulp, and 2 more per condition number |x f''(x) / f'(x)|: a relative
// rounding of x changes f'(x) by so many.
TEST_P(DerivativeAccuracyTest, WithinBounds) {
  const Domain& domain = GetParam();
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(context);
  std::vector<double> points;
  const int64_t first = ToOrdinal(domain.low);
  const int64_t last = ToOrdinal(domain.high);
  for (int i = 0; i <= kPoints; ++i) {
    const float x = FromOrdinal(first + (last - first) / kPoints * i);
    if (x != 0) points.push_back(x);
  }
  const int64_t count = static_cast<int64_t>(points.size());
  GraphBuilder b(context);
  const Value x = b.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y = b.Apply(domain.primitive, {x});
  const Graph graph = std::move(b).Build({{"y", y}});
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, {true}, *rules));
  const Tensor primal = Tensor::FromDoubles(DType::kF32, {count}, points);
  const Tensor ones = Tensor::FromDoubles(DType::kF32, {count},
                                          std::vector<double>(count, 1.0));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       Interpret(jvp.graph, {primal, ones}));

  // f at x - h, x, x + h.
  std::vector<RealTensor> values;
  for (int side : {-1, 0, 1}) {
    RealTensor at = RealTensor::FromTensor(primal, kBits);
    for (Real& real : at.reals) {
      Real step = real;
      mpfr_mul_2si(step.get(), step.get(), kRelativeStep, MPFR_RNDN);
      mpfr_mul_si(step.get(), step.get(), side, MPFR_RNDN);
      mpfr_add(real.get(), real.get(), step.get(), MPFR_RNDN);
    }
    ASSERT_OK_AND_ASSIGN(std::vector<RealTensor> result,
                         InterpretReal(graph, {at}, kBits));
    values.push_back(result[0]);
  }
  double worst = 0;
  double worst_at = 0;
  for (int64_t i = 0; i < count; ++i) {
    Real slope(kBits);
    Real curve(kBits);
    Real step(points[i], kBits);
    mpfr_mul_2si(step.get(), step.get(), kRelativeStep, MPFR_RNDN);
    mpfr_sub(slope.get(), values[2].reals[i].get(), values[0].reals[i].get(),
             MPFR_RNDN);
    mpfr_add(curve.get(), values[2].reals[i].get(), values[0].reals[i].get(),
             MPFR_RNDN);
    mpfr_sub(curve.get(), curve.get(), values[1].reals[i].get(), MPFR_RNDN);
    mpfr_sub(curve.get(), curve.get(), values[1].reals[i].get(), MPFR_RNDN);
    mpfr_div(slope.get(), slope.get(), step.get(), MPFR_RNDN);
    mpfr_div_ui(slope.get(), slope.get(), 2, MPFR_RNDN);
    mpfr_div(curve.get(), curve.get(), step.get(), MPFR_RNDN);
    // x f'' / f' = (curve / h) x / f', x / h = 2^80.
    mpfr_div(curve.get(), curve.get(), slope.get(), MPFR_RNDN);
    mpfr_mul_2si(curve.get(), curve.get(), -kRelativeStep, MPFR_RNDN);
    const double expected = slope.ToDouble();
    if (std::fabs(expected) > std::numeric_limits<float>::max()) continue;
    const double error = std::fabs(got[1].GetDouble(i) - expected);
    const double bound = 4 + 2 * std::fabs(curve.ToDouble());
    const double ulps = error / UlpOf(expected);
    EXPECT_LE(ulps, bound) << "at " << points[i] << ": " << got[1].GetDouble(i)
                           << ", not " << expected;
    if (ulps / bound > worst) {
      worst = ulps / bound;
      worst_at = points[i];
    }
  }
  RecordProperty("worst_share_of_bound", std::to_string(worst));
  RecordProperty("worst_at", std::to_string(worst_at));
}

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

INSTANTIATE_TEST_SUITE_P(
    All, DerivativeAccuracyTest,
    ::testing::Values(
        Domain{Primitive::kExp, -104, 88}, Domain{Primitive::kExpm1, -104, 88},
        Domain{Primitive::kLog, kTiny, kMax},
        Domain{Primitive::kLog1p, -0.9999999F, kMax},
        Domain{Primitive::kSqrt, kTiny, kMax},
        Domain{Primitive::kRsqrt, kTiny, kMax},
        Domain{Primitive::kCbrt, -kMax, kMax},
        Domain{Primitive::kSin, -1000, 1000},
        Domain{Primitive::kCos, -1000, 1000},
        Domain{Primitive::kTan, -1000, 1000},
        Domain{Primitive::kAsin, -0.9999999F, 0.9999999F},
        Domain{Primitive::kAcos, -0.9999999F, 0.9999999F},
        Domain{Primitive::kAtan, -kMax, kMax},
        Domain{Primitive::kSinh, -88, 88}, Domain{Primitive::kCosh, -88, 88},
        Domain{Primitive::kTanh, -51, 51},
        Domain{Primitive::kAsinh, -kMax, kMax},
        Domain{Primitive::kAcosh, 1.0000001F, kMax},
        Domain{Primitive::kAtanh, -0.9999999F, 0.9999999F},
        Domain{Primitive::kSigmoid, -103, 103},
        Domain{Primitive::kErf, -10, 10}, Domain{Primitive::kErfc, -10, 10},
        Domain{Primitive::kErfinv, -0.9999999F, 0.9999999F},
        Domain{Primitive::kLgamma, kTiny, 1e30F}),
    [](const auto& info) {
      return std::string(PrimitiveName(info.param.primitive));
    });

}  // namespace
}  // namespace cleave
