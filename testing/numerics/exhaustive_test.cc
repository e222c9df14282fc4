// The shipped numerics of one operand at every f32, and those of two at very
// many pairs, as compiled kernels: each is as near as it claims.
//
// It prints a line per function: the bound, the largest error, and where.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/codegen/numerics.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/tensor.h"
#include "testing/numerics/numeric_error.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr int64_t kBlock = 16384;
constexpr int kThreads = 2;
constexpr uint64_t kPairs = uint64_t{1} << 29;
// The reference is off by less, in ULP of f32.
constexpr double kReferenceError = 1e-5;

const RuleSet& Rules() {
  static const auto* rules = [] {
    const auto sources = ReadRuleFiles({"rules"});
    CLEAVE_CHECK(sources.ok()) << sources.status();
    LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
    CLEAVE_CHECK(loaded.rules != nullptr) << loaded.diagnostics[0];
    return new std::shared_ptr<const RuleSet>(std::move(loaded.rules));
  }();
  return **rules;
}

// Newton's method on erf, or on log(erfc) near 1, from Winitzki's
// approximation.
double Erfinv(double x) {
  const double a = std::abs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(HUGE_VAL, x) : std::nan("");
  if (a == 0) return x;
  constexpr double kHalfRootPi = 0.88622692545275801;
  const double l = std::log1p(-a * a);
  const double t = 4.3307467508 + l / 2;
  double y = std::sqrt(std::sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 4; ++i) {
    const double slope = kHalfRootPi * std::exp(y * y);
    y += a <= 0.5
             ? (a - std::erf(y)) * slope
             : (std::log(std::erfc(y)) - std::log1p(-a)) * slope * std::erfc(y);
  }
  return std::copysign(y, x);
}

// In f64, within a few ULP of that.
double Reference(Primitive primitive, double x, double y) {
  switch (primitive) {
    case Primitive::kExp:
      return std::exp(x);
    case Primitive::kExpm1:
      return std::expm1(x);
    case Primitive::kLog:
      return std::log(x);
    case Primitive::kLog1p:
      return std::log1p(x);
    case Primitive::kTanh:
      return std::tanh(x);
    case Primitive::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Primitive::kErf:
      return std::erf(x);
    case Primitive::kErfc:
      return std::erfc(x);
    case Primitive::kSin:
      return std::sin(x);
    case Primitive::kCos:
      return std::cos(x);
    case Primitive::kAsin:
      return std::asin(x);
    case Primitive::kAcos:
      return std::acos(x);
    case Primitive::kAtan:
      return std::atan(x);
    case Primitive::kAtan2:
      return std::atan2(x, y);
    case Primitive::kRsqrt:
      return 1 / std::sqrt(x);
    case Primitive::kErfinv:
      return Erfinv(x);
    case Primitive::kLgamma:
      return std::lgamma(x);
    case Primitive::kPow:
      return std::pow(x, y);
    default:
      CLEAVE_CHECK(false) << "no reference for " << PrimitiveName(primitive);
      return 0;
  }
}

