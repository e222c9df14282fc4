#include "transforms/coverage.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/test_rules.h"

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

op whole(x: T[S..]) -> bool[S..]
  where T: float
  = x == floor(x)

op order(m: T[S..]) -> T[S..]
  where T: float
  = polygamma(m, 2)

op nonzeros(x: T[n]) -> (y: i64[new k <= n, 1])
  where T: float
  = nonzero(x)
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
  EXPECT_EQ(derived.vjp.kind, Coverage::Kind::kNotSupported);
  EXPECT_EQ(derived.vjp.why, "reverse mode is not built yet");
  ASSERT_OK_AND_ASSIGN(const OpCoverage given,
                       TransformCoverage(*rules_, "given"));
  EXPECT_EQ(given.vmap.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(given.jvp.kind, Coverage::Kind::kGiven);
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

}  // namespace
}  // namespace cleave
