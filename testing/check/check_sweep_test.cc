// Sweeps over small parts: their verdicts are those of 256 bits.

#include "testing/check/layers/check_sweep.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/reference/clause_rules.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// Parts of 2^16 points.
constexpr int kParts = 1 << 16;
// Parts of f32, by the upper half of the bits: 1 to 1.0078, small ones, NaN.
constexpr int kOfOne = 0x3f80 + 1;
constexpr int kOfMinusTwo = 0xc000 + 1;
constexpr int kOfDenormals = 0 + 1;
constexpr int kOfLarge = 0x7f7f + 1;
constexpr int kOfInfinityAndNan = 0x7f80 + 1;

constexpr char kRules[] = R"(language 1

op soft(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = 0.5 * x[s..] * (1 + erf(x[s..] / sqrt(2)))
  accuracy T within 4 ulp + 4 cond
{
  0.5 * x * erfc(-x * sqrt(0.5))
}

op slope(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = select(x[s..] < 0, 0, x[s..])
  special y = x if isnan(x)
{
  max(x, 0)
}

/// Wrong at one f32: 1.001 is 0x3f8020c5.
op pinned(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] * 2
{
  select(x == 1.00100004673004150390625, x * 2.0000005, x * 2)
}

op ratio(x: T[S..], y: T[S..]) -> T[S..]
  where T: float
  spec z[s..] = x[s..] / y[s..]
{
  x / y
}

op gamma_like(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = lgamma(x[s..])
  accuracy T within 8 ulp + 8 cond
{
  lgamma(x)
}

op summed(x: T[n]) -> T[]
  where T: float
  spec y = sum[i](x[i])
  accuracy T within n eps * sum[i](abs(x[i]))
{
  reduce_sum(x, axes: [0], keepdims: false)
}
)";

class SweepTest : public ::testing::Test {
 protected:
  SweepTest()
      : rules_(LoadText("test.rules", kRules)),
        clauses_(ClauseRules::Make(
            rules_, {"soft", "slope", "pinned", "ratio", "gamma_like"})) {}

  OpContext ContextOf(const std::string& op) const {
    OpContext context;
    context.clauses = &clauses_;
    context.item = clauses_.rules().Find(op);
    context.shown = context.item;
    return context;
  }

  Verdict Check(const std::string& op, DType dtype, int operands,
                int part) const {
    return CheckSweep(ContextOf(op), {op, dtype, operands, part, kParts});
  }

  const std::shared_ptr<const RuleSet> rules_;
  const ClauseRules clauses_;
};

TEST_F(SweepTest, AreThoseOfPointwiseOpsWithFewValues) {
  const auto names = [&](const std::string& op,
                         const std::set<DType>& dtypes = {}) {
    std::vector<std::string> list;
    for (const Sweep& sweep : SweepsOf(*rules_, *rules_->Find(op), dtypes)) {
      list.push_back(sweep.Name());
    }
    return list;
  };
  ASSERT_EQ(names("soft").size(), 64u);
  EXPECT_EQ(names("soft")[2], "sweep soft f32 03/64");
  EXPECT_EQ(names("ratio").size(), 128u);
  EXPECT_EQ(names("ratio", {DType::kBF16})[0], "sweep ratio bf16 01/64");
  EXPECT_TRUE(names("ratio", {DType::kF32}).empty());
  EXPECT_TRUE(names("summed").empty());
  EXPECT_EQ(WholeSweep("sweep soft f32 03/64"), "sweep soft f32");
  EXPECT_EQ(OpOfSweep("sweep soft f32 03/64"), "soft");
  EXPECT_EQ(WholeSweep("softplus"), "");
}

// The same points by 256 bits alone.
Verdict Slowly(const OpContext& context, const PreparedCall& call,
               const std::vector<Tensor>& points) {
  Verdict verdict;
  CompareCounts counts;
  const auto comparer =
      ValueComparer::Make(*context.clauses, call.call, call.graphs);
  EXPECT_OK(comparer);
  CompareAt(context, *comparer, points, verdict, counts);
  return verdict;
}

TEST_F(SweepTest, HaveTheVerdictsOf256Bits) {
  for (const char* op : {"soft", "slope"}) {
    OpContext context = ContextOf(op);
    context.dtypes = {DType::kF32};
    const PreparedCalls prepared =
        PrepareCalls(context, PrepareConcreteCalls(context));
    ASSERT_FALSE(prepared.calls.empty());
    for (const int part :
         {kOfOne, kOfMinusTwo, kOfDenormals, kOfLarge, kOfInfinityAndNan}) {
      Tensor points(DType::kF32, {1 << 16});
      auto* const bits = reinterpret_cast<uint32_t*>(points.mutable_data());
      for (uint32_t i = 0; i < 1 << 16; ++i) {
        bits[i] = (static_cast<uint32_t>(part - 1) << 16) + i;
      }
      const Verdict slow = Slowly(context, prepared.calls[0], {points});
      const Verdict fast = Check(op, DType::kF32, 1, part);
      ASSERT_EQ(fast.kind, VerdictKind::kAgrees)
          << op << " " << part << ": " << fast.ToString();
      EXPECT_EQ(fast.strength, Strength::kExhaustive);
      EXPECT_EQ(fast.samples, 1 << 16);
      EXPECT_EQ(fast.samples, slow.samples);
      EXPECT_EQ(fast.worst_ulp, slow.worst_ulp) << op << " " << part;
    }
  }
}

TEST_F(SweepTest, FindTheOneWrongPoint) {
  const Verdict verdict = Check("pinned", DType::kF32, 1, kOfOne);
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << verdict.ToString();
  EXPECT_THAT(verdict.counterexample->inputs, HasSubstr("x = 1.001 "));
  EXPECT_THAT(verdict.counterexample->replay,
              HasSubstr("--tier full --op 'sweep pinned f32"));
  EXPECT_EQ(Check("pinned", DType::kF32, 1, kOfOne + 1).kind,
            VerdictKind::kAgrees);
}

TEST_F(SweepTest, TakePairsOfSixteenBits) {
  // 1, -inf, a NaN and -0 with all others.
  for (const int part : {0x3c00 + 1, 0xfc00 + 1, 0x7e00 + 1, 0x8000 + 1}) {
    const Verdict verdict = Check("ratio", DType::kF16, 2, part);
    EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << verdict.ToString();
    EXPECT_EQ(verdict.strength, Strength::kExhaustive);
    EXPECT_EQ(verdict.samples, 1 << 16);
    EXPECT_LE(verdict.worst_ulp, 0.5);
  }
}

TEST_F(SweepTest, SayWhyTheyAreNotChecked) {
  const Verdict verdict = Check("gamma_like", DType::kF32, 1, kOfOne);
  EXPECT_EQ(verdict.kind, VerdictKind::kNotChecked);
  EXPECT_THAT(verdict.why, HasSubstr("`lgamma`"));
}

}  // namespace
}  // namespace cleave
