// Rules that are wrong at few integers: at one power of two, between two of
// them, at one constant. Each is refuted at any seed, and its right form
// agrees.

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr int kSeeds = 3;

std::string Identity(const std::string& body) {
  return absl::StrCat("language 1\n\nop checked(x: T[S..]) -> T[S..]\n",
                      "  where T: int\n  spec y = x\n  = ", body, "\n");
}

VerdictKind KindOf(const CheckReport& report, Layer layer) {
  if (report.ops.size() != 1) return VerdictKind::kNotChecked;
  return report.ops[0].layers.at(layer).kind;
}

// In the values of the wide dtypes, and at their special ones.
void ExpectRefuted(const std::string& text) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = CheckTextAt("test.rules", text, "checked", seed);
    EXPECT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kDisagrees)
        << text << report.ToString();
    EXPECT_EQ(KindOf(report, Layer::kEdges), VerdictKind::kDisagrees)
        << text << report.ToString();
  }
}

void ExpectAgrees(const std::string& text) {
  const CheckReport report = CheckTextAt("test.rules", text, "checked", 1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ExitStatus(), 0) << text << report.ToString();
  EXPECT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kAgrees)
      << report.ToString();
}

TEST(IntSamples, ReachEachRangeBetweenPowersOfTwo) {
  for (const int k : {16, 24, 29}) {
    ExpectRefuted(
        Identity(absl::StrCat("if T in [i32, i64, u64] then select(x > 2^", k,
                              " and x < 2^", k + 1, " - 3, 0, x) else x + 0")));
  }
  for (const int k : {33, 47, 61}) {
    ExpectRefuted(
        Identity(absl::StrCat("if T in [i64, u64] then select(x > 2^", k,
                              " and x < 2^", k + 1, " - 3, 0, x) else x + 0")));
  }
}

// A turn at a call without axes shows nothing: an example as it stands does.
TEST(IntSamples, MeetEachDTypeAtAnExample) {
  const std::string text = R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: real
  error shape "extents are 7" if len([n for n in S if n != 7]) > 0
  spec y = x
  = if T == i8 and len(S) > 0 then x + 1 else x + 0

example checked([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
)";
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = CheckTextAt("test.rules", text, "checked", seed);
    EXPECT_EQ(report.ExitStatus(), 1) << report.ToString();
  }
}

TEST(IntSamples, ReachRangesThatNoConstantTells) {
  ExpectRefuted(
      Identity("if T in [i64, u64] then select(shift_right(x, 40) == 1 and x > "
               "0, 0, x) else x + 0"));
  ExpectAgrees(
      Identity("if T in [i64, u64] then select(shift_right(x, 40) == 1 and x > "
               "0, x, x) else x + 0"));
}

TEST(IntSamples, ReachConstantsAndTheirNeighbours) {
  ExpectRefuted(Identity(
      "if T == i64 then select(x == 123456789123456789, 0, x) else x + 0"));
  ExpectRefuted(Identity(
      "if T == u64 then select(x == 12345678912345678912, 0, x) else x + 0"));
}

TEST(IntSamples, ReachThemInTensors) {
  const std::string text = R"(language 1

op checked(x: T[n]) -> T[n]
  where T: int
  spec y[i] = x[n - 1 - i]
{
  let r = reverse(x, axes: [0])
  if T == i64 then select(r > 2^40, r - $, r) else r
}
)";
  const auto with = [&text](const std::string& wrong) {
    std::string replaced = text;
    return replaced.replace(replaced.find('$'), 1, wrong);
  };
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report =
        CheckTextAt("test.rules", with("1"), "checked", seed);
    EXPECT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kDisagrees)
        << report.ToString();
  }
  ExpectAgrees(with("0"));
}

// The smears of 1 to 16 fill 32 bits below the first one: none of 64 random
// ones is missing but where they are few.
TEST(IntSamples, ReachNumbersOfFewBits) {
  const std::string text = R"(language 1

op checked(x: T[S..]) -> T[S..]
  where T: int
  let bits = if T in [i8, u8] then 8 else if T in [i16, u16] then 16 else if T in [i32, u32] then 32 else 64
  let top = if T in [i8, i16, i32, i64] then bits - 1 else bits
  spec y = select(x < 0, 0, fold(c = 0, k in 0..top) { c + select(x >= 2^k, 1, 0) })
{
  let v = fold(v = x, s in [s for s in [1, 2, 4, 8, 16$] if s < bits]) { v or shift_right(v, s) }
  select(x < 0, 0, fold(c = 0, k in 0..bits) { c + (shift_right(v, k) and 1) })
}
)";
  const auto with = [&text](const std::string& more) {
    std::string replaced = text;
    return replaced.replace(replaced.find('$'), 1, more);
  };
  ExpectRefuted(with(""));
  ExpectAgrees(with(", 32"));
}

TEST(IntSamples, TakeAnyFixedDType) {
  for (const char* const dtype :
       {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"}) {
    const auto with = [dtype](const char* body) {
      return absl::StrCat("language 1\n\nop checked(x: ", dtype, "[S..]) -> ",
                          dtype, "[S..]\n  spec y = x\n  = ", body, "\n");
    };
    ExpectAgrees(with("x + 0"));
    ExpectRefuted(with("select(x > 2^5 and x < 2^6 - 3, 0, x)"));
  }
}

// Indices stay such, as far as the dtype has them.
TEST(IntSamples, TakeIndicesOfAnyFixedDType) {
  for (const char* const dtype : {"u8", "i8", "u16", "u32", "u64", "i32"}) {
    const auto with = [dtype](const char* index) {
      return absl::StrCat(
          "language 1\n\nop checked(x: T[n], at: ", dtype, "[m]) -> T[m]\n",
          "  where T: float\n  spec {\n    let a = convert(at, dtype: i64)\n",
          "    y[i] = sum[j if j == a[i]](x[j])\n  }\n",
          "  accuracy T within 1 ulp\n{\n",
          "  y[i] = x[convert(at[i], dtype: i64)", index, "] ?? 0\n}\n");
    };
    ExpectAgrees(with(""));
    const CheckReport report =
        CheckTextAt("test.rules", with(" + 1"), "checked", 1);
    EXPECT_EQ(KindOf(report, Layer::kRounding), VerdictKind::kDisagrees)
        << report.ToString();
  }
}

}  // namespace
}  // namespace cleave
