// Ops whose `error` clauses refuse most of what is drawn: the combinations that
// they take are met all the same, and a report says where some are not.

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr int kSeeds = 5;

// A filter of an odd window, which is longer than `order`; at `only` it gives
// `wrong`.
std::string Filter(const std::string& only, const std::string& wrong) {
  return absl::StrCat(R"(language 1

op checked(x: T[n], *, window: dim, order: int, deriv: int = 0,
    mode: {inner, mirror, constant, nearest, wrap} = inner) -> T[n]
  where T: float
  let m = (window - 1) // 2
  error value "the window has an odd length" if 2 * m + 1 != window
  error value "order must be less than the window" if order < 0 or order >= window
  error value "deriv must not be negative" if deriv < 0
  error shape "the window is longer than the input" if mode == inner and window > n
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
  = if )",
                      only, " then ", wrong, " else x + x\n");
}

CheckReport Check(const std::string& text, uint64_t seed) {
  return CheckTextAt("test.rules", text, "checked", seed);
}

TEST(RefusedSamples, MeetEachPairThatTheOpTakes) {
  for (const char* const only :
       {"order == 3 and deriv == 2", "mode == inner and order == 3",
        "mode == wrap and order == 2"}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const CheckReport report = Check(Filter(only, "x"), seed);
      ASSERT_EQ(report.ops.size(), 1u);
      EXPECT_EQ(report.ops[0].layers.at(Layer::kRounding).kind,
                VerdictKind::kDisagrees)
          << only << " at seed " << seed << "\n"
          << report.ToString();
    }
  }
}

TEST(RefusedSamples, RightFormAgrees) {
  const CheckReport report = Check(Filter("order == 3", "2 * x"), 1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ExitStatus(), 0) << report.ToString();
}

// No sample is as long as the op wants one to be.
TEST(RefusedSamples, ReportSaysWhatIsNotMet) {
  const CheckReport report = Check(R"(language 1

op checked(x: T[n], *, a: int = 0, b: int = 0) -> T[n]
  where T: float
  error shape "n is large where a is" if a == 3 and n < 1000
  spec y[i] = (2 + a) * x[i]
  accuracy T within 2 ulp
{
  y[i] = x[i] + x[i] + (if a == 0 then 0 else a * x[i] + b * 0)
}
)",
                                   1);
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_THAT(
      report.ToString(),
      testing::ContainsRegex("\nchecked attributes: [0-9]+ of [0-9]+ pairs in "
                             "[0-9]+ combinations, the others not: the op "
                             "rejected [0-9]+ calls\n"));
}

}  // namespace
}  // namespace cleave
