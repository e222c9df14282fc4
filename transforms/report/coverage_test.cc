#include "transforms/report/coverage.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kOps[] = R"(language 1

op derived(x: T[S..]) -> T[S..]
  where T: float
  = exp(x)

op given(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  jvp x = dx * w
  vmap (x, w@_) = w * x
}

op reversed(x: T[S..]) -> T[S..]
  where T: float
{
  exp(x)
  vjp (dy) = (x = dy * exp(x))
}

op whole(x: T[S..]) -> bool[S..]
  where T: float
  = x == floor(x)

op order(m: T[S..]) -> T[S..]
  where T: float
  = polygamma(m, 2)

op nonzeros(x: T[n]) -> (y: i64[new k <= n, 1])
  where T: float
  = nonzero(x)

// A tangent that is 0.
op rounded(x: T[S..]) -> T[S..]
  where T: float
  = round_nearest_even(x)

// Strings have no symbolic value.
op named(x: T[S..], *, mode: str) -> T[S..]
  where T: float
  error value "no such mode" if not mode in ["up", "down"]
  = if mode == "up" then x + 1 else x - 1

aten matrices(Tensor self, Tensor mat2, int[] order) -> Tensor
  error shape "two matrices are needed" if len(shape(self)) != 2 or len(shape(mat2)) != 2
  error value "the axes are needed in order" if order != [0, 1]
  = self @ mat2

aten chosen(Tensor self, Tensor index) -> Tensor
  error type "the index is no integer" if not dtype(index) is int
  error shape "one index is needed" if len(shape(index)) != 1 or len(shape(self)) != 1
{
  y[i < shape(index)[0]] = self[index[i]]
}

aten backward(Tensor grad, Tensor self) -> Tensor
  = vjp derived(self)(grad).x

aten never(Tensor self) -> Tensor
  error value "it is not accepted" if len(shape(self)) >= 0
  = self

onnx Constant@1(static size: i64) -> (y: f32)
{
  y[i < size[0]] = 1
}

onnx Larger@1(A: T, B: T) -> (C: bool) = A > B
)";

class CoverageTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kOps);
};

TEST_F(CoverageTest, GivenAndDerived) {
  ASSERT_OK_AND_ASSIGN(const OpCoverage derived,
                       TransformCoverage(*rules_, "derived"));
  EXPECT_EQ(derived.vmap.kind, Coverage::Kind::kDerived);
  EXPECT_EQ(derived.jvp.kind, Coverage::Kind::kDerived);
  EXPECT_EQ(derived.vjp.kind, Coverage::Kind::kDerived);
  ASSERT_OK_AND_ASSIGN(const OpCoverage given,
                       TransformCoverage(*rules_, "given"));
  EXPECT_EQ(given.vmap.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(given.jvp.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(given.vjp.kind, Coverage::Kind::kDerived);
  ASSERT_OK_AND_ASSIGN(const OpCoverage reversed,
                       TransformCoverage(*rules_, "reversed"));
  EXPECT_EQ(reversed.jvp.kind, Coverage::Kind::kDerived);
  EXPECT_EQ(reversed.vjp.kind, Coverage::Kind::kGiven);
}

TEST_F(CoverageTest, Pairs) {
  ASSERT_OK_AND_ASSIGN(const std::vector<PairCoverage> all,
                       TransformPairs(*rules_, "given"));
  ASSERT_EQ(all.size(), 9u);
  for (const PairCoverage& pair : all) {
    EXPECT_EQ(pair.coverage.kind, Coverage::Kind::kDerived)
        << TransformName(pair.outer) << " of " << TransformName(pair.inner)
        << ": " << pair.coverage.why;
  }
  EXPECT_EQ(all[1].outer, Transform::kVmap);
  EXPECT_EQ(all[1].inner, Transform::kJvp);
  ASSERT_OK_AND_ASSIGN(const std::vector<PairCoverage> whole,
                       TransformPairs(*rules_, "whole"));
  for (const PairCoverage& pair : whole) {
    const bool batches =
        pair.outer == Transform::kVmap && pair.inner == Transform::kVmap;
    EXPECT_EQ(pair.coverage.kind,
              batches ? Coverage::Kind::kDerived : Coverage::Kind::kImpossible);
    EXPECT_EQ(pair.coverage.why, batches ? "" : "discrete");
  }
}

TEST_F(CoverageTest, ImpossibleAndWhy) {
  ASSERT_OK_AND_ASSIGN(const OpCoverage whole,
                       TransformCoverage(*rules_, "whole"));
  EXPECT_EQ(whole.vmap.kind, Coverage::Kind::kDerived);
  EXPECT_EQ(whole.jvp.kind, Coverage::Kind::kImpossible);
  EXPECT_EQ(whole.jvp.why, "discrete");
  EXPECT_EQ(whole.vjp.kind, Coverage::Kind::kImpossible);
  ASSERT_OK_AND_ASSIGN(const OpCoverage order,
                       TransformCoverage(*rules_, "order"));
  EXPECT_EQ(order.jvp.kind, Coverage::Kind::kImpossible);
  EXPECT_THAT(order.jvp.why, HasSubstr("no closed form known"));
  ASSERT_OK_AND_ASSIGN(const OpCoverage nonzeros,
                       TransformCoverage(*rules_, "nonzeros"));
  EXPECT_EQ(nonzeros.vmap.kind, Coverage::Kind::kImpossible);
  EXPECT_THAT(nonzeros.vmap.why, HasSubstr("ragged"));
  EXPECT_THAT(TransformCoverage(*rules_, "nothing"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CoverageTest, ZeroIsADerivative) {
  ASSERT_OK_AND_ASSIGN(const OpCoverage rounded,
                       TransformCoverage(*rules_, "rounded"));
  EXPECT_EQ(rounded.jvp.kind, Coverage::Kind::kDerived);
}

// Types that no declaration gives are found by trial.
TEST_F(CoverageTest, FindsCalls) {
  for (const char* op : {"named", "aten.matrices", "aten.chosen",
                         "aten.backward", "onnx.Larger"}) {
    ASSERT_OK_AND_ASSIGN(const OpCoverage coverage,
                         TransformCoverage(*rules_, op));
    EXPECT_EQ(coverage.vmap.kind, Coverage::Kind::kDerived) << op;
    const bool discrete = op == std::string("onnx.Larger");
    EXPECT_EQ(coverage.jvp.kind,
              discrete ? Coverage::Kind::kImpossible : Coverage::Kind::kDerived)
        << op;
  }
}

TEST_F(CoverageTest, NamesTheObstacle) {
  ASSERT_OK_AND_ASSIGN(const OpCoverage never,
                       TransformCoverage(*rules_, "aten.never"));
  EXPECT_EQ(never.vmap.kind, Coverage::Kind::kNotSupported);
  EXPECT_THAT(never.vmap.why, HasSubstr("no call that it accepts was found"));
  EXPECT_THAT(never.vmap.why, HasSubstr("it is not accepted"));
  ASSERT_OK_AND_ASSIGN(const OpCoverage constant,
                       TransformCoverage(*rules_, "onnx.Constant"));
  EXPECT_EQ(constant.vmap.kind, Coverage::Kind::kImpossible);
  EXPECT_EQ(constant.vmap.why, "ragged: all of its inputs are static");
}

}  // namespace
}  // namespace cleave
