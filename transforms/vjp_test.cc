#include "transforms/vjp.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp.h"
#include "transforms/sample_nodes.h"
#include "transforms/test_rules.h"
#include "transforms/transpose.h"
#include "transforms/vmap.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kBits = 400;
constexpr double kTolerance = 1e-60;

// The sum of the products, and of their absolute values: the size that an
// error is judged by.
struct InnerProduct {
  Real value{kBits};
  Real size{kBits};
  InnerProduct() {
    mpfr_set_zero(value.get(), 1);
    mpfr_set_zero(size.get(), 1);
  }
  void Add(const RealTensor& a, const RealTensor& b) {
    ASSERT_EQ(a.reals.size(), b.reals.size());
    for (size_t i = 0; i < a.reals.size(); ++i) {
      Real product(kBits);
      mpfr_mul(product.get(), a.reals[i].get(), b.reals[i].get(), MPFR_RNDN);
      mpfr_add(value.get(), value.get(), product.get(), MPFR_RNDN);
      mpfr_abs(product.get(), product.get(), MPFR_RNDN);
      mpfr_add(size.get(), size.get(), product.get(), MPFR_RNDN);
    }
  }
};

class VjpTest : public ::testing::Test {
 protected:
  // <J v, w> = <v, J^T w> at one random point, for random v and w.
  void ExpectAdjoint(const SampleNode& sample, const Graph& graph,
                     const std::vector<bool>& active, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, synthetic_));
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, synthetic_));
    ASSERT_THAT(Verify(vjp.graph), IsOk());
    std::mt19937_64 random(seed);
    SampleNode direction = sample;
    direction.low = -1;
    direction.high = 1;
    direction.ties = false;
    const auto draw = [&](const SampleNode& from, const TensorType& type) {
      return RealTensor::FromTensor(
          DrawTensor(from, type.dtype, ConstantShape(type), random), kBits);
    };
    std::vector<RealTensor> forward;
    for (const NamedValue& input : graph.inputs()) {
      forward.push_back(draw(sample, graph.type(input.value)));
    }
    std::vector<RealTensor> reverse = forward;
    std::vector<RealTensor> v;
    std::vector<RealTensor> w;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!active[i]) continue;
      v.push_back(draw(direction, graph.type(graph.inputs()[i].value)));
      forward.push_back(v.back());
    }
    for (const NamedValue& output : graph.outputs()) {
      if (!IsFloat(graph.type(output.value).dtype)) continue;
      w.push_back(draw(direction, graph.type(output.value)));
      reverse.push_back(w.back());
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<RealTensor> pushed,
                         InterpretReal(jvp.graph, forward, kBits));
    ASSERT_OK_AND_ASSIGN(const std::vector<RealTensor> pulled,
                         InterpretReal(vjp.graph, reverse, kBits));
    const size_t results = graph.outputs().size();
    InnerProduct jv_w;
    for (size_t i = 0; i < w.size(); ++i) jv_w.Add(pushed[results + i], w[i]);
    InnerProduct v_jw;
    for (size_t i = 0; i < v.size(); ++i) v_jw.Add(v[i], pulled[results + i]);
    Real difference(kBits);
    mpfr_sub(difference.get(), jv_w.value.get(), v_jw.value.get(), MPFR_RNDN);
    EXPECT_LE(std::fabs(difference.ToDouble()),
              kTolerance * std::fmax(1, jv_w.size.ToDouble()))
        << jv_w.value.ToString(30) << ", not " << v_jw.value.ToString(30)
        << "\n"
        << PrintGraph(vjp.graph);
  }

  // The same in f64, for what the reals do not have: complex numbers, whose
  // inner product is that of their parts.
  void ExpectAdjointInF64(const SampleNode& sample, const Graph& graph,
                          const std::vector<bool>& active, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, synthetic_));
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, synthetic_));
    std::mt19937_64 random(seed);
    const auto draw = [&](const TensorType& type) {
      return DrawTensor(sample, type.dtype, ConstantShape(type), random);
    };
    std::vector<Tensor> forward;
    for (const NamedValue& input : graph.inputs()) {
      forward.push_back(draw(graph.type(input.value)));
    }
    std::vector<Tensor> reverse = forward;
    std::vector<Tensor> v;
    std::vector<Tensor> w;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!active[i]) continue;
      v.push_back(draw(graph.type(graph.inputs()[i].value)));
      forward.push_back(v.back());
    }
    for (const NamedValue& output : graph.outputs()) {
      const TensorType& type = graph.type(output.value);
      if (!IsFloat(type.dtype) && !IsComplex(type.dtype)) continue;
      w.push_back(draw(type));
      reverse.push_back(w.back());
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> pushed,
                         Interpret(jvp.graph, forward));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> pulled,
                         Interpret(vjp.graph, reverse));
    const size_t results = graph.outputs().size();
    double size = 1;
    const auto inner = [&](const Tensor& a, const Tensor& b) {
      double sum = 0;
      for (int64_t i = 0; i < a.size(); ++i) {
        const std::complex<double> x = a.GetComplex(i);
        const std::complex<double> y = b.GetComplex(i);
        sum += x.real() * y.real() + x.imag() * y.imag();
        size += std::abs(x) * std::abs(y);
      }
      return sum;
    };
    double jv_w = 0;
    double v_jw = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      jv_w += inner(pushed[results + i], w[i]);
    }
    for (size_t i = 0; i < v.size(); ++i) {
      v_jw += inner(v[i], pulled[results + i]);
    }
    EXPECT_LE(std::fabs(jv_w - v_jw), 1e-11 * size)
        << jv_w << ", not " << v_jw << "\n"
        << PrintGraph(vjp.graph);
  }

  static std::vector<bool> AllActive(const SampleNode& sample,
                                     const Graph& graph) {
    std::vector<bool> active;
    for (const NamedValue& input : graph.inputs()) {
      const DType dtype = graph.type(input.value).dtype;
      active.push_back(IsFloat(dtype) || IsComplex(dtype));
    }
    // No closed form is known for the derivative in the order.
    if (sample.primitive == Primitive::kPolygamma) active[0] = false;
    return active;
  }

  static bool Any(const std::vector<bool>& mask) {
    return std::find(mask.begin(), mask.end(), true) != mask.end();
  }

  // A loop that reverse mode does not know the length of.
  static bool IsUnbounded(const SampleNode& sample) {
    return sample.primitive == Primitive::kWhile &&
           sample.attributes.Find("max") == nullptr;
  }

  static bool OverTheReals(const SampleNode& sample) {
    switch (sample.primitive) {
      case Primitive::kNextafter:
      case Primitive::kBitcastConvert:
      case Primitive::kComplex:
      case Primitive::kReal:
      case Primitive::kImag:
      case Primitive::kRandomUniform:
      case Primitive::kRandomBits:
        return false;
      default:
        return true;
    }
  }

  Graph Parse(const std::string& text) {
    absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    CLEAVE_CHECK(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  // The cotangents of all inputs, for the cotangent 1 of each output.
  std::vector<Tensor> Gradients(const Graph& graph, const RuleSet& rules,
                                std::vector<Tensor> inputs) {
    const std::vector<bool> active(graph.inputs().size(), true);
    absl::StatusOr<VjpResult> vjp = Vjp(graph, active, rules);
    EXPECT_THAT(vjp, IsOk());
    if (!vjp.ok()) return {};
    absl::StatusOr<Graph> expanded = Expand(vjp->graph, rules);
    EXPECT_THAT(expanded, IsOk());
    if (!expanded.ok()) return {};
    absl::StatusOr<std::vector<Tensor>> primal;
    for (size_t i = graph.inputs().size(); i < expanded->inputs().size(); ++i) {
      const TensorType& type = expanded->type(expanded->inputs()[i].value);
      const std::vector<int64_t> shape =
          type.shape.empty() ? std::vector<int64_t>() : inputs[0].shape();
      Tensor ones(type.dtype, shape);
      for (int64_t k = 0; k < ones.size(); ++k) ones.SetDouble(k, 1);
      inputs.push_back(std::move(ones));
    }
    absl::StatusOr<std::vector<Tensor>> results = Interpret(*expanded, inputs);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return {};
    return {results->begin() + graph.outputs().size(), results->end()};
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
  SyntheticRules synthetic_{*rules_};
};

// Every primitive, every subset of active operands.
TEST_F(VjpTest, IsTheTransposeOfJvp) {
  uint64_t seed = 20261122;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> all = AllActive(sample, graph);
    for (uint32_t mask = 1; mask < 1u << all.size(); ++mask) {
      std::vector<bool> active;
      bool subset = true;
      for (size_t i = 0; i < all.size(); ++i) {
        active.push_back((mask >> i & 1) != 0);
        subset = subset && (all[i] || !active[i]);
      }
      if (!subset) continue;
      SCOPED_TRACE(absl::StrCat("active ", mask));
      if (OverTheReals(sample)) {
        ExpectAdjoint(sample, graph, active, ++seed);
      } else {
        ExpectAdjointInF64(sample, graph, active, ++seed);
      }
    }
  }
}

// vjp of vjp against jvp of vjp, in the primals and the cotangents.
TEST_F(VjpTest, IsItsOwnSecondDerivative) {
  uint64_t seed = 11;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!OverTheReals(sample)) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const VjpResult once, Vjp(graph, active, synthetic_));
    while (active.size() < once.graph.inputs().size()) active.push_back(true);
    ExpectAdjoint(sample, once.graph, active, ++seed);
  }
}

