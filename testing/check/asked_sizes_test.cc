// Sizes that all calls are to have (`check --size n=200`).

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

using testing::HasSubstr;

// The sums of the squares of 200 rows of 700, and a derivative that goes by the
// extent. Over the reals each slope of such a call takes seconds.
OpReport CheckedAtLargeSizes(const std::string& slope) {
  const auto rules =
      LoadText("test.rules", absl::StrReplaceAll(R"(language 1

op checked(x: T[n, m]) -> (y: T[n])
  where T: float
  spec y[i] = sum[j](x[i, j] * x[i, j])
  accuracy T within (m + 2) eps * sum[j](x[i, j] * x[i, j])
{
  (y = total(x * x))
  jvp x = if m > 600 then SLOPE else 2 * total(x * dx)
}

def total(x) = reduce_sum(x, axes: [1], keepdims: false)
)",
                                                 {{"SLOPE", slope}}));
  CheckOptions options;
  options.ops = "checked";
  options.sizes = {{"n", 200}, {"m", 700}};
  options.layers = {Layer::kTransforms};
  options.seconds_per_op = 60;
  return CheckedRules(rules, options).ops.at(0);
}

TEST(AskedSizes, HaveSlopesThatAreScreened) {
  const Verdict right =
      CheckedAtLargeSizes("2 * total(x * dx)").layers.at(Layer::kTransforms);
  EXPECT_EQ(right.kind, VerdictKind::kAgrees) << right.why;
  EXPECT_THAT(right.notes, testing::Contains(HasSubstr("in f64 alone")));
  const Verdict wrong =
      CheckedAtLargeSizes("total(x * dx)").layers.at(Layer::kTransforms);
  EXPECT_EQ(wrong.kind, VerdictKind::kDisagrees) << wrong.why;
}

}  // namespace
}  // namespace cleave
