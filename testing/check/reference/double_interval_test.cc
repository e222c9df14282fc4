// Intervals enclose what 256 bits give.

#include "testing/check/reference/double_interval.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/real.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Special values, and f32 of all magnitudes.
std::vector<double> Points() {
  std::vector<double> points = {0.0, -0.0, kInfinity, -kInfinity, NAN};
  for (const double x : {1e-45, 1e-38, 1e-20, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0,
                         20.0, 88.5, 709.5, 800.0, 1e10, 3e38}) {
    points.push_back(static_cast<float>(x));
    points.push_back(-static_cast<float>(x));
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (int i = 0; i < 400; ++i) {
    const float x = static_cast<float>(std::exp2(exponent(random)));
    points.push_back(i % 2 == 0 ? x : -x);
  }
  return points;
}

absl::StatusOr<Graph> Unary(const std::string& primitive,
                            const std::string& operands) {
  return ParseGraph(
      absl::StrCat("graph (%x: f64[n], %y: f64[n]) -> (z: f64[n]) {\n",
                   "  %1: f64[n] = ", primitive, "(", operands,
                   ")\n  return z = %1\n}\n"),
      std::make_shared<Context>());
}

// How many of the points the intervals decide. Numbers are up to `largest`.
int CheckEnclosed(const Graph& graph, const std::string& what,
                  double largest = kInfinity) {
  std::vector<double> points;
  for (const double point : Points()) {
    if (std::isfinite(point) && std::abs(point) > largest) continue;
    points.push_back(point);
  }
  std::vector<double> xs;
  std::vector<double> ys;
  for (size_t i = 0; i < points.size(); ++i) {
    xs.push_back(points[i]);
    ys.push_back(points[(7 * i + i / points.size()) % points.size()]);
  }
  for (const double x : {0.0, -0.0, kInfinity, -kInfinity, 2.0, -1.5}) {
    for (const double y : {0.0, -0.0, kInfinity, -kInfinity, 2.0, 3.0, -1.5}) {
      xs.push_back(x);
      ys.push_back(y);
    }
  }
  const auto size = static_cast<int64_t>(xs.size());
  constexpr int kBits = 400;
  const std::vector<Tensor> inputs = {
      Tensor::FromDoubles(DType::kF64, {size}, xs),
      Tensor::FromDoubles(DType::kF64, {size}, ys)};
  std::vector<RealTensor> reals;
  std::vector<std::vector<DoubleInterval>> intervals;
  for (const Tensor& input : inputs) {
    reals.push_back(RealTensor::FromTensor(input, kBits));
    intervals.emplace_back();
    for (int64_t i = 0; i < size; ++i) {
      intervals.back().push_back(DoubleInterval::Of(input.GetDouble(i)));
    }
  }
  const auto expected = InterpretReal(graph, reals, kBits);
  EXPECT_OK(expected);
  const auto made = DoubleIntervalGraph::Make(graph);
  EXPECT_OK(made);
  if (!expected.ok() || !made.ok()) return 0;
  const std::vector<DoubleInterval> got = made->Evaluate(intervals)[0];
  int decided = 0;
  for (int64_t i = 0; i < size; ++i) {
    const Real& want = (*expected)[0].reals[i];
    const std::string at =
        absl::StrCat(what, " at ", xs[i], ", ", ys[i], ": [", got[i].low, ", ",
                     got[i].high, "], expected ", want.ToString(20));
    if (got[i].state == DoubleInterval::State::kUnknown) continue;
    ++decided;
    if (got[i].state == DoubleInterval::State::kNan) {
      EXPECT_TRUE(mpfr_nan_p(want.get())) << at;
      continue;
    }
    EXPECT_FALSE(mpfr_nan_p(want.get())) << at;
    EXPECT_GE(mpfr_cmp_d(want.get(), got[i].low), 0) << at;
    EXPECT_LE(mpfr_cmp_d(want.get(), got[i].high), 0) << at;
    // Only an infinity is the infinity.
    if (got[i].IsPoint() && std::isinf(got[i].low)) {
      EXPECT_TRUE(mpfr_inf_p(want.get())) << at;
    }
    // MPFR's exponents end, too.
    if (mpfr_inf_p(want.get())) {
      EXPECT_TRUE(std::isinf(got[i].low) || std::isinf(got[i].high)) << at;
    }
    // A zero has its sign, by which 1 / x is told.
    if (got[i].IsPoint() && got[i].low == 0) {
      EXPECT_EQ(std::signbit(got[i].low), mpfr_signbit(want.get()) != 0) << at;
    }
  }
  return decided;
}

TEST(DoubleInterval, EnclosesEachFunction) {
  for (const char* name :
       {"abs",   "neg",     "sign", "ceil",  "floor", "round_nearest_even",
        "exp",   "expm1",   "log",  "log1p", "sqrt",  "rsqrt",
        "cbrt",  "sin",     "cos",  "tan",   "asin",  "acos",
        "atan",  "sinh",    "cosh", "tanh",  "asinh", "acosh",
        "atanh", "sigmoid", "erf",  "erfc",  "nograd"}) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Unary(name, "%x"));
    EXPECT_GT(CheckEnclosed(graph, name), 440) << name;
  }
  for (const char* name :
       {"add", "sub", "mul", "div", "pow", "atan2", "copysign"}) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Unary(name, "%x, %y"));
    EXPECT_GT(CheckEnclosed(graph, name), 440) << name;
  }
}