// jvp of jvp in reverse.
TEST_F(VjpTest, IsTheTransposeOfNestedJvp) {
  uint64_t seed = 12;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!OverTheReals(sample)) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const JvpResult once, Jvp(graph, active, synthetic_));
    while (active.size() < once.graph.inputs().size()) active.push_back(true);
    ExpectAdjoint(sample, once.graph, active, ++seed);
  }
}

// vjp of vmap, with all inputs batched.
TEST_F(VjpTest, IsTheTransposeOfVmap) {
  uint64_t seed = 13;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!OverTheReals(sample) || sample.primitive == Primitive::kNonzero) {
      continue;
    }
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(
        const Graph batched,
        Vmap(graph, std::vector<int>(graph.inputs().size(), 0), 3,
             std::vector<int>(graph.outputs().size(), 0), synthetic_));
    ExpectAdjoint(sample, batched, active, ++seed);
  }
}

// vmap of vjp is vjp of vmap.
TEST_F(VjpTest, CommutesWithVmap) {
  uint64_t seed = 14;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (sample.primitive == Primitive::kNonzero) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, synthetic_));
    ASSERT_OK_AND_ASSIGN(
        const Graph one,
        Vmap(vjp.graph, std::vector<int>(vjp.graph.inputs().size(), 0), 3,
             std::vector<int>(vjp.graph.outputs().size(), 0), synthetic_));
    ASSERT_OK_AND_ASSIGN(
        const Graph batched,
        Vmap(graph, std::vector<int>(graph.inputs().size(), 0), 3,
             std::vector<int>(graph.outputs().size(), 0), synthetic_));
    ASSERT_OK_AND_ASSIGN(const VjpResult other,
                         Vjp(batched, active, synthetic_));
    std::mt19937_64 random(++seed);
    std::vector<Tensor> arguments;
    for (const NamedValue& input : one.inputs()) {
      const TensorType& type = one.type(input.value);
      arguments.push_back(
          DrawTensor(sample, type.dtype, ConstantShape(type), random));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Interpret(one, arguments));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                         Interpret(other.graph, arguments));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(SameValue(got[i], expected[i]))
          << "output " << i << ": " << got[i].ToString() << ", not "
          << expected[i].ToString();
    }
  }
}

