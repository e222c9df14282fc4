// The derivatives of ops of one input in f32, forwards and in reverse, against
// the exact ones, over the whole domain: far tails, neighbourhoods of zeros and
// poles included.

#include <mpfr.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/status_macros.h"
#include "testing/check/samples/over_reals.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

constexpr int kPoints = 1000;
constexpr int kBits = 600;
constexpr int kRelativeStep = -80;  // h = 2^-80 x

// An op of one input between two points, with its attributes.
struct Function {
  const char* op;
  float low;
  float high;
  const char* attributes = "";
};

// Calls whose bound is `ulp` instead of 4.
struct Exception {
  const char* op;
  const char* attributes;
  double ulp;
  const char* why;
};

constexpr Exception kExceptions[] = {
    {"gelu", ", approximate: tanh", 6,
     "where the slope is 0, two terms cancel that carry the roundings of a "
     "polynomial and its derivative, of which the condition counts one"},
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

bool IsOf(const Exception& exception, const Function& function) {
  return std::string(exception.op) == function.op &&
         std::string(exception.attributes) == function.attributes;
}

double BoundOf(const Function& function) {
  for (const Exception& exception : kExceptions) {
    if (IsOf(exception, function)) return exception.ulp;
  }
  return 4;
}

// The shipped ops, loaded once.
std::shared_ptr<const RuleSet> Core() {
  static const auto& core = *new std::shared_ptr<const RuleSet>(
      LoadTestRules(std::make_shared<Context>(), "", {"core"}));
  return core;
}

// A derivative over the reals at one point.
struct Slope {
  Real value;
  double condition;  // |x f''(x) / f'(x)|
};

class DerivativeAccuracyTest : public ::testing::TestWithParam<Function> {
 protected:
  void SetUp() override {
    const Function& function = GetParam();
    const LoadResult loaded = ExtendRules(
        Core(), {"function.rules",
                 absl::StrCat("language 1\n\nfn f(x: f32[n]) -> f32[n] = ",
                              function.op, "(x", function.attributes, ")\n")});
    ASSERT_TRUE(loaded.diagnostics.empty()) << loaded.diagnostics[0];
    rules_ = loaded.rules;
    ASSERT_OK_AND_ASSIGN(function_, rules_->Function("f"));
    const int64_t first = ToOrdinal(function.low);
    const int64_t last = ToOrdinal(function.high);
    std::vector<double> points;
    for (int i = 0; i <= kPoints; ++i) {
      const float x = FromOrdinal(first + (last - first) / kPoints * i);
      if (x != 0) points.push_back(x);
    }
    const int64_t count = static_cast<int64_t>(points.size());
    x_ = Tensor::FromDoubles(DType::kF32, {count}, points);
    ones_ = Tensor::FromDoubles(DType::kF32, {count},
                                std::vector<double>(count, 1.0));
  }

  // By differences over the reals.
  absl::StatusOr<std::vector<Slope>> Slopes() {
    CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                            ExpandOverReals(function_, *rules_));
    // f at x - h, x, x + h.
    std::vector<RealTensor> values;
    for (int side : {-1, 0, 1}) {
      RealTensor at = RealTensor::FromTensor(x_, kBits);
      for (Real& real : at.reals) {
        Real step = real;
        mpfr_mul_2si(step.get(), step.get(), kRelativeStep, MPFR_RNDN);
        mpfr_mul_si(step.get(), step.get(), side, MPFR_RNDN);
        mpfr_add(real.get(), real.get(), step.get(), MPFR_RNDN);
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<RealTensor> result,
                              InterpretReal(primitives, {at}, kBits));
      values.push_back(result[0]);
    }
    std::vector<Slope> slopes;
    for (int64_t i = 0; i < x_.size(); ++i) {
      Real slope(kBits);
      Real curve(kBits);
      Real step(x_.GetDouble(i), kBits);
      mpfr_mul_2si(step.get(), step.get(), kRelativeStep, MPFR_RNDN);
      mpfr_sub(slope.get(), values[2].reals[i].get(), values[0].reals[i].get(),
               MPFR_RNDN);
      mpfr_add(curve.get(), values[2].reals[i].get(), values[0].reals[i].get(),
               MPFR_RNDN);
      mpfr_sub(curve.get(), curve.get(), values[1].reals[i].get(), MPFR_RNDN);
      mpfr_sub(curve.get(), curve.get(), values[1].reals[i].get(), MPFR_RNDN);
      mpfr_div(slope.get(), slope.get(), step.get(), MPFR_RNDN);
      mpfr_div_ui(slope.get(), slope.get(), 2, MPFR_RNDN);
      if (mpfr_zero_p(slope.get())) {
        slopes.push_back({slope, 0});
        continue;
      }
      mpfr_div(curve.get(), curve.get(), step.get(), MPFR_RNDN);
      // x f'' / f' = (curve / h) x / f', x / h = 2^80.
      mpfr_div(curve.get(), curve.get(), slope.get(), MPFR_RNDN);
      mpfr_mul_2si(curve.get(), curve.get(), -kRelativeStep, MPFR_RNDN);
      slopes.push_back({slope, std::fabs(curve.ToDouble())});
    }
    return slopes;
  }

  // The last output at the points, along 1.
  absl::StatusOr<Tensor> AlongOnes(const Graph& graph) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph primitives, Expand(graph, *rules_));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                            Interpret(primitives, {x_, ones_}));
    return results.back();
  }

  std::shared_ptr<const RuleSet> rules_;
  Graph function_;
  Tensor x_;
  Tensor ones_;
};