// The outer functions take values that are known to lie in intervals only.
TEST(DoubleInterval, EnclosesFunctionsOfFunctions) {
  const auto context = std::make_shared<Context>();
  int decided = 0;
  for (const char* outer :
       {"abs",     "sign",  "floor", "exp",   "expm1", "log",   "log1p",
        "sqrt",    "rsqrt", "cbrt",  "sin",   "cos",   "asin",  "acos",
        "atan",    "sinh",  "cosh",  "tanh",  "asinh", "acosh", "atanh",
        "sigmoid", "erf",   "erfc",  "isnan", "isinf"}) {
    const bool is_bool = absl::string_view(outer).substr(0, 2) == "is";
    for (const char* inner : {"exp", "log", "sin", "erfc", "cbrt"}) {
      const std::string text = absl::StrCat(
          "graph (%x: f64[n], %y: f64[n]) -> (z: f64[n]) {\n",
          "  %1: f64[n] = ", inner, "(%x)\n  %2: ", is_bool ? "bool" : "f64",
          "[n] = ", outer, "(%1)\n",
          is_bool ? "  %3: f64[n] = select(%2, %x, %y)\n"
                  : "  %3: f64[n] = mul(%2, %1)\n",
          "  %4: f64[n] = div(%3, %1)\n  %5: f64[n] = add(%4, %y)\n",
          "  %6: f64[n] = pow(%5, %y)\n  %7: bool[n] = lt(%5, %1)\n",
          "  %8: f64[n] = select(%7, %5, %6)\n  return z = %8\n}\n");
      ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(text, context));
      // The exponential of an exponential leaves the exponents of MPFR beyond.
      decided += CheckEnclosed(graph, absl::StrCat(outer, " of ", inner), 20);
    }
  }
  EXPECT_GT(decided, 20000);
}

