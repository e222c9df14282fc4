// The shipped numerics, sampled: each is as near as it claims, and hardly
// nearer; right at special values; by way of f32, too, for f16 and bf16.

#include "engine/codegen/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/tensor.h"
#include "testing/check/samples/float_points.h"
#include "testing/numerics/numeric_call.h"
#include "testing/numerics/numeric_error.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

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

Tensor Vector(DType dtype, const std::vector<double>& values) {
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(values.size())},
                             values);
}

// Where the numerics change their ways, results over- or underflow, and the
// largest errors over all f32 were found.
std::vector<double> Boundaries() {
  const double ln2 = std::log(2.0);
  const double pi = std::acos(-1.0);
  std::vector<double> values = {
      4096, 88.72283935546875, 89, 103.97207641601562, 104, 104.5,
      87.336547851562, 17.328, 0.55, 1, 10, 3.9192059040069, 4, 10.05446243286,
      10.2, 1e-7, 2.0 / 3, 4.0 / 3, std::sqrt(0.5), 0x1p-126, 0x1p-149,
      // Zeros of digamma and lgamma.
      1.4616321449683623, -0.5040830082644554, -1.573498473162391,
      -2.457024738220800, -2.747682646727412, -3.143580888349980};
  for (double k = 0.5; k < 152; k += 7) values.push_back(k * ln2);
  for (double k = 1; k < 60; ++k) values.push_back(k * pi / 4);
  for (int e = -126; e < 128; ++e) values.push_back(std::ldexp(1, e));
  // The f32 nearest to a multiple of pi / 2 for its size.
  values.push_back(0x1.47d0fep34);
  // exp, expm1, log, log1p, tanh, sigmoid, erf, erfc, sin, cos, rsqrt, asin,
  // acos, atan.
  for (const double worst :
       {-0x1.765026p+2, 0x1.907d84p-2, 0x1.4574e2p-1, 0x1.569876p-2,
        0x1.c3e30ep-3, -0x1.69c008p-12, 0x1.ff23a4p-1, 0x1.6d96p-9,
        0x1.aca316p+67, 0x1.7b9146p+37, 0x1.019566p-126, 0x1.fd51ccp-10,
        0x1.f2ce54p-1, 0x1.f8378ep-9}) {
    values.push_back(worst);
  }
  return values;
}

std::vector<double> Points(int64_t count) {
  std::mt19937_64 random(7);
  std::vector<double> points = SpecialValues(DType::kF32);
  for (const double v : GuardValues(Boundaries(), DType::kF32)) {
    points.push_back(v);
  }
  for (const double v : UlpUniformGrid(DType::kF32, count, random)) {
    points.push_back(v);
  }
  // Where most functions are neither 0, 1 nor their argument.
  std::uniform_real_distribution<double> middle(-12, 12);
  for (int64_t i = 0; i < count; ++i) {
    points.push_back(RoundToDType(middle(random), DType::kF32));
  }
  return points;
}

// The primitives that have a numeric of the dtype.
std::set<std::string> NumericNames(DType dtype) {
  std::set<std::string> names;
  for (const std::string& name : Rules().Names(ItemKind::kNumeric)) {
    const auto numeric = Rules().Numeric(*FindPrimitive(name), dtype);
    CLEAVE_CHECK(numeric.ok()) << numeric.status();
    if (*numeric != nullptr) names.insert(name);
  }
  return names;
}

std::vector<Tensor> OneOperand() {
  return {Vector(DType::kF32, Points(10000))};
}

std::vector<Tensor> TwoOperands() {
  // All pairs of special values, and pairs whose power is in range.
  std::vector<double> x, y;
  std::vector<double> specials = SpecialValues(DType::kF32);
  for (const double v : {5.0, 7.5, 0x1.fffffep23, 0x1p24, 0x1p127}) {
    specials.push_back(v);
    specials.push_back(-v);
  }
  for (const double a : specials) {
    for (const double b : specials) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  x.push_back(0x1.ffe032p-1);
  y.push_back(0x1.60cf44p+18);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-152, 130);
  for (const double a : UlpUniformGrid(DType::kF32, 8000, random)) {
    if (std::isnan(a) || a == 0 || std::abs(a) == 1) continue;
    x.push_back(std::abs(a));
    y.push_back(
        RoundToDType(exponent(random) / std::log2(std::abs(a)), DType::kF32));
  }
  return {Vector(DType::kF32, x), Vector(DType::kF32, y)};
}

// All operands of the call's primitive.
std::vector<Tensor> Operands(const NumericCall& call,
                             const std::vector<Tensor>& inputs) {
  std::vector<Tensor> operands;
  for (const double number : call.numbers) {
    operands.push_back(Vector(inputs[0].dtype(),
                              std::vector<double>(inputs[0].size(), number)));
  }
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return operands;
}

class ShippedNumerics : public testing::TestWithParam<std::string> {};

TEST_P(ShippedNumerics, HoldItsBound) {
  const Primitive primitive = *FindPrimitive(GetParam());
  ASSERT_OK_AND_ASSIGN(const NumericBody* numeric,
                       Rules().Numeric(primitive, DType::kF32));
  ASSERT_NE(numeric, nullptr);
  NumericError worst;
  for (const NumericCall& call :
       NumericCalls(primitive, DType::kF32, Rules().context())) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, ApplyNumerics(call.graph, Rules()));
    const std::vector<Tensor> inputs =
        call.graph.inputs().size() == 1 ? OneOperand() : TwoOperands();
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                         Interpret(graph, inputs));
    ASSERT_OK(
        MeasureError(primitive, Operands(call, inputs), results[0], &worst));
  }
  EXPECT_LE(worst.ulp, numeric->ulp) << worst.ToString();
  EXPECT_GE(worst.ulp, numeric->ulp - 1)
      << "the claim is too loose: " << worst.ToString();
  std::cout << "  " << GetParam() << ": within " << numeric->ulp << ", "
            << worst.ToString() << "\n";
}

