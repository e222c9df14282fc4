// Second derivatives of whole ops, in all four nestings, against differences
// over the reals at 2000 bits: where hand-written rules that save statistics,
// or divide by what may be 0, have been wrong elsewhere.

#include <mpfr.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

// Differences of second order at 2^-300 leave about 2^-600.
constexpr int kBits = 2000;
constexpr int kStepExponent = -300;
constexpr double kTolerance = 1e-11;

struct Function {
  const char* name;
  // A function f, and the point, one list per input; indices are constant.
  const char* rule;
  std::vector<std::vector<double>> at;
};

const Function kFunctions[] = {
    {"layer_norm",
     "fn f(x: f64[2], w: f64[2]) -> f64[2]\n"
     "{\n"
     "  let r = layer_norm(x, w, N: [2], eps: 0.25)\n"
     "  r.y\n"
     "}\n",
     {{0.7, 0}, {1, 2}}},
    {"layer_norm over two axes",
     "fn f(x: f64[2, 2, 2], w: f64[2, 2], b: f64[2, 2]) -> f64[2, 2, 2]\n"
     "{\n"
     "  let r = layer_norm(x, w, b, N: [2, 2])\n"
     "  r.y\n"
     "}\n",
     {{0.7, 0, 1, -2, 3, 0.5, 0.25, 2}, {1, 2, -1, 0.5}, {0, 1, 2, 3}}},
    {"rms_norm",
     "fn f(x: f64[2, 3], w: f64[3]) -> f64[2, 3]\n"
     "{\n"
     "  let r = rms_norm(x, w, N: [3])\n"
     "  r.y\n"
     "}\n",
     {{0.7, -0.5, 1, 2, 3, -1}, {1, 2, 3}}},
    {"batch_norm in training",
     "fn f(x: f64[3, 2], w: f64[2], b: f64[2]) -> f64[3, 2]\n"
     "{\n"
     "  let r = batch_norm(x, w, b, training: true, eps: 0.01)\n"
     "  r.y\n"
     "}\n",
     {{0.7, 0, 1, -2, 0.5, 3}, {1, 2}, {0.5, 0}}},
    {"group_norm",
     "fn f(x: f64[2, 4, 2], w: f64[4]) -> f64[2, 4, 2]\n"
     "{\n"
     "  group_norm(x, w, groups: 2)\n"
     "}\n",
     {{0.7, 0, 1, -2, 0.5, 3, 2, 1, 0, 4, -1, 2, 1, 1, 2, 0.5}, {1, 2, 3, 4}}},
    // PyTorch 2.15 gives 68 for 144 at a zero.
    {"cumprod with a zero",
     "fn f(x: f64[4]) -> f64[4] = cumprod(x, axis: 0)\n",
     {{2, 0, 3, 4}}},
    {"cumprod with two zeros",
     "fn f(x: f64[5]) -> f64[5] = cumprod(x, axis: 0)\n",
     {{2, 0, 3, 0, 5}}},
    {"prod with a zero",
     "fn f(x: f64[4]) -> f64[] = prod(x)\n",
     {{2, 0, 3, 4}}},
    {"prod with two zeros",
     "fn f(x: f64[2, 3]) -> f64[2] = prod(x, axes: [1])\n",
     {{0, 5, 0, 1, 0, 3}}},
    {"prod with three zeros",
     "fn f(x: f64[4]) -> f64[] = prod(x)\n",
     {{0, 0, 0, 4}}},
    // PyTorch 2.15 gives 0 for 60.36.
    {"scatter that multiplies",
     "fn f(x: f64[3], u: f64[4], at: i64[4]) -> f64[3]\n"
     "{\n"
     "  y[p] = x[p] * prod[j if at[j] == p](u[j])\n"
     "}\n",
     {{1.5, 2, 3}, {2, 4, 5, 0.5}, {0, 0, 2, 0}}},
    {"scatter that multiplies by zeros",
     "fn f(x: f64[3], u: f64[4], at: i64[4]) -> f64[3]\n"
     "{\n"
     "  y[p] = x[p] * prod[j if at[j] == p](u[j])\n"
     "}\n",
     {{1.5, 2, 0}, {2, 0, 5, 0}, {0, 0, 2, 0}}},
    {"softmax",
     "fn f(x: f64[2, 3]) -> f64[2, 3] = softmax(x, axis: 1)\n",
     {{0.5, -1, 2, 0, 0, 3}}},
    {"log_softmax",
     "fn f(x: f64[4]) -> f64[4] = log_softmax(x)\n",
     {{0.5, -1, 2, 0}}},
    {"logsumexp",
     "fn f(x: f64[4]) -> f64[] = logsumexp(x, axes: [0])\n",
     {{0.5, -1, 2, 0}}},
    {"std", "fn f(x: f64[4]) -> f64[] = std(x)\n", {{0.5, -1, 2, 0}}},
    {"vector_norm",
     "fn f(x: f64[3]) -> f64[] = vector_norm(x)\n",
     {{3, -4, 12}}},
    {"cdist",
     "fn f(x: f64[2, 2], z: f64[2, 2]) -> f64[2, 2] = cdist(x, z)\n",
     {{0, 1, 2, 3}, {1, -1, 5, 5}}},
    {"gelu", "fn f(x: f64[3]) -> f64[3] = gelu(x)\n", {{-1, 0, 2}}},
    // Where the pieces of a body meet, of functions that are smooth there.
    {"mish", "fn f(x: f64[3]) -> f64[3] = mish(x)\n", {{-1, 0, 2}}},
    {"silu", "fn f(x: f64[3]) -> f64[3] = silu(x)\n", {{-1, 0, 2}}},
    {"softplus", "fn f(x: f64[3]) -> f64[3] = softplus(x)\n", {{-1, 0, 2}}},
    {"log_sigmoid",
     "fn f(x: f64[3]) -> f64[3] = log_sigmoid(x)\n",
     {{-1, 0, 2}}},
    {"tanh", "fn f(x: f64[3]) -> f64[3] = tanh(x)\n", {{-1, 0, 0.5}}},
    {"sinc", "fn f(x: f64[3]) -> f64[3] = sinc(x)\n", {{0, 0.25, -1}}},
    {"attention",
     "fn f(q: f64[1, 1, 2, 2], k: f64[1, 1, 3, 2], v: f64[1, 1, 3, 1])\n"
     "    -> f64[1, 1, 2, 1] = scaled_dot_product_attention(q, k, v)\n",
     {{1, 0, -1, 2}, {0.5, 1, -1, 0, 2, 1}, {1, -2, 3}}},
    {"a scan",
     "fn f(x: f64[3], a: f64[]) -> f64[]\n"
     "{\n"
     "  let r = scan(c = a) over t in x { (c = sin(c * t) + c) }\n"
     "  r.c\n"
     "}\n",
     {{0.5, -1, 2}, {0.75}}},
};

