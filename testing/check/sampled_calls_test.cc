// The calls that are sampled of an op, and what a report says of them.

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr int kSeeds = 5;

TEST(SampledCalls, NotesSayWhatWasSampled) {
  const CheckReport report = CheckTextAt("test.rules",
                                         R"(language 1

op checked(x: T[n], *, k: int = 0, up: bool = true) -> T[n]
  where T: float
  spec y[i] = if up then select(i < k, 0, x[i]) else x[i]
  accuracy T within 1 ulp
{
  y[i] = if up then select(i >= k, x[i], 0) else x[i]
}
)",
                                         "checked", 1);
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(Layer::kRounding);
  ASSERT_EQ(verdict.kind, VerdictKind::kAgrees) << report.ToString();
  EXPECT_THAT(verdict.notes,
              testing::Contains(testing::HasSubstr("of 21 pairs")));
  EXPECT_THAT(verdict.notes,
              testing::Contains(testing::AllOf(testing::StartsWith("extents "),
                                               testing::HasSubstr(" 65537"))));
}

// Heads that divide heads, and a mask that broadcasts: few calls are taken of
// those that are drawn without care.
TEST(SampledCalls, MeetWhatAnOpAsksOfSizes) {
  const char* const text = R"(language 1

op checked(q: T[B.., H, L], k: T[B.., G, L], mask: M[R..]?) -> T[B.., H, L]
  where T: float, M: any
  error shape "heads must divide heads" if G == 0 or H % G != 0
  error type "the mask must be bool" if mask and not M is bool
  error shape "the mask does not broadcast" if mask and broadcast([B ++ [H, L], R]) != B ++ [H, L]
  spec {
    let m[b.. < B, h < H, l < L] = if mask then broadcast_to(mask, shape: B ++ [H, L])[b.., h, l] else true
    y[b.., h, l] = select(m[b.., h, l], q[b.., h, l] * k[b.., h // (H // G), l], 0)
  }
  accuracy T within 1 ulp
{
  let m[b.. < B, h < H, l < L] = if mask then broadcast_to(mask, shape: B ++ [H, L])[b.., h, l] else true
  y[b.., h, l] = select(m[b.., h, l], k[b.., h // (H // G), l] * q[b.., h, l], 0)
}
)";
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = CheckTextAt("test.rules", text, "checked", seed);
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ExitStatus(), 0) << report.ToString();
  }
}

// The same of calls with one axis that is large: a mistake that is there alone
// is found at every seed, whatever else the op refuses.
TEST(SampledCalls, MeetWhatAnOpAsksOfLargeSizes) {
  const char* const text = R"(language 1

op checked(q: T[B.., H, L, E], k: T[B.., G, S, E], mask: M[R..]?, *, grouped: bool = false) -> T[B.., H, S]
  where T: float, M: any
  let group = if G == 0 then 1 else H // G
  error shape "heads must divide heads" if H != G and (not grouped or G == 0 or H % G != 0)
  error type "the mask must be bool" if mask and not M is bool
  error shape "the mask does not broadcast" if mask and broadcast([B ++ [H, S], R]) != B ++ [H, S]
  error shape "as many columns" if L != E
  spec {
    let m[b.. < B, h < H, s < S] = if mask then broadcast_to(mask, shape: B ++ [H, S])[b.., h, s] else true
    y[b.., h, s] = select(m[b.., h, s], max[i, e](q[b.., h, i, e] + k[b.., h // group, s, e]), 0)
  }
  accuracy T within 1 ulp
{
  let m[b.. < B, h < H, s < S] = if mask then broadcast_to(mask, shape: B ++ [H, S])[b.., h, s] else true
  let y[b.., h, s] = select(m[b.., h, s], max[e](max[i](k[b.., h // group, s, e] + q[b.., h, i, e])), 0)
  if S > 64 then y * 2 else y
}
)";
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = CheckTextAt("test.rules", text, "checked", seed);
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ExitStatus(), 1) << seed << report.ToString();
    EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
              VerdictKind::kDisagrees)
        << seed << report.ToString();
  }
}

// A slope of the rule's own that is wrong along one axis, and there only where
// it is long: its sums are too dear to be derived over the reals.
TEST(SampledCalls, MeetSlopesAtLargeSizes) {
  const std::string text = R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = sum[j, e < 16](x[i] * x[j] * (e + 1))
  accuracy T within 2 ulp + 2 cond
{
  y[i] = 136 * x[i] * sum[j](x[j])
  jvp x = LINE
}

def slope(x, dx)
{
  y[i] = 136 * (dx[i] * sum[j](x[j]) + x[i] * sum[j](dx[j]))
}
)";
  const auto with = [&](const char* line) {
    return absl::StrReplaceAll(text, {{"LINE", line}});
  };
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport right =
        CheckTextAt("test.rules", with("slope(x, dx)"), "checked", seed);
    ASSERT_EQ(right.ops.size(), 1u);
    EXPECT_EQ(right.ops[0].layers.at(Layer::kTransforms).kind,
              VerdictKind::kAgrees)
        << right.ToString();
    const CheckReport wrong = CheckTextAt(
        "test.rules", with("if n > 60 then 2 * slope(x, dx) else slope(x, dx)"),
        "checked", seed);
    ASSERT_EQ(wrong.ops.size(), 1u);
    EXPECT_EQ(wrong.ops[0].layers.at(Layer::kTransforms).kind,
              VerdictKind::kDisagrees)
        << wrong.ToString();
  }
}

// Numbers whose squares overflow beside others, by which a rule that looks for
// any of the latter takes their way.
TEST(SampledCalls, MeetNumbersOfTwoScales) {
  const std::string text = R"(language 1

op checked(x: f64[n]) -> f64[]
  spec y[] = sqrt(sum[i](x[i]^2))
  accuracy f64 within 4 ulp + 2 cond
{
  let a = abs(x)
  let fits = CHOICE(x == 0 or a > 2^-400 and a < 2^400, axes: [0], keepdims: false)
  let largest[] = max[i](a[i])
  let scale = select(fits or largest == 0 or isinf(largest), 1, largest)
  y[] = scale * sqrt(sum[i]((x[i] / scale)^2))
}
)";
  const auto verdict = [&](const char* choice, uint64_t seed) {
    const CheckReport report = CheckTextAt(
        "test.rules", absl::StrReplaceAll(text, {{"CHOICE", choice}}),
        "checked", seed);
    return report.ops.empty() ? VerdictKind::kInconclusive
                              : report.ops[0].layers.at(Layer::kRounding).kind;
  };
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_EQ(verdict("reduce_all", seed), VerdictKind::kAgrees);
    EXPECT_EQ(verdict("reduce_any", seed), VerdictKind::kDisagrees);
  }
}