// The error in ULP where both are finite, far from over- and underflow, and
// not 0; NaN elsewhere.
double OrdinaryError(double expected, float got) {
  const double magnitude = std::abs(expected);
  if (!(magnitude > 0x1p-126 && magnitude < 0x1.ffffffp127 &&
        std::isfinite(got))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  uint64_t bits;
  std::memcpy(&bits, &expected, sizeof bits);
  // 2^(23 - exponent).
  bits =
      ((uint64_t{1023 + 23 + 1023}) << 52) - (bits & (uint64_t{0x7ff} << 52));
  double scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return std::abs(got - expected) * scale;
}

class Sweep {
 public:
  Sweep(Primitive primitive, double bound, const Kernel& kernel)
      : primitive_(primitive), bound_(bound), kernel_(kernel) {}

  // Blocks are numbered; `fill` makes the operands of one.
  template <typename Fill>
  NumericError Run(uint64_t blocks, Fill fill) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const int operands = OperandCount(primitive_);
        std::vector<Tensor> x;
        for (int i = 0; i < operands; ++i) {
          x.emplace_back(DType::kF32, std::vector<int64_t>{kBlock});
        }
        Tensor y(DType::kF32, {kBlock});
        while (true) {
          const uint64_t block = next_++;
          if (block >= blocks) break;
          fill(block, x);
          RunBlock(x, y);
          if (block % (blocks / 8) == 0) {
            std::cerr << absl::StreamFormat(
                "%s: %d%%\n", PrimitiveName(primitive_), 100 * block / blocks);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return worst_;
  }

 private:
  void RunBlock(const std::vector<Tensor>& x, Tensor& y) {
    std::vector<TensorView> inputs;
    for (const Tensor& operand : x) inputs.push_back(ViewOf(operand));
    const MutableTensorView output{
        y.mutable_data(), DType::kF32, {kBlock}, {1}};
    const absl::Status status = kernel_.RunInto(inputs, {output});
    CLEAVE_CHECK(status.ok()) << status;
    const auto* a = reinterpret_cast<const float*>(x[0].data());
    const auto* b = reinterpret_cast<const float*>(x.back().data());
    const auto* got = reinterpret_cast<const float*>(y.data());
    double worst = 0;
    int64_t worst_at = 0;
    std::vector<int64_t> close;
    for (int64_t i = 0; i < kBlock; ++i) {
      const double error =
          OrdinaryError(Reference(primitive_, a[i], b[i]), got[i]);
      // MPFR decides the points that the reference cannot.
      if (!(error < bound_ - kReferenceError)) {
        close.push_back(i);
      } else if (error > worst) {
        worst = error;
        worst_at = i;
      }
    }
    // Most values of some functions are 0, 1, infinite or NaN: MPFR sees those
    // that a comparison of f32 does not settle.
    std::vector<int64_t> to_measure = {worst_at};
    for (const int64_t i : close) {
      const double expected = Reference(primitive_, a[i], b[i]);
      if (std::isnan(expected) && std::isnan(got[i])) continue;
      const bool exact =
          expected == got[i] && std::signbit(expected) == std::signbit(got[i]);
      if (exact && (expected == 0 || std::isinf(expected))) continue;
      // Well beyond half of the least denormal and the largest float there is
      // no doubt about the rounding either.
      if (std::abs(expected) < 0x1p-151 && got[i] == 0 &&
          std::signbit(expected) == std::signbit(got[i])) {
        continue;
      }
      if (std::abs(expected) > 0x1.0001p128 && std::isinf(got[i]) &&
          std::signbit(expected) == std::signbit(got[i])) {
        continue;
      }
      to_measure.push_back(i);
    }
    Measure(x, y, to_measure, worst);
  }

  void Measure(const std::vector<Tensor>& x, const Tensor& y,
               const std::vector<int64_t>& places, double worst) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (places.size() == 1 && worst <= worst_.ulp) return;
    const auto pick = [&](const Tensor& from) {
      std::vector<double> values;
      for (const int64_t i : places) values.push_back(from.GetDouble(i));
      return Tensor::FromDoubles(DType::kF32,
                                 {static_cast<int64_t>(values.size())}, values);
    };
    std::vector<Tensor> operands;
    for (const Tensor& operand : x) operands.push_back(pick(operand));
    const absl::Status status =
        MeasureError(primitive_, operands, pick(y), &worst_);
    CLEAVE_CHECK(status.ok()) << status;
  }

  const Primitive primitive_;
  const double bound_;
  const Kernel& kernel_;
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  NumericError worst_;
};

void FillBits(uint64_t block, std::vector<Tensor>& x) {
  auto* bits = reinterpret_cast<uint32_t*>(x[0].mutable_data());
  for (int64_t i = 0; i < kBlock; ++i) {
    bits[i] = static_cast<uint32_t>(block * kBlock + i);
  }
}

// Any bits; results all over the range; bases near 1; small integer and half
// exponents.
void FillPairs(uint64_t block, std::vector<Tensor>& operands) {
  std::mt19937_64 random(block);
  auto* x = reinterpret_cast<float*>(operands[0].mutable_data());
  auto* y = reinterpret_cast<float*>(operands[1].mutable_data());
  std::uniform_real_distribution<float> exponent(-152, 130);
  for (int64_t i = 0; i < kBlock; ++i) {
    const uint64_t bits = random();
    const auto low = static_cast<uint32_t>(bits);
    const auto high = static_cast<uint32_t>(bits >> 32);
    const uint32_t positive = high & 0x7fffffff;
    switch (block % 4) {
      case 0:
        std::memcpy(x + i, &high, sizeof high);
        std::memcpy(y + i, &low, sizeof low);
        break;
      case 1:
        std::memcpy(x + i, &positive, sizeof positive);
        y[i] = exponent(random) / std::log2(x[i]);
        break;
      case 2:
        x[i] = 1 + std::ldexp(static_cast<float>(static_cast<int32_t>(high)),
                              -33 - static_cast<int>(low % 16));
        y[i] = exponent(random) / std::log2(x[i]);
        break;
      default:
        x[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(high)), -28);
        y[i] = static_cast<float>(static_cast<int>(low % 41) - 20) / 2;
    }
  }
}

// Each primitive once, that has a numeric of several dtypes, too. There is no
// other reference of `polygamma` than MPFR, which takes hours: it is sampled.
std::set<std::string> NumericNames() {
  const std::vector<std::string> all = Rules().Names(ItemKind::kNumeric);
  std::set<std::string> names(all.begin(), all.end());
  names.erase("polygamma");
  return names;
}

class ExhaustiveNumerics : public testing::TestWithParam<std::string> {};

TEST_P(ExhaustiveNumerics, HoldTheirBounds) {
  const Primitive primitive = *FindPrimitive(GetParam());
  ASSERT_OK_AND_ASSIGN(const NumericBody* numeric,
                       Rules().Numeric(primitive, DType::kF32));
  GraphBuilder builder(Rules().context());
  std::vector<Value> operands;
  for (int i = 0; i < OperandCount(primitive); ++i) {
    operands.push_back(builder.Input(std::string(1, static_cast<char>('x' + i)),
                                     {DType::kF32, {Dim::Variable("n")}}));
  }
  const Value y = builder.Apply(primitive, operands);
  const Graph graph = *std::move(builder).Build({{"y", y}});
  ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(graph, Rules()));
  ASSERT_EQ(kernel.reference_groups(), 0);
  Sweep sweep(primitive, numeric->ulp, kernel);
  const NumericError worst =
      operands.size() == 1 ? sweep.Run((uint64_t{1} << 32) / kBlock, FillBits)
                           : sweep.Run(kPairs / kBlock, FillPairs);
  std::cout << absl::StreamFormat("%-8s within %g ulp: %s\n", GetParam(),
                                  numeric->ulp, worst.ToString());
  EXPECT_LE(worst.ulp, numeric->ulp) << worst.ToString();
  EXPECT_GE(worst.ulp, numeric->ulp - 1)
      << "the claim is too loose: " << worst.ToString();
}

INSTANTIATE_TEST_SUITE_P(All, ExhaustiveNumerics,
                         testing::ValuesIn(NumericNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cleave
