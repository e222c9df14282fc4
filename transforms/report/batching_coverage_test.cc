#include "transforms/report/batching_coverage.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/rules/rank_bound.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Answer = BatchingRow::Answer;
using Verdict = BatchingRow::Verdict;

constexpr char kOps[] = R"(language 1

op smooth(x: T[A.., n@axis, B..], *, axis: axis(x) = -1) -> T[A.., n, B..]
  where T: float
{
  let e = exp(x - nograd(reduce_max(x, axes: [axis])))
  e / reduce_sum(e, axes: [axis])
}

op affine(x: T[B.., I], w: T[O, I]) -> T[B.., O]
  where T: float
{
  y[b.., o] = sum[i](x[b.., i] * w[o, i])
}

op given(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  vmap (x, w@_) = w * x
}

// The sum in one example is over one axis more of many.
op normalized(x: T[S..]) -> T[S..]
  where T: float
  = x / reduce_sum(x, axes: 0..len(S))

op nonzeros(x: T[n]) -> (y: i64[new k <= n, 1])
  where T: float
  = nonzero(x)

op powers(x: T[S..], *, p: real = 2) -> T[S..]
  where T: float
  = if p == 2 then x * x else x

op chosen(x: T[S..], *, how: {twice, once} = once, eps: real?) -> T[S..]
  where T: float
{
  let z = if how == twice then x + x else x
  if eps then z + eps else z
}

op paired(a: T[S..], b: T[R..]) -> T[broadcast([S, R])..]
  where T: float
  = a + b

op caller(x: T[S..]) -> T[S..]
  where T: float
  = powers(x, p: 2)

aten doubled(Tensor self) -> Tensor
  = self + self

onnx Constant@1(static size: i64) -> (y: f32)
{
  y[i < size[0]] = 1
}
)";

class BatchingCoverageTest : public ::testing::Test {
 protected:
  std::vector<BatchingRow> Rows(const std::string& op) {
    const absl::StatusOr<BatchingCoverage> coverage =
        CoverBatching(*rules_, op);
    EXPECT_THAT(coverage, IsOk());
    return coverage.ok() ? coverage->rows : std::vector<BatchingRow>();
  }

  std::string WhyNoBound(const std::string& op) {
    const absl::StatusOr<RankBound> bound = FindRankBound(*rules_, op);
    EXPECT_THAT(bound, IsOk());
    EXPECT_EQ(bound->holds(), bound->why_not.empty()) << op;
    return bound->why_not;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kOps);
};

TEST_F(BatchingCoverageTest, KeptAndProved) {
  const std::vector<BatchingRow> rows = Rows("smooth");
  ASSERT_EQ(rows.size(), 1);
  EXPECT_THAT(rows[0].batched, ElementsAre("x"));
  EXPECT_EQ(rows[0].answer, Answer::kKept);
  EXPECT_EQ(rows[0].verdict, Verdict::kProved);
  EXPECT_EQ(VerdictName(rows[0]), "PROVED");
  // Ranks 0 to 2 on both sides of the axis.
  EXPECT_EQ(rows[0].calls, 9);
  EXPECT_EQ(rows[0].kept_calls, 9);
  EXPECT_EQ(rows[0].why, "`axis` behind the batch");
}

TEST_F(BatchingCoverageTest, OneAnswerPerSubset) {
  const std::vector<BatchingRow> rows = Rows("affine");
  ASSERT_EQ(rows.size(), 3);
  EXPECT_THAT(rows[0].batched, ElementsAre("x"));
  EXPECT_EQ(rows[0].answer, Answer::kKept);
  EXPECT_EQ(rows[0].verdict, Verdict::kProved);
  // If x is a vector, the batch of w is more of the outputs O.
  EXPECT_THAT(rows[1].batched, ElementsAre("w"));
  EXPECT_EQ(rows[1].answer, Answer::kPartly);
  EXPECT_EQ(rows[1].calls, 3);
  EXPECT_EQ(rows[1].kept_calls, 1);
  EXPECT_EQ(rows[1].verdict, Verdict::kNone);
  EXPECT_THAT(rows[1].why, HasSubstr("argument `w` has 3 axes"));
  EXPECT_THAT(rows[2].batched, ElementsAre("x", "w"));
  EXPECT_EQ(rows[2].answer, Answer::kExpanded);
}

TEST_F(BatchingCoverageTest, GivenPartlyRefused) {
  const std::vector<BatchingRow> given = Rows("given");
  ASSERT_EQ(given.size(), 3);
  EXPECT_EQ(given[0].answer, Answer::kGiven);
  EXPECT_EQ(given[2].answer, Answer::kKept);
  // At rank 0 there is nothing to sum over.
  const std::vector<BatchingRow> partly = Rows("normalized");
  ASSERT_EQ(partly.size(), 1);
  EXPECT_EQ(partly[0].calls, 3);
  EXPECT_NE(partly[0].answer, Answer::kKept);
  EXPECT_THAT(partly[0].why, HasSubstr("(f32["));
  EXPECT_THAT(partly[0].why, HasSubstr("which no example does"));
  const std::vector<BatchingRow> refused = Rows("nonzeros");
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].answer, Answer::kRefused);
  EXPECT_THAT(refused[0].why, HasSubstr("impossible: ragged"));
}

TEST_F(BatchingCoverageTest, HostsAreSampled) {
  const std::vector<BatchingRow> rows = Rows("aten.doubled");
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].answer, Answer::kKept);
  EXPECT_EQ(rows[0].verdict, Verdict::kSampled);
  ASSERT_OK_AND_ASSIGN(const BatchingCoverage none,
                       CoverBatching(*rules_, "onnx.Constant"));
  EXPECT_THAT(none.rows, IsEmpty());
  EXPECT_EQ(none.why, "it has no tensor inputs");
  EXPECT_THAT(CoverBatching(*rules_, "nothing"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(BatchingCoverageTest, RankBounds) {
  for (const char* op : {"smooth", "affine", "given", "chosen"}) {
    EXPECT_THAT(WhyNoBound(op), IsEmpty()) << op;
  }
  EXPECT_THAT(WhyNoBound("normalized"), HasSubstr("depends on ranks"));
  EXPECT_THAT(WhyNoBound("powers"), HasSubstr("a branch rests on `p"));
  EXPECT_THAT(WhyNoBound("caller"), HasSubstr("`powers`: a branch"));
  EXPECT_THAT(WhyNoBound("paired"), HasSubstr("a list that is computed"));
  EXPECT_THAT(WhyNoBound("nonzeros"), HasSubstr("run time"));
  EXPECT_THAT(WhyNoBound("aten.doubled"), HasSubstr("no shapes"));
}

TEST_F(BatchingCoverageTest, WithoutABoundItIsExhaustive) {
  const std::vector<BatchingRow> rows = Rows("powers");
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].answer, Answer::kKept);
  EXPECT_EQ(VerdictName(rows[0]), "EXHAUSTIVE(2)");
}

}  // namespace
}  // namespace cleave
