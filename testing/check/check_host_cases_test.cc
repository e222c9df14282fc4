// Kernels of many kinds of ops: the right one agrees, each wrong one is
// refuted.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/check/check_host_testing.h"

namespace cleave {
namespace {

using Results = absl::StatusOr<std::vector<Tensor>>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double RealAttribute(const HostCall& call, absl::string_view name) {
  return call.attributes.Get(name).AsReal().ToDouble();
}

struct Kernel {
  std::string name;
  HostFunction function;
};

// An op, a kernel that is right, and some that are wrong.
struct Case {
  std::string name;
  std::string rules;
  HostFunction right;
  std::vector<Kernel> wrong;
};

std::vector<double> Softmax(const std::vector<double>& x, DType dtype,
                            bool shifted) {
  const auto round = [&](double v) { return RoundToDType(v, dtype); };
  double max = shifted ? -kInfinity : 0;
  for (double v : x) {
    if (shifted) max = std::isnan(v) ? v : std::max(max, v);
  }
  std::vector<double> y;
  double sum = 0;
  for (double v : x) {
    y.push_back(round(std::exp(round(v - max))));
    sum = round(sum + y.back());
  }
  for (double& v : y) v = round(v / sum);
  return y;
}

// `constant` is that of x * sigmoid(1.702 x).
HostFunction QuickGelu(double constant) {
  return Pointwise([=](const std::vector<double>& x, const HostCall&) {
    const double e = std::exp(-constant * std::abs(x[0]));
    return x[0] / (1 + e) * (x[0] < 0 ? e : 1);
  });
}

HostFunction Softplus(bool with_beta, bool with_nan) {
  return Pointwise([=](const std::vector<double>& x, const HostCall& call) {
    const double beta = with_beta ? RealAttribute(call, "beta") : 1;
    if (std::isnan(x[0]) && !with_nan) return 0.0;
    return (std::max(beta * x[0], 0.0) +
            std::log1p(std::exp(-std::abs(beta * x[0])))) /
               beta +
           (std::isnan(x[0]) ? kNaN : 0);
  });
}

HostFunction LayerNorm(bool eps_inside, bool corrected) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    const int64_t n = x.shape()[1];
    const double eps = RealAttribute(call, "eps");
    Tensor y(x.dtype(), x.shape());
    for (int64_t i = 0; i < x.shape()[0]; ++i) {
      double mean = 0;
      for (int64_t j = 0; j < n; ++j) mean += x.GetDouble(i * n + j) / n;
      double variance = 0;
      for (int64_t j = 0; j < n; ++j) {
        variance += std::pow(x.GetDouble(i * n + j) - mean, 2) /
                    static_cast<double>(corrected ? n - 1 : n);
      }
      const double deviation =
          eps_inside ? std::sqrt(variance + eps) : std::sqrt(variance) + eps;
      for (int64_t j = 0; j < n; ++j) {
        y.SetDouble(i * n + j, (x.GetDouble(i * n + j) - mean) / deviation *
                                       call.inputs[1].GetDouble(j) +
                                   call.inputs[2].GetDouble(j));
      }
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction Gather(int64_t offset) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    const Tensor& k = call.inputs[1];
    Tensor y(x.dtype(), k.shape());
    for (int64_t i = 0; i < k.size(); ++i) {
      const int64_t at = std::min(k.GetInt(i) + offset, x.size() - 1);
      if (IsFloat(x.dtype())) {
        y.SetDouble(i, x.GetDouble(at));
      } else {
        y.SetInt(i, x.GetInt(at));
      }
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction FloorMod(bool floors) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    Tensor y(x.dtype(), x.shape());
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t value = x.GetInt(i);
      int64_t r = value % 7;
      if (x.dtype() == DType::kU64) {
        r = static_cast<int64_t>(static_cast<uint64_t>(value) % 7);
      } else if (floors && r < 0) {
        r += 7;
      }
      y.SetInt(i, r);
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction MinMax(bool swapped, bool keeps_nan) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    double low = kInfinity;
    double high = -kInfinity;
    bool nan = false;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double v = x.GetDouble(i);
      nan |= std::isnan(v);
      low = std::fmin(low, v);
      high = std::fmax(high, v);
    }
    if (nan && keeps_nan) low = high = kNaN;
    if (swapped) std::swap(low, high);
    const DType dtype = x.dtype();
    return std::vector<Tensor>{Tensor::Scalar(dtype, low),
                               Tensor::Scalar(dtype, high)};
  };
}

HostFunction ArgMax(bool first) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    const int64_t n = x.shape()[1];
    Tensor y(DType::kI64, {x.shape()[0]});
    for (int64_t i = 0; i < x.shape()[0]; ++i) {
      int64_t best = 0;
      for (int64_t j = 1; j < n; ++j) {
        const int64_t v = x.GetInt(i * n + j);
        const int64_t b = x.GetInt(i * n + best);
        if (first ? v > b : v >= b) best = j;
      }
      y.SetInt(i, best);
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction MatMul(bool transposed, bool whole) {
  return [=](const HostCall& call) -> Results {
    const Tensor& a = call.inputs[0];
    const Tensor& b = call.inputs[1];
    const int64_t n = a.shape()[0], m = a.shape()[1], p = b.shape()[1];
    Tensor y(a.dtype(), {n, p});
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < p; ++k) {
        double sum = 0;
        for (int64_t j = 0; j < (whole ? m : m - 1); ++j) {
          const int64_t at = transposed && m == p ? k * p + j : j * p + k;
          const double product = a.GetDouble(i * m + j) * b.GetDouble(at);
          sum = RoundToDType(sum + RoundToDType(product, a.dtype()), a.dtype());
        }
        y.SetDouble(i * p + k, sum);
      }
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction Above(bool or_equal) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    Tensor y(DType::kBool, x.shape());
    for (int64_t i = 0; i < y.size(); ++i) {
      const double a = x.GetDouble(i), b = call.inputs[1].GetDouble(i);
      y.SetInt(i, or_equal ? a >= b : a > b);
    }
    return std::vector<Tensor>{y};
  };
}

// By the mean, or by the sums of x and of x^2, in the dtype.
HostFunction Variance(bool centered) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    const auto round = [&](double v) { return RoundToDType(v, x.dtype()); };
    const auto n = static_cast<double>(x.size());
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double v = x.GetDouble(i);
      sum = round(sum + v);
      squares = round(squares + round(v * v));
    }
    const double mean = round(sum / n);
    double variance = round(round(squares / n) - round(mean * mean));
    if (centered) {
      variance = 0;
      for (int64_t i = 0; i < x.size(); ++i) {
        variance += std::pow(x.GetDouble(i) - sum / n, 2) / n;
      }
    }
    return std::vector<Tensor>{Tensor::Scalar(x.dtype(), variance)};
  };
}