// The shipped ops, and `text` behind them. They are loaded once.
std::shared_ptr<const RuleSet> WithCore(const std::string& text) {
  static const auto& core = *new std::shared_ptr<const RuleSet>(
      LoadTestRules(std::make_shared<Context>(), "", {"core"}));
  const LoadResult loaded =
      ExtendRules(core, {"extra.rules", absl::StrCat("language 1\n\n", text)});
  EXPECT_TRUE(loaded.diagnostics.empty()) << loaded.diagnostics[0];
  return loaded.rules;
}

class NestedDerivatives : public ::testing::TestWithParam<Function> {
 protected:
  void SetUp() override {
    rules_ = WithCore(GetParam().rule);
    ASSERT_NE(rules_, nullptr);
    absl::StatusOr<Graph> function = rules_->Function("f");
    ASSERT_THAT(function, IsOk());
    function_ = *std::move(function);
    double angle = 1;
    for (size_t i = 0; i < function_.inputs().size(); ++i) {
      const TensorType& type = function_.type(function_.inputs()[i].value);
      std::vector<int64_t> shape;
      for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
      x_.push_back(Tensor::FromDoubles(type.dtype, shape, GetParam().at[i]));
      active_.push_back(IsFloat(type.dtype));
      if (!active_.back()) continue;
      v_.push_back(Wave(shape, angle));
      u_.push_back(Wave(shape, angle));
    }
    const TensorType& type = function_.type(function_.outputs()[0].value);
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
    w_.push_back(Wave(shape, angle));
  }

