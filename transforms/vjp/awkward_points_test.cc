// Holds the rules to the conventions of testdata/awkward_points.json: values,
// both modes, and second derivatives in all four nestings, in f64 and f32; and
// rules/conventions.md to what is in that file.

#include <cctype>
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
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/names.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/awkward_points_testing.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

const std::vector<AwkwardGroup>& Groups() {
  static const auto& groups = *new std::vector<AwkwardGroup>(
      ReadAwkwardPoints("transforms/vjp/testdata/awkward_points.json"));
  return groups;
}

std::vector<AwkwardPoint> Points() {
  std::vector<AwkwardPoint> points;
  for (const AwkwardGroup& group : Groups()) {
    points.insert(points.end(), group.points.begin(), group.points.end());
  }
  return points;
}

// The shipped ops, loaded once.
std::shared_ptr<const RuleSet> Core() {
  static const auto& core = *new std::shared_ptr<const RuleSet>(
      LoadTestRules(std::make_shared<Context>(), "", {"core"}));
  return core;
}

// Within a few roundings of numbers of size 1 or their own; what is not finite,
// exactly.
void ExpectNear(const Tensor& got, const Tensor& expected,
                const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const double unit = got.dtype() == DType::kF64 ? 1e-14 : 2e-6;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double a = got.GetDouble(i);
    const double b = expected.GetDouble(i);
    const bool same = std::isnan(b) ? std::isnan(a) : a == b;
    const bool near = std::isfinite(b) &&
                      std::fabs(a - b) <= unit * std::fmax(1, std::fabs(b));
    EXPECT_TRUE(same || near)
        << what << ": " << got.ToString() << ", not " << expected.ToString();
    if (!same && !near) return;
  }
}

bool SameSignsOfZeros(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.size(); ++i) {
    if (b.GetDouble(i) == 0 &&
        std::signbit(a.GetDouble(i)) != std::signbit(b.GetDouble(i))) {
      return false;
    }
  }
  return true;
}

double Dot(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    for (int64_t i = 0; i < a[k].size(); ++i) {
      sum += a[k].GetDouble(i) * b[k].GetDouble(i);
    }
  }
  return sum;
}

class AwkwardPointTest : public ::testing::TestWithParam<AwkwardPoint> {
 protected:
  void Load(DType dtype) {
    const AwkwardPoint& point = GetParam();
    const std::string text = point.RuleText(dtype);
    const LoadResult loaded = ExtendRules(Core(), {"point.rules", text});
    ASSERT_TRUE(loaded.diagnostics.empty()) << loaded.diagnostics[0];
    rules_ = loaded.rules;
    ASSERT_OK_AND_ASSIGN(function_, rules_->Function("f"));
    x_ = Tensors(point.inputs, dtype);
    t_ = Tensors(point.tangents, dtype);
    if (!point.cotangent.empty()) w_ = {point.cotangent[0].ToTensor(dtype)};
    active_.assign(x_.size(), false);
    for (const auto& [name, tangent] : point.tangents) {
      for (size_t i = 0; i < point.inputs.size(); ++i) {
        if (point.inputs[i].first == name) active_[i] = true;
      }
    }
  }

  static std::vector<Tensor> Tensors(const NamedAwkwardArrays& arrays,
                                     DType dtype) {
    std::vector<Tensor> tensors;
    for (const auto& [name, array] : arrays) {
      tensors.push_back(array.ToTensor(dtype));
    }
    return tensors;
  }

  // The last `count` outputs at the inputs, which are concatenated.
  std::vector<Tensor> Run(const Graph& graph,
                          const std::vector<std::vector<Tensor>>& parts,
                          size_t count) {
    std::vector<Tensor> inputs;
    for (const auto& part : parts) {
      inputs.insert(inputs.end(), part.begin(), part.end());
    }
    const absl::StatusOr<Graph> primitives = Expand(graph, *rules_);
    EXPECT_THAT(primitives, IsOk());
    if (!primitives.ok()) return std::vector<Tensor>(count);
    const auto results = Interpret(*primitives, inputs);
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return std::vector<Tensor>(count);
    return {results->end() - count, results->end()};
  }

