#include "transforms/jvp/jvp.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// Central differences at h = 2^-80 leave about 2^-160.
constexpr int kBits = 400;
constexpr int kStepExponent = -80;
constexpr double kTolerance = 1e-40;

// x + sign 2^-80 dx.
RealTensor Step(const RealTensor& x, const RealTensor& dx, int sign) {
  RealTensor y = x;
  for (size_t i = 0; i < y.reals.size(); ++i) {
    Real step = dx.reals[i];
    mpfr_mul_2si(step.get(), step.get(), kStepExponent, MPFR_RNDN);
    if (sign > 0) {
      mpfr_add(y.reals[i].get(), x.reals[i].get(), step.get(), MPFR_RNDN);
    } else {
      mpfr_sub(y.reals[i].get(), x.reals[i].get(), step.get(), MPFR_RNDN);
    }
  }
  return y;
}

// (f(x + h dx) - f(x - h dx)) / 2 h, element by element.
std::vector<Real> CentralDifference(const RealTensor& plus,
                                    const RealTensor& minus) {
  std::vector<Real> slopes;
  for (size_t i = 0; i < plus.reals.size(); ++i) {
    Real slope(kBits);
    mpfr_sub(slope.get(), plus.reals[i].get(), minus.reals[i].get(), MPFR_RNDN);
    mpfr_mul_2si(slope.get(), slope.get(), -kStepExponent - 1, MPFR_RNDN);
    slopes.push_back(slope);
  }
  return slopes;
}

// |a - b| <= tolerance max(1, |b|).
bool Near(const Real& a, const Real& b, double tolerance) {
  Real difference(kBits);
  mpfr_sub(difference.get(), a.get(), b.get(), MPFR_RNDN);
  return std::fabs(difference.ToDouble()) <=
         tolerance * std::fmax(1, std::fabs(b.ToDouble()));
}

class JvpTest : public ::testing::Test {
 protected:
  // Compares jvp of `graph` in the inputs `active` with central differences, at
  // one random point in one random direction.
  void ExpectDerivative(const SampleNode& sample, const Graph& graph,
                        const std::vector<bool>& active, uint64_t seed) {
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, *rules_));
    ASSERT_THAT(Verify(jvp.graph), IsOk());
    std::mt19937_64 random(seed);
    SampleNode direction = sample;
    direction.low = -1;
    direction.high = 1;
    direction.ties = false;
    std::vector<RealTensor> primals;
    std::vector<RealTensor> tangents;
    std::vector<RealTensor> plus;
    std::vector<RealTensor> minus;
    for (size_t i = 0; i < active.size(); ++i) {
      const TensorType& type = graph.type(graph.inputs()[i].value);
      const std::vector<int64_t> shape = ConstantShape(type);
      primals.push_back(RealTensor::FromTensor(
          DrawTensor(sample, type.dtype, shape, random), kBits));
      plus.push_back(primals[i]);
      minus.push_back(primals[i]);
      if (!active[i]) continue;
      tangents.push_back(RealTensor::FromTensor(
          DrawTensor(direction, type.dtype, shape, random), kBits));
      plus[i] = Step(primals[i], tangents.back(), 1);
      minus[i] = Step(primals[i], tangents.back(), -1);
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<RealTensor> ahead,
                         InterpretReal(graph, plus, kBits));
    ASSERT_OK_AND_ASSIGN(const std::vector<RealTensor> back,
                         InterpretReal(graph, minus, kBits));
    std::vector<RealTensor> arguments = primals;
    arguments.insert(arguments.end(), tangents.begin(), tangents.end());
    ASSERT_OK_AND_ASSIGN(const std::vector<RealTensor> results,
                         InterpretReal(jvp.graph, arguments, kBits));
    size_t next = graph.outputs().size();
    for (size_t j = 0; j < graph.outputs().size(); ++j) {
      if (!jvp.has_tangent[j]) {
        EXPECT_FALSE(IsFloat(graph.type(graph.outputs()[j].value).dtype));
        continue;
      }
      const std::vector<Real> expected = CentralDifference(ahead[j], back[j]);
      const RealTensor& got = results[next++];
      ASSERT_EQ(got.reals.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(Near(got.reals[i], expected[i], kTolerance))
            << "output " << j << ", element " << i << ": "
            << got.reals[i].ToString(30) << ", not " << expected[i].ToString(30)
            << "\n"
            << PrintGraph(jvp.graph);
      }
    }
  }

  void ExpectSecondDerivative(const SampleNode& sample, uint64_t seed) {
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    std::vector<bool> again = active;
    for (bool is_active : active) {
      if (is_active) again.push_back(true);
    }
    if (again.size() == active.size()) return;
    ASSERT_OK_AND_ASSIGN(const JvpResult once, Jvp(graph, active, *rules_));
    // The tangents are drawn as the sample's floats are.
    ExpectDerivative(sample, once.graph, again, seed);
  }

  void ExpectCommutesWithVmap(const SampleNode& sample, uint64_t seed) {
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const std::vector<bool> active = AllActive(sample, graph);
    if (ActiveMask(sample, graph) == 0) return;
    const Dim batch = 3;
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, active, *rules_));
    ASSERT_OK_AND_ASSIGN(
        const Graph one,
        Vmap(jvp.graph, std::vector<int>(jvp.graph.inputs().size(), 0), batch,
             std::vector<int>(jvp.graph.outputs().size(), 0), *rules_));
    ASSERT_OK_AND_ASSIGN(
        const Graph batched,
        Vmap(graph, std::vector<int>(graph.inputs().size(), 0), batch,
             std::vector<int>(graph.outputs().size(), 0), *rules_));
    ASSERT_OK_AND_ASSIGN(const JvpResult other, Jvp(batched, active, *rules_));
    std::mt19937_64 random(seed);
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

  static std::vector<bool> AllActive(const SampleNode& sample,
                                     const Graph& graph) {
    const uint32_t mask = ActiveMask(sample, graph);
    std::vector<bool> active;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      active.push_back((mask >> i & 1) != 0);
    }
    return active;
  }

  // Floats that can be active. polygamma has no derivative in its order.
  static uint32_t ActiveMask(const SampleNode& sample, const Graph& graph) {
    uint32_t mask = 0;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (IsFloat(graph.type(graph.inputs()[i].value).dtype)) mask |= 1u << i;
    }
    if (sample.primitive == Primitive::kPolygamma) mask &= ~1u;
    return mask;
  }

  // nograd is the identity with derivative 0.
  bool Checked(const SampleNode& sample) {
    return sample.primitive != Primitive::kNograd &&
           IsOverTheReals(sample.primitive);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

// Every primitive, every subset of active operands.
TEST_F(JvpTest, IsTheDerivative) {
  uint64_t seed = 20261121;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (!Checked(sample)) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const uint32_t all = ActiveMask(sample, graph);
    for (uint32_t mask = all; mask != 0; mask = (mask - 1) & all) {
      SCOPED_TRACE(absl::StrCat("active ", mask));
      std::vector<bool> active;
      for (size_t i = 0; i < graph.inputs().size(); ++i) {
        active.push_back((mask >> i & 1) != 0);
      }
      ExpectDerivative(sample, graph, active, ++seed);
    }
  }
}