// Exponentials whose exponents no double has.
TEST(DoubleInterval, KnowsTheLogarithmOfLargeNumbers) {
  const auto context = std::make_shared<Context>();
  const auto evaluate = [&](const std::string& lines, double x) {
    const auto graph =
        ParseGraph(absl::StrCat("graph (%x: f64[n]) -> (z: f64[n]) {\n", lines,
                                "\n  return z = %9\n}\n"),
                   context);
    EXPECT_OK(graph);
    const auto made = DoubleIntervalGraph::Make(*graph);
    EXPECT_OK(made);
    return made->Evaluate({{DoubleInterval::Of(x)}})[0][0];
  };
  const auto expect = [&](const std::string& lines, double x, double z) {
    const DoubleInterval got = evaluate(lines, x);
    EXPECT_TRUE(got.IsReal());
    EXPECT_LE(got.low, z) << lines;
    EXPECT_GE(got.high, z) << lines;
    EXPECT_LE(got.high - got.low, 4e-14 * (1 + std::abs(z))) << lines;
  };
  // log(1 + exp(x)), log(exp(x) + exp(-x)), log(cosh(x)).
  const std::string one =
      "  %1: f64[] = constant(dtype: f64, value: 1.0)\n"
      "  %2: f64[n] = broadcast_in_dim(%1, axes: [], "
      "shape: [n])\n  %3: f64[n] = exp(%x)\n";
  for (const double x : {720.0, 1e4, 1e10, 1e30, 3e38}) {
    expect(one + "  %4: f64[n] = add(%2, %3)\n  %9: f64[n] = log(%4)", x, x);
    expect(one +
               "  %4: f64[n] = neg(%x)\n  %5: f64[n] = exp(%4)\n"
               "  %6: f64[n] = add(%3, %5)\n  %9: f64[n] = log(%6)",
           x, x);
    expect(one + "  %9: f64[n] = log1p(%3)", x, x);
    const DoubleInterval tiny = evaluate(one + "  %9: f64[n] = div(%2, %3)", x);
    EXPECT_GE(tiny.low, 0);
    EXPECT_LE(tiny.high, 1e-300);
    expect(one + "  %4: f64[n] = mul(%3, %x)\n  %9: f64[n] = div(%4, %3)", x,
           x);
    expect("  %1: f64[n] = cosh(%x)\n  %9: f64[n] = log(%1)", x,
           x - std::log(2));
    // Without a logarithm it is only large.
    const DoubleInterval large = evaluate("  %9: f64[n] = exp(%x)", x);
    EXPECT_EQ(large.high, kInfinity);
    EXPECT_GT(large.low, 1e300);
  }
  // 1 counts beside exp(x) here.
  expect(one + "  %4: f64[n] = sub(%3, %2)\n  %9: f64[n] = log(%4)", 1,
         std::log(std::exp(1) - 1));
}

TEST(DoubleInterval, KnowsWhatIsExact) {
  const auto context = std::make_shared<Context>();
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph("graph (%x: f64[n]) -> (z: f64[n]) {\n"
                                  "  %1: f64[n] = mul(%x, %x)\n"
                                  "  %2: f64[n] = add(%1, %x)\n"
                                  "  %3: f64[n] = sub(%2, %2)\n"
                                  "  %4: f64[n] = div(%2, %3)\n"
                                  "  return z = %4\n}\n",
                                  context));
  ASSERT_OK_AND_ASSIGN(const DoubleIntervalGraph made,
                       DoubleIntervalGraph::Make(graph));
  const DoubleInterval inf = made.Evaluate({{DoubleInterval::Of(1.25)}})[0][0];
  EXPECT_TRUE(inf.IsPoint());
  EXPECT_EQ(inf.low, kInfinity);
  EXPECT_EQ(made.Evaluate({{DoubleInterval::Of(-1)}})[0][0].state,
            DoubleInterval::State::kNan);
}

TEST(DoubleInterval, RefusesWhatItDoesNotEnclose) {
  for (const char* name : {"lgamma", "erfinv"}) {
    ASSERT_OK_AND_ASSIGN(const Graph graph, Unary(name, "%x"));
    EXPECT_THAT(DoubleIntervalGraph::Make(graph),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(name)));
    ASSERT_OK_AND_ASSIGN(const DoubleIntervalGraph made,
                         DoubleIntervalGraph::Make(graph, Gaps::kUnknown));
    EXPECT_EQ(made.Evaluate({{DoubleInterval::Of(0.5)}})[0][0].state,
              DoubleInterval::State::kUnknown);
  }
}

// A primitive that is not enclosed matters where it is chosen.
TEST(DoubleInterval, MayHaveGaps) {
  const auto context = std::make_shared<Context>();
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph("graph (%x: f64[n]) -> (z: f64[n]) {\n"
                                  "  %1: f64[n] = lgamma(%x)\n"
                                  "  %2: f64[n] = abs(%x)\n"
                                  "  %3: bool[n] = eq(%x, %2)\n"
                                  "  %4: f64[n] = select(%3, %x, %1)\n"
                                  "  return z = %4\n}\n",
                                  context));
  ASSERT_OK_AND_ASSIGN(const DoubleIntervalGraph made,
                       DoubleIntervalGraph::Make(graph, Gaps::kUnknown));
  const auto at = [&](double x) {
    return made.Evaluate({{DoubleInterval::Of(x)}})[0][0];
  };
  EXPECT_TRUE(at(2).IsPoint());
  EXPECT_EQ(at(2).low, 2);
  EXPECT_EQ(at(-2).state, DoubleInterval::State::kUnknown);
}

}  // namespace
}  // namespace cleave
