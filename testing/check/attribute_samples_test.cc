// Rules that are wrong at few values of an attribute that no `if` compares:
// below 0, at large ones, beyond where a static `max` or `min` turns over.

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

struct Planted {
  const char* name;
  const char* type;   // of the attribute c
  const char* wrong;  // for `right`, an expression of c
  const char* right;
};

VerdictKind RoundingOf(const Planted& planted, const char* factor,
                       uint64_t seed) {
  const CheckReport report = CheckTextAt(
      "test.rules",
      absl::Substitute(
          R"(language 1

op checked(x: T[n], *, c: $0 = 12) -> T[n]
  where T: float
  spec y[i] = x[i] * ($1)
  accuracy T within 1 ulp
{
  $3x * ($2)
}
)",
          planted.type, planted.right, factor,
          absl::StrContains(factor, "d") ? "let d = c - 7\n  " : ""),
      "checked", seed);
  EXPECT_EQ(report.ops.size(), 1u);
  return report.ops.empty() ? VerdictKind::kNotChecked
                            : report.ops[0].layers.at(Layer::kRounding).kind;
}

class AttributeSamplesTest : public testing::TestWithParam<Planted> {};

TEST_P(AttributeSamplesTest, IsRefutedAtEachSeed) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ(RoundingOf(GetParam(), GetParam().wrong, seed),
              VerdictKind::kDisagrees)
        << seed;
  }
}

TEST_P(AttributeSamplesTest, RightFormAgrees) {
  EXPECT_EQ(RoundingOf(GetParam(), GetParam().right, 1), VerdictKind::kAgrees);
}

std::string Name(const testing::TestParamInfo<Planted>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Values, AttributeSamplesTest,
    testing::Values(
        Planted{"below_zero", "real", "sqrt(c * c)", "c"},
        Planted{"large", "real", "c - (c + 4) // 150", "c"},
        Planted{"turns_at_zero", "real", "max(c, -c)", "c"},
        Planted{"bounded_above", "real", "min(c, 2000)", "c"},
        Planted{"bounded_below", "real", "max(c, -4321)", "c"},
        Planted{"bounded_at_a_line", "real", "min(2 * c, 5003 - c)", "2 * c"},
        Planted{"bounded_by_name", "real", "max(d, -3000) + 7", "c"},
        Planted{"size_bounded_above", "real", "max(-c, min(abs(c), 4000))",
                "abs(c)"},
        Planted{"int_bounded_above", "int", "min(c, 20)", "c"},
        Planted{"int_between_bounds", "int", "max(min(c, 20), -15)",
                "max(min(c, 20), -16)"}),
    Name);

// A sum in a dtype of the caller's choice that is wrong in one of them.
VerdictKind RoundingWrongAt(const char* dtype) {
  const CheckReport report = CheckTextAt("test.rules",
                                         absl::Substitute(R"(language 1

op checked(x: T[n], *, D: dtype = T) -> D[n]
  where T: number, D: number
  spec y[i] = convert(x[i], dtype: D) + convert(x[i], dtype: D)
  accuracy D within 1 ulp
{
  let z = convert(x, dtype: D)
  if D == $0 then z + 3 else 2 * z
}
)",
                                                          dtype),
                                         "checked", 1);
  EXPECT_EQ(report.ops.size(), 1u);
  return report.ops.empty() ? VerdictKind::kNotChecked
                            : report.ops[0].layers.at(Layer::kRounding).kind;
}

TEST(AttributeSamples, MeetEachDTypeOfTheWhereClause) {
  for (const char* const dtype : {"f64", "f32", "f16", "bf16", "i64", "i32",
                                  "u8", "i8", "u16", "i16", "u32", "u64"}) {
    EXPECT_EQ(RoundingWrongAt(dtype), VerdictKind::kDisagrees) << dtype;
  }
}

}  // namespace
}  // namespace cleave
