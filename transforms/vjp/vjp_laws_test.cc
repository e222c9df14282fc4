#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/transpose.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

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

class VjpLawsTest : public ::testing::Test {
 protected:
  // <J v, w> = <v, J^T w> at one random point, for random v and w.
  void ExpectAdjoint(const SampleNode& sample, const Graph& graph,
                     const std::vector<bool>& active, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, *rules_));
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, *rules_));
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
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, *rules_));
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, *rules_));
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

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

// Every primitive, every subset of active operands.
TEST_F(VjpLawsTest, IsTheTransposeOfJvp) {
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
      if (IsOverTheReals(sample.primitive)) {
        ExpectAdjoint(sample, graph, active, ++seed);
      } else {
        ExpectAdjointInF64(sample, graph, active, ++seed);
      }
    }
  }
}

// vjp of vjp against jvp of vjp, in the primals and the cotangents.
TEST_F(VjpLawsTest, IsItsOwnSecondDerivative) {
  uint64_t seed = 11;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!IsOverTheReals(sample.primitive)) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const VjpResult once, Vjp(graph, active, *rules_));
    while (active.size() < once.graph.inputs().size()) active.push_back(true);
    ExpectAdjoint(sample, once.graph, active, ++seed);
  }
}

// jvp of jvp in reverse.
TEST_F(VjpLawsTest, IsTheTransposeOfNestedJvp) {
  uint64_t seed = 12;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!IsOverTheReals(sample.primitive)) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const JvpResult once, Jvp(graph, active, *rules_));
    while (active.size() < once.graph.inputs().size()) active.push_back(true);
    ExpectAdjoint(sample, once.graph, active, ++seed);
  }
}

// vjp of vmap, with all inputs batched.
TEST_F(VjpLawsTest, IsTheTransposeOfVmap) {
  uint64_t seed = 13;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!IsOverTheReals(sample.primitive) ||
        sample.primitive == Primitive::kNonzero) {
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
             std::vector<int>(graph.outputs().size(), 0), *rules_));
    ExpectAdjoint(sample, batched, active, ++seed);
  }
}

// vmap of vjp is vjp of vmap.
TEST_F(VjpLawsTest, CommutesWithVmap) {
  uint64_t seed = 14;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (sample.primitive == Primitive::kNonzero) continue;
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(graph, active, *rules_));
    ASSERT_OK_AND_ASSIGN(
        const Graph one,
        Vmap(vjp.graph, std::vector<int>(vjp.graph.inputs().size(), 0), 3,
             std::vector<int>(vjp.graph.outputs().size(), 0), *rules_));
    ASSERT_OK_AND_ASSIGN(
        const Graph batched,
        Vmap(graph, std::vector<int>(graph.inputs().size(), 0), 3,
             std::vector<int>(graph.outputs().size(), 0), *rules_));
    ASSERT_OK_AND_ASSIGN(const VjpResult other, Vjp(batched, active, *rules_));
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
TEST_F(VjpLawsTest, LinearizeIsBothHalves) {
  uint64_t seed = 15;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (IsUnbounded(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (!Any(active)) continue;
    ASSERT_OK_AND_ASSIGN(const Linearization halves,
                         Linearize(graph, active, *rules_));
    ASSERT_THAT(Verify(halves.primal), IsOk());
    ASSERT_THAT(Verify(halves.linear), IsOk());
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, *rules_));
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
    EXPECT_THAT(Transpose(halves.linear, is_linear, *rules_), IsOk());
  }
}

TEST_F(VjpLawsTest, RefusesLoopsWithoutABound) {
  int unbounded = 0;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!IsUnbounded(sample)) continue;
    ++unbounded;
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    EXPECT_THAT(Vjp(graph, AllActive(sample, graph), *rules_),
                StatusIs(absl::StatusCode::kUnimplemented,
                         HasSubstr("impossible: unbounded loop in reverse")));
  }
  EXPECT_GT(unbounded, 0);
}

}  // namespace
}  // namespace cleave