// The linear half, transposed, is what Vjp gives; applied, what Jvp gives.
TEST_F(VjpTest, LinearizeIsBothHalves) {
  uint64_t seed = 15;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const Linearization halves,
                         Linearize(graph, active, synthetic_));
    ASSERT_THAT(Verify(halves.primal), IsOk());
    ASSERT_THAT(Verify(halves.linear), IsOk());
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, synthetic_));
    std::mt19937_64 random(++seed);
    const auto draw = [&](const Graph& of, size_t i) {
      const TensorType& type = of.type(of.inputs()[i].value);
      return DrawTensor(sample, type.dtype, ConstantShape(type), random);
    };
    std::vector<Tensor> primals;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      primals.push_back(draw(graph, i));
    }
    std::vector<Tensor> both = primals;
    std::vector<Tensor> tangents;
    const size_t tangent_count =
        halves.linear.inputs().size() - halves.residuals;
    for (size_t i = 0; i < tangent_count; ++i) {
      tangents.push_back(draw(halves.linear, i));
      both.push_back(tangents.back());
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                         Interpret(jvp.graph, both));
    ASSERT_OK_AND_ASSIGN(std::vector<Tensor> primal,
                         Interpret(halves.primal, primals));
    tangents.insert(tangents.end(), primal.end() - halves.residuals,
                    primal.end());
    primal.resize(primal.size() - halves.residuals);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> linear,
                         Interpret(halves.linear, tangents));
    primal.insert(primal.end(), linear.begin(), linear.end());
    ASSERT_EQ(primal.size(), expected.size());
    for (size_t i = 0; i < primal.size(); ++i) {
      EXPECT_TRUE(SameValue(primal[i], expected[i])) << i;
    }
    std::vector<bool> is_linear(halves.linear.inputs().size(), false);
    std::fill_n(is_linear.begin(), tangent_count, true);
    EXPECT_THAT(Transpose(halves.linear, is_linear, synthetic_), IsOk());
  }
}