// jvp of jvp against differences of jvp, in the primals and the tangents.
TEST_F(JvpTest, IsTheSecondDerivative) {
  uint64_t seed = 7;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (Checked(sample)) ExpectSecondDerivative(sample, ++seed);
  }
}

// vmap of jvp is jvp of vmap, bit by bit.
TEST_F(JvpTest, CommutesWithVmap) {
  uint64_t seed = 99;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (sample.primitive == Primitive::kNonzero) continue;
    ExpectCommutesWithVmap(sample, ++seed);
  }
}

constexpr char kComposites[] = R"(language 1

op twice(x: T[S..]) -> T[S..]
  where T: float
  = 2 * x

op weighed(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  jvp x = dx * (w + 0)
}

op softmax(x: T[A.., n@axis, B..], *, axis: axis(x) = -1) -> T[A.., n, B..]
  where T: float
  compute acc
{
  let e = exp(x - nograd(reduce_max(x, axes: [axis])))
  e / reduce_sum(e, axes: [axis])
}

op slope(x: T[S..], dx: T[S..]) -> T[S..]
  where T: float
  = jvp weighed(x, x)(dx)
)";

TEST_F(JvpTest, Golden) {
  const auto rules = LoadTestRules(context_, kComposites);
  TestGoldenFile("transforms/jvp/testdata/jvp.golden",
                 [&](absl::string_view input) -> std::string {
                   const size_t end = input.find('\n');
                   const std::vector<std::string> names =
                       absl::StrSplit(input.substr(7, end - 7), ' ');
                   absl::StatusOr<Graph> graph =
                       ParseGraph(input.substr(end), context_);
                   EXPECT_THAT(graph, IsOk());
                   if (!graph.ok()) return "";
                   std::vector<bool> active;
                   for (const NamedValue& value : graph->inputs()) {
                     active.push_back(std::find(names.begin(), names.end(),
                                                value.name) != names.end());
                   }
                   absl::StatusOr<JvpResult> jvp = Jvp(*graph, active, *rules);
                   EXPECT_THAT(jvp, IsOk());
                   if (!jvp.ok()) return "";
                   EXPECT_THAT(Verify(jvp->graph), IsOk());
                   return PrintGraph(jvp->graph);
                 });
}