// Within 4 ulp, or what an exception says, and 2 more per condition number |x
// f''(x) / f'(x)|: a relative rounding of x changes f'(x) by so many.
TEST_P(DerivativeAccuracyTest, WithinBounds) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Slope> slopes, Slopes());
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(function_, {true}, *rules_));
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(function_, {true}, *rules_));
  for (const auto& [mode, graph] :
       {std::pair("jvp", &jvp.graph), std::pair("vjp", &vjp.graph)}) {
    ASSERT_OK_AND_ASSIGN(const Tensor got, AlongOnes(*graph));
    double worst = 0;
    double worst_at = 0;
    for (int64_t i = 0; i < x_.size(); ++i) {
      const double expected = slopes[i].value.ToDouble();
      if (std::fabs(expected) > std::numeric_limits<float>::max()) continue;
      const double error = std::fabs(got.GetDouble(i) - expected);
      const double bound = BoundOf(GetParam()) + 2 * slopes[i].condition;
      const double ulps = error / UlpOf(expected);
      EXPECT_LE(ulps, bound) << mode << " at " << x_.GetDouble(i) << ": "
                             << got.GetDouble(i) << ", not " << expected;
      if (ulps / bound > worst) {
        worst = ulps / bound;
        worst_at = x_.GetDouble(i);
      }
    }
    RecordProperty(absl::StrCat(mode, "_worst_share_of_bound"),
                   std::to_string(worst));
    RecordProperty(absl::StrCat(mode, "_worst_at"), std::to_string(worst_at));
  }
}

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kBelowOne = 0.9999999F;

constexpr Function kFunctions[] = {
    // Primitives.
    {"abs", -kMax, kMax},
    {"exp", -104, 88},
    {"expm1", -104, 88},
    {"log", kTiny, kMax},
    {"log1p", -kBelowOne, kMax},
    {"sqrt", kTiny, kMax},
    {"rsqrt", kTiny, kMax},
    {"cbrt", -kMax, kMax},
    {"sin", -1000, 1000},
    {"cos", -1000, 1000},
    {"tan", -1000, 1000},
    {"asin", -kBelowOne, kBelowOne},
    {"acos", -kBelowOne, kBelowOne},
    {"atan", -kMax, kMax},
    {"sinh", -88, 88},
    {"cosh", -88, 88},
    {"tanh", -51, 51},
    {"asinh", -kMax, kMax},
    {"acosh", 1.0000001F, kMax},
    {"atanh", -kBelowOne, kBelowOne},
    {"sigmoid", -103, 103},
    {"erf", -10, 10},
    {"erfc", -10, 10},
    {"erfinv", -kBelowOne, kBelowOne},
    {"lgamma", kTiny, 1e30F},
    // Ops.
    {"relu", -kMax, kMax},
    {"relu6", -kMax, kMax},
    {"leaky_relu", -kMax, kMax},
    {"elu", -103, kMax},
    {"celu", -206, kMax, ", alpha: 2"},
    {"selu", -103, kMax},
    {"gelu", -13, kMax},
    {"gelu", -9, kMax, ", approximate: tanh"},
    {"silu", -103, kMax},
    {"softplus", -103, kMax},
    {"log_sigmoid", -kMax, 103},
    {"mish", -103, kMax},
    {"hardsigmoid", -kMax, kMax},
    {"hardswish", -kMax, kMax},
    {"hardtanh", -kMax, kMax},
    {"logit", kTiny, kBelowOne},
    {"softshrink", -kMax, kMax},
    {"softsign", -kMax, kMax},
    {"frac", -1000, 1000},
    {"sinc", -1000, 1000},
    {"sqrt_at_zero", kTiny, kMax},
};

INSTANTIATE_TEST_SUITE_P(All, DerivativeAccuracyTest,
                         ::testing::ValuesIn(kFunctions),
                         [](const ::testing::TestParamInfo<Function>& info) {
                           std::string name = info.param.op;
                           for (char c : std::string(info.param.attributes)) {
                             name += std::isalnum(c) ? c : '_';
                           }
                           return name;
                         });

TEST(DerivativeAccuracy, ExceptionsAreOfFunctionsAndHaveReasons) {
  for (const Exception& exception : kExceptions) {
    EXPECT_STRNE(exception.why, "");
    EXPECT_TRUE(std::any_of(
        std::begin(kFunctions), std::end(kFunctions),
        [&](const Function& function) { return IsOf(exception, function); }))
        << exception.op << exception.attributes;
  }
}

}  // namespace
}  // namespace cleave