TEST_F(VjpTest, RefusesLoopsWithoutABound) {
  int unbounded = 0;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!IsUnbounded(sample)) continue;
    ++unbounded;
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    EXPECT_THAT(Vjp(graph, AllActive(sample, graph), synthetic_),
                StatusIs(absl::StatusCode::kUnimplemented,
                         HasSubstr("impossible: unbounded loop in reverse")));
  }
  EXPECT_GT(unbounded, 0);
}

// What select does not take leaves no trace, however infinite its slope is.
TEST_F(VjpTest, NothingLeaksFromTheUntakenBranch) {
  const Graph graph = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %0: f64[] = constant(dtype: f64, value: 0.0)
  %1: f64[n] = broadcast_in_dim(%0, axes: [], shape: [n])
  %2: bool[n] = gt(%x, %1)
  %3: f64[n] = sqrt(%x)
  %4: f64[n] = log(%3)
  %5: f64[n] = select(%2, %4, %x)
  return y = %5
}
)");
  const std::vector<Tensor> once = Gradients(
      graph, *rules_, {Tensor::FromDoubles(DType::kF64, {3}, {0, 4, -1})});
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].GetDouble(0), 1);
  EXPECT_EQ(once[0].GetDouble(1), 0.125);
  EXPECT_EQ(once[0].GetDouble(2), 1);
}

// Nor does it through sums, reshapes and transposes.
TEST_F(VjpTest, NothingLeaksThroughMovement) {
  const Graph graph = Parse(R"(
graph (%x: f64[2, 3]) -> (y: f64[2]) {
  %0: f64[] = constant(dtype: f64, value: 0.0)
  %1: f64[2] = broadcast_in_dim(%0, axes: [], shape: [2])
  %2: f64[2, 3] = log(%x)
  %3: f64[3, 2] = transpose(%2, axes: [1, 0])
  %4: f64[2] = reduce_sum(%3, axes: [0])
  %5: f64[2] = reduce_sum(%x, axes: [1])
  %6: bool[2] = gt(%5, %1)
  %7: f64[2] = select(%6, %4, %1)
  return y = %7
}
)");
  const std::vector<bool> active = {true};
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, *rules_));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(vjp.graph,
                {Tensor::FromDoubles(DType::kF64, {2, 3}, {0, 0, 0, 1, 2, 4}),
                 Tensor::FromDoubles(DType::kF64, {2}, {1, 1})}));
  const double expected[] = {0, 0, 0, 1, 0.5, 0.25};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(results[1].GetDouble(i), expected[i]) << i;
  }
}

