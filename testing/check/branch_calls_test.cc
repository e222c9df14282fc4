// Rules that are wrong in a branch that few calls take.

#include <cstdint>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr int kSeeds = 5;

// The verdicts of `layer` on the text with RIGHT as it stands, and with `wrong`
// in its place, at each seed.
void ExpectRefuted(const std::string& text, const std::string& right,
                   const std::string& wrong, Layer layer) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool is_right : {true, false}) {
      const CheckReport report = CheckTextAt(
          "test.rules",
          absl::StrReplaceAll(text, {{"BODY", is_right ? right : wrong}}),
          "checked", seed);
      ASSERT_EQ(report.ops.size(), 1u);
      EXPECT_EQ(report.ops[0].layers.at(layer).kind,
                is_right ? VerdictKind::kAgrees : VerdictKind::kDisagrees)
          << "seed " << seed << ": " << report.ToString();
    }
  }
}

// Two sizes at once are beyond the integer: such a call is dear, and taken
// once.
TEST(BranchCalls, MeetSizesThatTheRuleComparesWith) {
  ExpectRefuted(R"(language 1

op checked(x: T[n, k]) -> T[n, k]
  where T: float
  spec y[i, j] = sum[l if l <= i](x[l, j])
  accuracy T within (n + 2) eps * sum[l if l <= i](abs(x[l, j]))
{
  if is_long(n) and is_long(k) then BODY else cumsum(x, axis: 0)
}

def is_long(n) = n > 100

op cumsum(x: T[A.., n@axis, B..], *, axis: axis(x)) -> T[A.., n, B..]
  where T: float
{
  linear_scan(1, x, init: 0, axis: axis)
}
)",
                "cumsum(x, axis: 0)", "cumsum(x, axis: 1)", Layer::kRounding);
}

// The body refuses what the op accepts, once it is long.
TEST(BranchCalls, MeetLongCallsThatTheBodyRefuses) {
  ExpectRefuted(R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
{
  if n > 40 then BODY else x + x
}
)",
                "x * 2", "concatenate([x, x], axis: 0)", Layer::kRounding);
}

// So does that of an op whose spec is laws.
TEST(BranchCalls, MeetLongCallsThatTheBodyOfLawsRefuses) {
  ExpectRefuted(R"(language 1

op checked(x: T[n]) -> (y: T[n])
  where T: float
  spec not abs(y[i] - 2 * x[i]) > 0
{
  (y = if n > 40 then BODY else x + x)
}
)",
                "x * 2", "concatenate([x, x], axis: 0)", Layer::kExamples);
}

// One of 64 combinations, of which pairs are in few.
TEST(BranchCalls, MeetWhatThreeAttributesDecide) {
  ExpectRefuted(R"(language 1

op checked(x: T[n], *, a: {p, q, r, s} = p, b: {t, u, v, w} = t, c: {k, l, m, o} = k) -> T[n]
  where T: float
  spec y[i] = x[n - 1 - i]
  accuracy T within 1 ulp
{
  let y = reverse(x, axes: [0])
  if a == s then
    if b == w then
      if c == o then BODY else y
    else y
  else y
}
)",
                "y", "x", Layer::kRounding);
}

// No matrix of ordinary numbers is within the domain once it is large.
TEST(BranchCalls, MeetLargeMatricesWithLargeDiagonals) {
  ExpectRefuted(R"(language 1

op checked(a: T[n, n]) -> (y: T[n, n])
  where T: float
  domain reduce_all(2 * abs(diagonal(a)) > row_sums(abs(a)), axes: [0], keepdims: false)
  spec not abs(y[i, j] - a[j, i]) > 0
{
  (y = if n > 12 then BODY else transpose(a, axes: [1, 0]))
}

def row_sums(a)
{
  y[i] = sum[j](a[i, j])
}

def diagonal(a)
{
  y[i] = a[i, i]
}
)",
                "transpose(a, axes: [1, 0])", "a", Layer::kExamples);
}

}  // namespace
}  // namespace cleave