// A branch by the rank, of numbers that few elements of ordinary ones are.
TEST(SampledCalls, MeetFarNumbersAtAllRanks) {
  const char* const text = R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = select(x <= 8, x, 2 * x)
  accuracy T within 1 ulp
{
  let twice = if len(S) == 2 then x * 3 else x * 2
  select(x > 8, twice, x)
}
)";
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = CheckTextAt("test.rules", text, "checked", seed);
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
              VerdictKind::kDisagrees)
        << report.ToString();
  }
}

// Where a body asks for the shape, points at another one tell nothing of it.
TEST(SampledCalls, MeetBranchesAtTheShapesThatDecide) {
  for (const char* shape : {"size(S) == 5", "len(S) == 2", "size(S) > 30"}) {
    const std::string text = absl::StrCat(R"(language 1

op checked(x: T[S..], q: T[S..]) -> T[S..]
  where T: float
  spec y = select(x == 3 and q < -40, x, q)
  accuracy T within 1 ulp
{
  let chosen = select()",
                                          shape, R"(, q, x)
  select(x == 3 and q < -40, chosen, q)
}
)");
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const CheckReport report =
          CheckTextAt("test.rules", text, "checked", seed);
      ASSERT_EQ(report.ops.size(), 1u);
      EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
                VerdictKind::kDisagrees)
          << shape << ": " << report.ToString();
    }
  }
}

// At n = 65537 there are more elements than an int64_t counts, which is
// undefined behaviour where nobody looks: UndefinedBehaviorSanitizer tells.
TEST(SampledCalls, LeaveOutTensorsBeyondAllCounts) {
  const CheckReport report = CheckTextAt("test.rules",
                                         R"(language 1

op checked(x: T[n, n, n, n]) -> T[n, n, n, n]
  where T: float
  spec y[i, j, k, l] = 2 * x[i, j, k, l]
  accuracy T within 1 ulp
{
  x + x
}
)",
                                         "checked", 1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ExitStatus(), 0) << report.ToString();
}

// In fewer digits than accumulators have the body converts what the spec does
// not: it is the same computation all the same.
TEST(SampledCalls, SpecThatIsTheBodyIsNoEvidence) {
  const CheckReport report = CheckTextAt("test.rules", R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  compute acc
  spec y[i] = sin(x[i]) * x[i]
  accuracy T within 3 ulp + 2 cond
{
  y[i] = sin(x[i]) * x[i]
}
)",
                                         "checked", 1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kReals).kind,
            VerdictKind::kNotIndependent)
      << report.ToString();
}

// An op of empty tensors alone has no value to compare.
TEST(SampledCalls, AgreementOnNothingIsInconclusive) {
  const CheckReport report = CheckTextAt("test.rules",
                                         R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  error shape "not empty" if n > 0
  spec y[i] = x[i] + x[i]
  accuracy T within 1 ulp
{
  y[i] = 2 * x[i]
}
)",
                                         "checked", 1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
            VerdictKind::kInconclusive)
      << report.ToString();
}

}  // namespace
}  // namespace cleave