// At NaN the slope of max is NaN; elsewhere nothing of that is seen.
TEST_F(VjpTest, MaxGivesItsWinnerAll) {
  const Graph graph = Parse(R"(
graph (%a: f64[n], %b: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = max(%a, %b, tie: "even")
  return y = %1
}
)");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Tensor> slopes =
      Gradients(graph, *rules_,
                {Tensor::FromDoubles(DType::kF64, {4}, {1, 2, 3, nan}),
                 Tensor::FromDoubles(DType::kF64, {4}, {0, 2, 4, 1})});
  ASSERT_EQ(slopes.size(), 2u);
  EXPECT_EQ(slopes[0].GetDouble(0), 1);
  EXPECT_EQ(slopes[0].GetDouble(1), 0.5);
  EXPECT_EQ(slopes[0].GetDouble(2), 0);
  EXPECT_TRUE(std::isnan(slopes[0].GetDouble(3)));
  EXPECT_EQ(slopes[1].GetDouble(0), 0);
  EXPECT_EQ(slopes[1].GetDouble(1), 0.5);
  EXPECT_EQ(slopes[1].GetDouble(2), 1);
}

constexpr char kOverrides[] = R"(language 1

/// Its vjp is wrong on purpose, so that it is seen where it is used.
op reversed(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  vjp (dy) = (x = 10 * dy)
}

/// Its jvp, too: reverse mode transposes it.
op pushed(x: T[S..]) -> T[S..]
  where T: float
{
  sin(x)
  jvp x = 7 * dx
}

op nested(x: T[S..]) -> T[S..]
  where T: float
  = pushed(reversed(x, x))

/// In terms of its result, as `jvp` lines may be.
op by_result(x: T[S..]) -> T[S..]
  where T: float
{
  exp(x)
  vjp (dy) = (x = dy * y)
}

op pulled(x: T[S..], dy: T[S..]) -> T[S..]
  where T: float
  = vjp reversed(x, x)(dy).w + vjp reversed(x, 2 * x)(dy).x

op last_gradient(x: T[S..]) -> T[S..]
  where T: float
  = vjp first_of(x, 3 * x)(first: x).b

op first_of(a: T[S..], b: T[S..]) -> (first: T[S..], second: T[S..])
  where T: float
  = (first = a * b, second = b)
)";

double GradientAt(const std::vector<Tensor>& slopes) {
  return slopes.empty() ? std::nan("") : slopes[0].GetDouble(0);
}

TEST_F(VjpTest, OverridesReplaceReverseModeAlone) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph reversed = Parse(R"(
graph (%x: f64[n], %w: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = reversed(%x, %w)
  return y = %1
}
)");
  const Tensor three = Tensor::FromDoubles(DType::kF64, {1}, {3});
  const Tensor five = Tensor::FromDoubles(DType::kF64, {1}, {5});
  const std::vector<Tensor> slopes = Gradients(reversed, *rules, {three, five});
  ASSERT_EQ(slopes.size(), 2u);
  EXPECT_EQ(slopes[0].GetDouble(0), 10);  // given
  EXPECT_EQ(slopes[1].GetDouble(0), 3);   // derived
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp,
                       Jvp(reversed, {true, true}, *rules));
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(jvp.graph, *rules));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(expanded, {three, five, three, five}));
  EXPECT_EQ(results[1].GetDouble(0), 3 * 5 + 3 * 5);
}

TEST_F(VjpTest, ReverseModeTransposesTheJvpOverride) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph nested = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = nested(%x)
  return y = %1
}
)");
  EXPECT_EQ(GradientAt(Gradients(nested, *rules,
                                 {Tensor::FromDoubles(DType::kF64, {1}, {3})})),
            7 * (10 + 3));
}

TEST_F(VjpTest, OverridesMayUseTheResult) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph by_result = Parse(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = by_result(%x)
  return y = %1
}
)");
  EXPECT_EQ(GradientAt(Gradients(by_result, *rules,
                                 {Tensor::FromDoubles(DType::kF64, {1}, {0})})),
            1);
}

