// Sizes that all calls are to have (`check --size n=200`).

#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

// The verdict on the sums of the squares of 200 rows of 700, and on a
// derivative that goes by the extent. Over the reals each slope of such a call
// takes seconds.
Verdict SlopesOf(const std::string& slope) {
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
  options.dtypes = {DType::kF64};
  options.seconds_per_op = 120;
  return CheckedRules(rules, options).ops.at(0).layers.at(Layer::kTransforms);
}

TEST(AskedSizes, HaveSlopesThatAreScreened) {
  const Verdict right = SlopesOf("2 * total(x * dx)");
  EXPECT_EQ(right.kind, VerdictKind::kAgrees) << right.why;
  const Verdict wrong = SlopesOf("total(x * dx)");
  EXPECT_EQ(wrong.kind, VerdictKind::kDisagrees) << wrong.why;
}

}  // namespace
}  // namespace cleave