// The primal call and its tangent share their nodes once both are expanded.
TEST_F(JvpTest, ExpandedCallsShareTheirNodes) {
  const auto rules = LoadTestRules(context_, kComposites);
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = softmax(%x, axis: 1)
  return y = %1
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(graph, {true}, *rules));
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(jvp.graph, *rules));
  int exps = 0;
  for (uint32_t id = 0; id < expanded.size(); ++id) {
    exps += expanded.node(Value{id}).op == ToOpId(Primitive::kExp) ? 1 : 0;
  }
  EXPECT_EQ(exps, 1) << PrintGraph(expanded);
}

// The attributes that a transform adds to a call have names that no rule's
// attribute has.
TEST_F(JvpTest, AttributesHaveAnyName) {
  const auto rules = LoadTestRules(context_, R"(language 1

op scaled(x: T[n], b: T[n]?, *, active: bool = true, live: int = 2,
          layout: int = 3, batched: int = 5) -> T[n]
  where T: float
{
  let s = if active then x * (live * layout * batched) else x
  if b then s + b else s
}

fn forward(x: f32[n], dx: f32[n]) -> f32[n]
  = jvp scaled(x, active: false, layout: 7)(dx)

fn backward(x: f32[n], dy: f32[n]) -> f32[n]
  = (vjp scaled(x, live: 7, layout: 11)(dy)).x
)");
  const auto expand = [&](const char* name) {
    const absl::StatusOr<Graph> graph = rules->Function(name);
    EXPECT_THAT(graph, IsOk());
    const absl::StatusOr<Graph> expanded = Expand(*graph, *rules);
    EXPECT_THAT(expanded, IsOk());
    return PrintGraph(*expanded);
  };
  EXPECT_EQ(expand("forward"),
            R"(graph (%x: f32[n], %dx: f32[n]) -> (y: f32[n]) {
  return y = %dx
}
)");
  EXPECT_THAT(expand("backward"), HasSubstr("value: 385.0"));
}

TEST_F(JvpTest, IsAnExpressionOfRules) {
  const auto rules = LoadTestRules(context_, kComposites);
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n], %dx: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = slope(%x, %dx)
  return y = %1
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(graph, *rules));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(expanded, {Tensor::FromDoubles(DType::kF32, {2}, {3, 4}),
                           Tensor::FromDoubles(DType::kF32, {2}, {1, 10})}));
  EXPECT_EQ(results[0].GetDouble(0), 3);
  EXPECT_EQ(results[0].GetDouble(1), 40);
}

TEST_F(JvpTest, LeavesSymbolicZerosOut) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n], %w: f32[n]) -> (y: f32[n], z: f32[n], i: i32[n]) {
  %1: f32[n] = mul(%x, %w)
  %2: f32[n] = neg(%w)
  %3: i32[n] = convert(%1, dtype: i32)
  return y = %1, z = %2, i = %3
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const JvpResult sparse,
                       Jvp(graph, {true, false}, *rules_, {false, {}}));
  EXPECT_THAT(sparse.has_tangent, ::testing::ElementsAre(true, false, false));
  EXPECT_EQ(sparse.graph.outputs().size(), 4u);
  ASSERT_OK_AND_ASSIGN(const JvpResult dense,
                       Jvp(graph, {true, false}, *rules_));
  EXPECT_THAT(dense.has_tangent, ::testing::ElementsAre(true, true, false));
  EXPECT_EQ(dense.graph.outputs()[3].name, "y.tangent");
  EXPECT_EQ(dense.graph.outputs()[4].name, "z.tangent");
}

TEST_F(JvpTest, NestsWithNewNames) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = sin(%x)
  return y = %1
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const JvpResult once, Jvp(graph, {true}, *rules_));
  ASSERT_OK_AND_ASSIGN(const JvpResult twice,
                       Jvp(once.graph, {true, true}, *rules_));
  std::vector<std::string> names;
  for (const NamedValue& input : twice.graph.inputs()) {
    names.push_back(input.name);
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("x", "x.tangent", "x.tangent.tangent",
                                     "x.tangent.tangent.tangent"));
}

TEST_F(JvpTest, RefusesWhatHasNoTangents) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: i32[n]) -> (y: i32[n]) {
  %1: i32[n] = neg(%x)
  return y = %1
}
)",
                                                     context_));
  EXPECT_THAT(Jvp(graph, {true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no tangents")));
  EXPECT_THAT(Jvp(graph, {true, true}, *rules_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 entries for 1 inputs")));
}

}  // namespace
}  // namespace cleave