TEST_F(VjpTest, IsAnExpressionOfRules) {
  const auto rules = LoadTestRules(context_, kOverrides);
  const Graph pulled = Parse(R"(
graph (%x: f64[n], %dy: f64[n]) -> (y: f64[n], z: f64[n]) {
  %1: f64[n] = pulled(%x, %dy)
  %2: f64[n] = last_gradient(%x)
  return y = %1, z = %2
}
)");
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(pulled, *rules));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(expanded, {Tensor::FromDoubles(DType::kF64, {1}, {3}),
                           Tensor::FromDoubles(DType::kF64, {1}, {2})}));
  EXPECT_EQ(results[0].GetDouble(0), 3 * 2 + 10 * 2);
  EXPECT_EQ(results[1].GetDouble(0), 3 * 3);
}

// The litmus of the language differentiates: its gradient by reverse mode, and
// a product with its Hessian by forward mode over that.
TEST_F(VjpTest, RunsTheLitmus) {
  auto context = std::make_shared<Context>();
  // The shipped derivatives of primitives stand for the litmus's own, which are
  // one-line items, or a line and a body in braces.
  std::string litmus;
  bool skips = false;
  for (absl::string_view line :
       absl::StrSplit(ReadText("engine/lang/testdata/litmus.rules"), '\n')) {
    const bool item = absl::StartsWith(line, "jvp ");
    skips = skips || item;
    if (!skips) absl::StrAppend(&litmus, line, "\n");
    if (line == "}" || (item && absl::StrContains(line, " = "))) skips = false;
  }
  const auto rules = LoadTestRules(context, litmus);
  const auto run = [&](const char* name, const std::vector<Tensor>& inputs) {
    absl::StatusOr<Graph> graph = rules->Function(name);
    EXPECT_THAT(graph, IsOk());
    if (graph.ok()) graph = Expand(*graph, *rules);
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return std::vector<double>();
    const auto results = Interpret(*graph, inputs);
    EXPECT_THAT(results, IsOk());
    std::vector<double> values;
    for (int64_t i = 0; results.ok() && i < (*results)[0].size(); ++i) {
      values.push_back((*results)[0].GetDouble(i));
    }
    return values;
  };
  const auto tensor = [](const std::vector<int64_t>& shape,
                         const std::vector<double>& values) {
    return Tensor::FromDoubles(DType::kF32, shape, values);
  };
  // logsumexp(x w): of one output column it is x w itself.
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  const Tensor w = tensor({2, 1}, {5, 7});
  const Tensor dy = tensor({2}, {1, 2});
  EXPECT_THAT(run("gradient", {x, w, dy}), ElementsAre(5, 7, 10, 14));
  EXPECT_THAT(run("curvature", {x, w, dy, x}), ElementsAre(0, 0, 0, 0));
}

TEST_F(VjpTest, SymbolicZerosAndNames) {
  const Graph graph = Parse(R"(
graph (%x: f32[n], %w: f32[n]) -> (y: f32[n], i: i32[n]) {
  %1: f32[n] = neg(%x)
  %2: i32[n] = convert(%w, dtype: i32)
  return y = %1, i = %2
}
)");
  ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, {true, true}, *rules_));
  EXPECT_THAT(vjp.depends, ElementsAre(true, false));
  ASSERT_EQ(vjp.graph.inputs().size(), 3u);
  EXPECT_EQ(vjp.graph.inputs()[2].name, "y.cotangent");
  ASSERT_EQ(vjp.graph.outputs().size(), 4u);
  EXPECT_EQ(vjp.graph.outputs()[2].name, "x.cotangent");
  EXPECT_EQ(vjp.graph.outputs()[3].name, "w.cotangent");
}

TEST_F(VjpTest, RefusesWhatHasNoCotangents) {
  const Graph graph = Parse(R"(
graph (%x: i32[n]) -> (y: i32[n]) {
  %1: i32[n] = neg(%x)
  return y = %1
}
)");
  EXPECT_THAT(Vjp(graph, {true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no cotangent")));
  EXPECT_THAT(Vjp(graph, {true, true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 entries for 1 inputs")));
  EXPECT_THAT(Transpose(graph, {true}, synthetic_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no cotangents")));
}

}  // namespace
}  // namespace cleave