  // A direction with no symmetry.
  static Tensor Wave(const std::vector<int64_t>& shape, double& angle) {
    Tensor wave(DType::kF64, shape);
    for (int64_t i = 0; i < wave.size(); ++i) {
      wave.SetDouble(i, std::sin(angle += 1.7));
    }
    return wave;
  }

  // sum_i w_i f_i(x + i h v + j h u).
  Real AtStep(const Graph& primitives, int i, int j) {
    std::vector<RealTensor> inputs;
    size_t next = 0;
    for (size_t k = 0; k < x_.size(); ++k) {
      inputs.push_back(RealTensor::FromTensor(x_[k], kBits));
      if (!active_[k]) continue;
      const size_t d = next++;
      for (const auto& [direction, sign] :
           {std::pair(&v_[d], i), std::pair(&u_[d], j)}) {
        const RealTensor step = RealTensor::FromTensor(*direction, kBits);
        for (size_t e = 0; e < step.reals.size(); ++e) {
          Real part = step.reals[e];
          mpfr_mul_2si(part.get(), part.get(), kStepExponent, MPFR_RNDN);
          mpfr_mul_si(part.get(), part.get(), sign, MPFR_RNDN);
          Real& value = inputs[k].reals[e];
          mpfr_add(value.get(), value.get(), part.get(), MPFR_RNDN);
        }
      }
    }
    const auto results = InterpretReal(primitives, inputs, kBits);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return Real(kBits);
    const RealTensor weights = RealTensor::FromTensor(w_[0], kBits);
    Real sum(0, kBits);
    for (size_t e = 0; e < weights.reals.size(); ++e) {
      Real product(kBits);
      mpfr_mul(product.get(), weights.reals[e].get(),
               (*results)[0].reals[e].get(), MPFR_RNDN);
      mpfr_add(sum.get(), sum.get(), product.get(), MPFR_RNDN);
    }
    return sum;
  }

  // w^T f''[v, u] by differences.
  double Expected() {
    const absl::StatusOr<Graph> primitives = Expand(function_, *rules_);
    EXPECT_THAT(primitives, IsOk());
    if (!primitives.ok()) return std::nan("");
    Real sum = AtStep(*primitives, 1, 1);
    const Real other = AtStep(*primitives, -1, -1);
    const Real left = AtStep(*primitives, 1, -1);
    const Real right = AtStep(*primitives, -1, 1);
    mpfr_add(sum.get(), sum.get(), other.get(), MPFR_RNDN);
    mpfr_sub(sum.get(), sum.get(), left.get(), MPFR_RNDN);
    mpfr_sub(sum.get(), sum.get(), right.get(), MPFR_RNDN);
    mpfr_mul_2si(sum.get(), sum.get(), -2 * kStepExponent - 2, MPFR_RNDN);
    return sum.ToDouble();
  }

  // The last outputs of `graph` in f64 at the inputs, times `factors`.
  double Product(const Graph& graph,
                 const std::vector<const std::vector<Tensor>*>& parts,
                 const std::vector<Tensor>& factors) {
    std::vector<Tensor> inputs;
    for (const auto* part : parts) {
      inputs.insert(inputs.end(), part->begin(), part->end());
    }
    const absl::StatusOr<Graph> primitives = Expand(graph, *rules_);
    EXPECT_THAT(primitives, IsOk());
    if (!primitives.ok()) return std::nan("");
    const auto results = Interpret(*primitives, inputs);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return std::nan("");
    double sum = 0;
    const size_t first = results->size() - factors.size();
    for (size_t r = 0; r < factors.size(); ++r) {
      for (int64_t i = 0; i < factors[r].size(); ++i) {
        sum += (*results)[first + r].GetDouble(i) * factors[r].GetDouble(i);
      }
    }
    return sum;
  }

  std::shared_ptr<const RuleSet> rules_;
  Graph function_;
  std::vector<bool> active_;
  std::vector<Tensor> x_, v_, u_, w_;
};