// At most the neighbour of the value that is nearest.
TEST_P(ShippedNumerics, NarrowFloats) {
  const Primitive primitive = *FindPrimitive(GetParam());
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const NumericCall& call :
         NumericCalls(primitive, dtype, Rules().context())) {
      std::vector<Tensor> operands = {Vector(dtype, AllValues(dtype))};
      if (call.graph.inputs().size() == 2) {
        operands.push_back(
            Vector(dtype, std::vector<double>(operands[0].size(), 1.75)));
      }
      ASSERT_OK_AND_ASSIGN(const Graph graph,
                           ApplyNumerics(call.graph, Rules()));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                           Interpret(graph, operands));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                           Interpret(call.graph, operands));
      for (int64_t i = 0; i < operands[0].size(); ++i) {
        const double got = results[0].GetDouble(i);
        const double want = expected[0].GetDouble(i);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << operands[0].GetDouble(i);
          continue;
        }
        ASSERT_EQ(std::signbit(got), std::signbit(want))
            << operands[0].GetDouble(i);
        ASSERT_LE(std::abs(Ordinal(got, dtype) - Ordinal(want, dtype)), 1)
            << DTypeName(dtype) << " at " << operands[0].GetDouble(i) << ": "
            << got << ", not " << want;
      }
    }
  }
}

// Numerics that there are of f64, too.
class NumericsOfF64 : public testing::TestWithParam<std::string> {};

TEST_P(NumericsOfF64, HoldTheirBound) {
  const Primitive primitive = *FindPrimitive(GetParam());
  ASSERT_OK_AND_ASSIGN(const NumericBody* numeric,
                       Rules().Numeric(primitive, DType::kF64));
  ASSERT_NE(numeric, nullptr);
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ApplyNumerics(
          NumericCalls(primitive, DType::kF64, Rules().context())[0].graph,
          Rules()));
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> middle(-1, 1);
  std::vector<double> points = SpecialValues(DType::kF64);
  for (const double v : GuardValues(
           {0x1p-54, 0.3, 0.7071067811865476, 0.85, 1, 1 - 2e-11,
            1.4142135623730951, 6, 20, 26.5, 27.2, 37, 40, 0x1p-1022, 0x1p-1074,
            708.396418532264, 709.782712893384, 710, 745.1332191019412, 746,
            // Where sines take x modulo pi / 2 by
            // other means, and of all numbers the one
            // that is nearest to a multiple.
            0x1p20, 0x1.6ac5b262ca1ffp849},
           DType::kF64)) {
    points.push_back(v);
    points.push_back(-v);
  }
  // Anywhere, in the middle, ever nearer to 1, where tanh has values of its
  // own, and where exp has.
  for (const double v : UlpUniformGrid(DType::kF64, 4000, random)) {
    points.push_back(v);
  }
  for (int i = 0; i < 2000; ++i) {
    points.push_back(middle(random));
    points.push_back(1 - std::ldexp(1 + middle(random) / 2, -i % 53));
    points.push_back(1 + std::ldexp(1 + middle(random) / 2, -i % 53));
    points.push_back(3 * middle(random));
    points.push_back(20 * middle(random));
    points.push_back(28 * middle(random));
    points.push_back(746 * middle(random));
  }
  for (int i = 1; i < 3000; ++i) {
    points.push_back(i * 1.5707963267948966);
    points.push_back(i * 1e5 * 1.5707963267948966);
  }
  std::vector<Tensor> inputs = {Vector(DType::kF64, points)};
  if (graph.inputs().size() == 2) {
    std::shuffle(points.begin(), points.end(), random);
    inputs.push_back(Vector(DType::kF64, points));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(graph, inputs));
  NumericError worst;
  ASSERT_OK(MeasureError(primitive, inputs, results[0], &worst));
  std::cout << "  " << GetParam() << " of f64: within " << numeric->ulp << ", "
            << worst.ToString() << "\n";
  EXPECT_LE(worst.ulp, numeric->ulp) << worst.ToString();
  EXPECT_GE(worst.ulp, numeric->ulp / 2)
      << "the claim is too loose: " << worst.ToString();
}

INSTANTIATE_TEST_SUITE_P(All, NumericsOfF64,
                         testing::ValuesIn(NumericNames(DType::kF64)),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(All, ShippedNumerics,
                         testing::ValuesIn(NumericNames(DType::kF32)),
                         [](const auto& info) { return info.param; });

// The primitives that the rules promise as vector arithmetic.
TEST(ShippedNumericsList, HasTheCommonFunctions) {
  for (const char* name :
       {"exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "erfc",
        "erfinv", "sin", "cos", "asin", "acos", "atan", "atan2", "pow", "rsqrt",
        "lgamma", "polygamma"}) {
    ASSERT_OK_AND_ASSIGN(const NumericBody* numeric,
                         Rules().Numeric(*FindPrimitive(name), DType::kF32));
    EXPECT_NE(numeric, nullptr) << name;
  }
}

}  // namespace
}  // namespace cleave
