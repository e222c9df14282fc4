// Calls whose slopes take seconds over the reals: at sizes that all calls are
// to have (`check --size n=200`), and at that of an example.

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

// The verdict on the slopes of a rule, with `slope` in the place of SLOPE.
Verdict SlopesOf(const std::string& text, const std::string& slope,
                 const std::map<std::string, int64_t>& sizes) {
  const auto rules =
      LoadText("test.rules", absl::StrReplaceAll(text, {{"SLOPE", slope}}));
  CheckOptions options;
  options.ops = "checked";
  options.sizes = sizes;
  options.layers = {Layer::kTransforms};
  options.dtypes = {DType::kF64};
  options.seconds_per_op = 120;
  return CheckedRules(rules, options).ops.at(0).layers.at(Layer::kTransforms);
}

void ExpectRefuted(const std::string& text, const std::string& right,
                   const std::string& wrong,
                   const std::map<std::string, int64_t>& sizes) {
  const Verdict agrees = SlopesOf(text, right, sizes);
  EXPECT_EQ(agrees.kind, VerdictKind::kAgrees) << agrees.why;
  const Verdict disagrees = SlopesOf(text, wrong, sizes);
  EXPECT_EQ(disagrees.kind, VerdictKind::kDisagrees) << disagrees.why;
}

TEST(DearSlopes, AreScreenedAtSizesThatWereAskedFor) {
  ExpectRefuted(R"(language 1

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
                "2 * total(x * dx)", "total(x * dx)", {{"n", 200}, {"m", 700}});
}

TEST(DearSlopes, AreScreenedAtTheSizesOfExamples) {
  ExpectRefuted(R"(language 1

op checked(x: T[n, n]) -> (y: T[])
  where T: float
  spec y = sum[i, j, k](x[i, k] * x[k, j])
  accuracy T within 4 * n eps * sum[i, j, k](abs(x[i, k] * x[k, j]))
{
  (y = total(product(x, x)))
  jvp x = total(product(dx, x)) + (if n > 64 then SLOPE else total(product(x, dx)))
}

def product(a, b)
{
  y[i, j] = sum[k](a[i, k] * b[k, j])
}

def total(x) = reduce_sum(x, axes: [0, 1], keepdims: false)

example checked(full([65, 65], 0.0)) = 0.0
)",
                "total(product(x, dx))", "0", {});
}

}  // namespace
}  // namespace cleave