TEST_P(NestedDerivatives, AllFourAreRight) {
  const double expected = Expected();
  const double tolerance = kTolerance * std::fmax(1, std::fabs(expected));
  const std::vector<bool>& all = active_;
  std::vector<bool> primals = all;
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(function_, all, *rules_));
  primals.resize(jvp.graph.inputs().size(), false);
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp_jvp,
                       Jvp(jvp.graph, primals, *rules_));
  EXPECT_NEAR(Product(jvp_jvp.graph, {&x_, &v_, &u_}, w_), expected, tolerance);
  const std::vector<Tensor> none = {Tensor(DType::kF64, w_[0].shape())};
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp_jvp,
                       Vjp(jvp.graph, primals, *rules_));
  EXPECT_NEAR(Product(vjp_jvp.graph, {&x_, &v_, &none, &w_}, u_), expected,
              tolerance);
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(function_, all, *rules_));
  primals = all;
  primals.resize(vjp.graph.inputs().size(), false);
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp_vjp,
                       Jvp(vjp.graph, primals, *rules_));
  EXPECT_NEAR(Product(jvp_vjp.graph, {&x_, &w_, &u_}, v_), expected, tolerance);
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp_vjp,
                       Vjp(vjp.graph, primals, *rules_));
  EXPECT_NEAR(Product(vjp_vjp.graph, {&x_, &w_, &none, &v_}, u_), expected,
              tolerance);
}

INSTANTIATE_TEST_SUITE_P(Functions, NestedDerivatives,
                         ::testing::ValuesIn(kFunctions),
                         [](const ::testing::TestParamInfo<Function>& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

// The second derivative of sum y along x = [1, 0], twice. A rule that takes the
// saved mean and deviation for constants gives -0.38487.
TEST(NestedDerivativesOfLayerNorm, StatisticsVary) {
  const auto rules = WithCore(
      "fn f(x: f64[2]) -> f64[]\n{\n"
      "  let r = layer_norm(x, convert(iota(2) + 1, dtype: f64), N: [2], "
      "eps: 0.25)\n"
      "  reduce_sum(r.y, axes: [0], keepdims: false)\n}\n");
  ASSERT_NE(rules, nullptr);
  ASSERT_OK_AND_ASSIGN(const Graph f, rules->Function("f"));
  ASSERT_OK_AND_ASSIGN(const JvpResult once, Jvp(f, {true}, *rules));
  ASSERT_OK_AND_ASSIGN(const JvpResult twice,
                       Jvp(once.graph, {true, false}, *rules));
  ASSERT_OK_AND_ASSIGN(const Graph primitives, Expand(twice.graph, *rules));
  const Tensor direction = Tensor::FromDoubles(DType::kF64, {2}, {1, 0});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(primitives, {Tensor::FromDoubles(DType::kF64, {2}, {0.7, 0}),
                             direction, direction}));
  EXPECT_NEAR(results.back().GetDouble(0), 0.7749142079590942, 1e-15);
}

// Third order stays linear in size, and right: the third derivative of a sum of
// sines along x is -cos.
TEST(NestedDerivativesOfSine, ThreeDeep) {
  auto context = std::make_shared<Context>();
  const auto rules = LoadTestRules(
      context, "language 1\n\nfn f(x: f64[n]) -> f64[n] = sin(x)\n");
  ASSERT_OK_AND_ASSIGN(const Graph f, rules->Function("f"));
  ASSERT_OK_AND_ASSIGN(const VjpResult once, Vjp(f, {true}, *rules));
  ASSERT_OK_AND_ASSIGN(const JvpResult twice,
                       Jvp(once.graph, {true, false}, *rules));
  ASSERT_OK_AND_ASSIGN(const VjpResult thrice,
                       Vjp(twice.graph, {true, false, false}, *rules));
  const auto vector = [](double value) {
    return Tensor::FromDoubles(DType::kF64, {1}, {value});
  };
  // Inputs: x, w, v, then cotangents of y, x.cotangent and of their tangents.
  ASSERT_EQ(thrice.graph.inputs().size(), 7u);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(thrice.graph, {vector(0.5), vector(2), vector(3), vector(0),
                               vector(0), vector(0), vector(1)}));
  EXPECT_NEAR(results.back().GetDouble(0), -std::cos(0.5) * 2 * 3, 1e-15);
}

}  // namespace
}  // namespace cleave