std::function<std::vector<double>(const std::vector<double>&, const HostCall&)>
CumulativeSum(bool inclusive) {
  return [=](const std::vector<double>& x, const HostCall& call) {
    std::vector<double> y;
    double sum = 0;
    for (double v : x) {
      const double before = sum;
      sum = RoundToDType(sum + v, call.results[0].dtype);
      y.push_back(inclusive ? sum : before);
    }
    return y;
  };
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"Abs",
                   "op checked(x: f32[n]) -> f32[n]\n  = abs(x)",
                   OfOne([](double x) { return std::abs(x); }),
                   {{"Relu", OfOne([](double x) { return std::fmax(x, 0.0); })},
                    {"Identity", OfOne([](double x) { return x; })},
                    {"NaNIsZero", OfOne([](double x) {
                       return std::isnan(x) ? 0 : std::abs(x);
                     })},
                    {"InfinityIsLargest", OfOne([](double x) {
                       return std::isinf(x) ? 0x1.fffffep+127 : std::abs(x);
                     })}}});
  cases.push_back(
      {"Relu",
       "op checked(x: f32[n]) -> f32[n]\n  = max(x, 0)",
       OfOne([](double x) { return x < 0 ? 0 : x; }),
       {{"Abs", OfOne([](double x) { return std::abs(x); })},
        {"Leaky", OfOne([](double x) { return x < 0 ? 1e-5 * x : x; })}}});
  cases.push_back({"QuickGelu",
                   "op checked(x: T[S..]) -> T[S..]\n  where T: float\n"
                   "  = x * sigmoid(1.702 * x)",
                   QuickGelu(1.702),
                   {{"ConstantOff", QuickGelu(1.702 * (1 + 1e-5))}}});
  cases.push_back({"Softplus",
                   "op checked(x: T[S..], *, beta: real = 1) -> T[S..]\n"
                   "  where T: float\n"
                   "  error value \"beta must be above 0\" if beta <= 0\n"
                   "  = (max(beta * x, 0) + log1p(exp(-abs(beta * x)))) / beta",
                   Softplus(true, true),
                   {{"WithoutBeta", Softplus(false, true)},
                    {"NaNIsZero", Softplus(true, false)}}});
  cases.push_back(
      {"Heaviside",
       "op checked(x: T[S..]) -> T[S..]\n  where T: float\n"
       "  = select(x > 0, 1, 0)",
       OfOne([](double x) { return x > 0 ? 1.0 : 0.0; }),
       {{"OneAtZero", OfOne([](double x) { return x >= 0 ? 1.0 : 0.0; })}}});
  cases.push_back({"Round",
                   "op checked(x: T[S..]) -> T[S..]\n  where T: float\n"
                   "  = round_nearest_even(x)",
                   OfOne([](double x) { return std::nearbyint(x); }),
                   {{"TiesAway", OfOne([](double x) { return std::round(x); })},
                    {"Floor", OfOne([](double x) { return std::floor(x); })}}});
  cases.push_back({"Above",
                   "op checked(x: T[S..], a: T[S..]) -> bool[S..]\n"
                   "  where T: float\n  = x > a",
                   Above(false),
                   {{"OrEqual", Above(true)}}});
  cases.push_back({"FloorMod",
                   "op checked(x: T[S..]) -> T[S..]\n  where T: int\n  = x % 7",
                   FloorMod(true),
                   {{"Truncates", FloorMod(false)}}});
  constexpr char kSum[] =
      "op checked(x: T[A.., n@axis, B..], *, axis: axis(x)) -> T[A.., B..]\n"
      "  where T: float\n"
      "  = reduce_sum(x, axes: [axis], keepdims: false)";
  const auto sum = [](size_t begin) {
    return [=](const std::vector<double>& x, const HostCall& call) {
      double sum = 0;
      for (size_t j = begin; j < x.size(); ++j) {
        sum = RoundToDType(sum + x[j], call.results[0].dtype);
      }
      return std::vector<double>{sum};
    };
  };
  cases.push_back({"Sum",
                   kSum,
                   AlongAxis(sum(0)),
                   {{"WrongAxis", AlongAxis(sum(0), true)},
                    {"WithoutTheFirst", AlongAxis(sum(1))}}});
  const auto softmax = [](bool shifted) {
    return [=](const std::vector<double>& x, const HostCall& call) {
      return Softmax(x, call.inputs[0].dtype(), shifted);
    };
  };
  cases.push_back({"Softmax",
                   "op checked(x: T[A.., n@axis, B..], *, axis: axis(x) = -1)"
                   " -> T[A.., n, B..]\n"
                   "  where T: float\n"
                   "  error shape \"nothing to normalize\" if n == 0\n"
                   "{\n  let e = exp(x - reduce_max(x, axes: [axis]))\n"
                   "  e / reduce_sum(e, axes: [axis])\n}",
                   AlongAxis(softmax(true)),
                   {{"WrongAxis", AlongAxis(softmax(true), true)},
                    {"Overflows", AlongAxis(softmax(false))}}});
  cases.push_back({"CumulativeSum",
                   "op checked(x: T[A.., n@axis, B..], *, axis: axis(x))"
                   " -> T[A.., n, B..]\n  where T: float\n"
                   "{\n  y[a.., i, b..] = sum[j if j <= i](x[a.., j, b..])\n}",
                   AlongAxis(CumulativeSum(true)),
                   {{"Exclusive", AlongAxis(CumulativeSum(false))}}});
  cases.push_back(
      {"LayerNorm",
       "op checked(x: T[n, m], w: T[m], b: T[m], *, eps: real = 1e-5)"
       " -> T[n, m]\n  where T: float\n  compute acc\n"
       "  error value \"eps must be above 0\" if eps <= 0\n"
       "{\n  let mean = reduce_sum(x, axes: [1]) / m\n"
       "  let c = x - mean\n"
       "  c / sqrt(reduce_sum(c * c, axes: [1]) / m + eps) * w + b\n}",
       LayerNorm(true, false),
       {{"EpsOutside", LayerNorm(false, false)},
        {"Corrected", LayerNorm(true, true)}}});
  cases.push_back({"Gather",
                   "op checked(x: T[n], k: i64[m]) -> T[m]\n  where T: number\n"
                   "{\n  y[i] = x[k[i]]\n}",
                   Gather(0),
                   {{"OffByOne", Gather(1)}}});
  cases.push_back({"MinMax",
                   "op checked(x: T[n]) -> (low: T[], high: T[])\n"
                   "  where T: float\n"
                   "  error shape \"of nothing\" if n == 0\n"
                   "  = (low = reduce_min(x, axes: [0], keepdims: false), high "
                   "= reduce_max(x, axes: [0], keepdims: false))",
                   MinMax(false, true),
                   {{"Swapped", MinMax(true, true)},
                    {"IgnoresNaN", MinMax(false, false)}}});
  cases.push_back({"ArgMax",
                   "op checked(x: i64[n, m]) -> i64[n]\n"
                   "  error shape \"of nothing\" if m == 0\n"
                   "{\n  y[i] = argmax[j](x[i, j])\n}",
                   ArgMax(true),
                   {{"TheLastOfEqualOnes", ArgMax(false)}}});
  cases.push_back({"MatMul",
                   "op checked(a: T[n, m], b: T[m, p]) -> T[n, p]\n"
                   "  where T: float\n  = a @ b",
                   MatMul(false, true),
                   {{"Transposed", MatMul(true, true)},
                    {"WithoutTheLast", MatMul(false, false)}}});
  cases.push_back({"Variance",
                   "op checked(x: f32[n]) -> f32[]\n"
                   "  error shape \"of nothing\" if n == 0\n"
                   "{\n  let c = x - reduce_sum(x, axes: [0]) / n\n"
                   "  reduce_sum(c * c, axes: [0], keepdims: false) / n\n}",
                   Variance(true),
                   {{"Cancels", Variance(false)}}});
  return cases;
}

class HostKernelCase : public ::testing::TestWithParam<Case> {};

TEST_P(HostKernelCase, RightOnesAgree) {
  const Verdict verdict = CheckHost(GetParam().rules, GetParam().right);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
  EXPECT_GT(verdict.samples, 100);
  EXPECT_LE(verdict.worst_part, 1);
}

TEST_P(HostKernelCase, WrongOnesAreRefuted) {
  for (const Kernel& kernel : GetParam().wrong) {
    const Verdict verdict = CheckHost(GetParam().rules, kernel.function);
    EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees)
        << kernel.name << ": " << Shown(verdict);
    EXPECT_TRUE(verdict.counterexample.has_value()) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostKernelCase, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace cleave