  void ExpectAll(const std::vector<Tensor>& got,
                 const NamedAwkwardArrays& expected, DType dtype,
                 const std::string& what) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ExpectNear(got[i], expected[i].second.ToTensor(dtype),
                 absl::StrCat(what, " ", expected[i].first));
    }
  }

  void CheckValue(DType dtype) {
    const Tensor value = Run(function_, {x_}, 1)[0];
    const Tensor expected = GetParam().expected.value[0].ToTensor(dtype);
    ExpectNear(value, expected, "value");
    EXPECT_TRUE(SameSignsOfZeros(value, expected)) << value.ToString();
  }

  void CheckFirstOrder(DType dtype) {
    const AwkwardResults& expected = GetParam().expected;
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(function_, active_, *rules_));
    const std::vector<Tensor> dy = Run(jvp.graph, {x_, t_}, 1);
    ExpectNear(dy[0], expected.jvp[0].ToTensor(dtype), "jvp");
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(function_, active_, *rules_));
    const std::vector<Tensor> dx = Run(vjp.graph, {x_, w_}, t_.size());
    ExpectAll(dx, expected.vjp, dtype, "vjp");
    const double forward = Dot(w_, dy);
    const double reverse = Dot(t_, dx);
    if (!std::isfinite(forward) || !std::isfinite(reverse)) return;
    EXPECT_NEAR(forward, reverse, dtype == DType::kF64 ? 1e-12 : 1e-4)
        << "the modes disagree";
  }

  void CheckSecondOrder(DType dtype) {
    const NamedAwkwardArrays& expected = GetParam().expected.second;
    const size_t count = t_.size();
    std::vector<bool> primals = active_;
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(function_, active_, *rules_));
    // Without the result: no zero cotangent of it meets an infinite slope.
    const Graph tangent = WithoutOutputsBefore(jvp.graph, 1);
    primals.resize(tangent.inputs().size(), false);
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp_jvp,
                         Vjp(tangent, primals, *rules_));
    ExpectAll(Run(vjp_jvp.graph, {x_, t_, w_}, count), expected, dtype,
              "vjp of jvp");
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp_jvp,
                         Jvp(tangent, primals, *rules_));
    const Tensor along = Run(jvp_jvp.graph, {x_, t_, t_}, 1)[0];
    const double sum = Dot(t_, Tensors(expected, dtype));
    if (std::isfinite(sum)) {
      EXPECT_NEAR(Dot(w_, {along}), sum, dtype == DType::kF64 ? 1e-12 : 1e-4)
          << "jvp of jvp: " << along.ToString();
    }
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp, Vjp(function_, active_, *rules_));
    const Graph cotangents = WithoutOutputsBefore(vjp.graph, 1);
    primals = active_;
    primals.resize(cotangents.inputs().size(), false);
    ASSERT_OK_AND_ASSIGN(const JvpResult jvp_vjp,
                         Jvp(cotangents, primals, *rules_));
    ExpectAll(Run(jvp_vjp.graph, {x_, w_, t_}, count), expected, dtype,
              "jvp of vjp");
    ASSERT_OK_AND_ASSIGN(const VjpResult vjp_vjp,
                         Vjp(cotangents, primals, *rules_));
    ExpectAll(Run(vjp_vjp.graph, {x_, w_, t_}, count), expected, dtype,
              "vjp of vjp");
  }

  std::shared_ptr<const RuleSet> rules_;
  Graph function_;
  std::vector<bool> active_;
  std::vector<Tensor> x_, t_, w_;
};

TEST_P(AwkwardPointTest, HoldsToConvention) {
  for (DType dtype : {DType::kF64, DType::kF32}) {
    SCOPED_TRACE(DTypeName(dtype));
    Load(dtype);
    if (HasFatalFailure()) return;
    CheckValue(dtype);
    if (!GetParam().tangents.empty()) CheckFirstOrder(dtype);
    if (!GetParam().expected.second.empty()) CheckSecondOrder(dtype);
  }
}

std::string TestName(const ::testing::TestParamInfo<AwkwardPoint>& info) {
  std::string name;
  for (char c : info.param.name) {
    if (std::isalnum(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, AwkwardPointTest, ::testing::ValuesIn(Points()),
                         TestName);

TEST(AwkwardPointsDocument, SaysWhatIsTested) {
  TestGeneratedFile("rules/conventions.md", AwkwardPointsDocument(Groups()));
}

}  // namespace
}  // namespace cleave
