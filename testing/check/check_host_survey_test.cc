// Surveys of host kernels: all ways in which one is off, how often, and by how
// much.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/check/check_host_testing.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSoftplus[] =
    "op checked(x: f32[n]) -> f32[n]\n"
    "  = max(x, 0) + log1p(exp(-abs(x)))";

Verdict Survey(const std::string& text, HostFunction kernel) {
  CheckOptions options = WithKernel(std::move(kernel));
  options.host_survey = true;
  return CheckHost(text, options);
}

std::vector<HostFailureKind> Kinds(const Verdict& verdict) {
  std::vector<HostFailureKind> kinds;
  for (const HostFinding& finding : verdict.findings) {
    kinds.push_back(finding.kind);
  }
  return kinds;
}

// log(exp(x) + 1), rounded at each step: it overflows from 88.8 on, and gives 0
// for what is far below 1.
TEST(HostSurvey, FindsEachWayInWhichAKernelIsOff) {
  const Verdict verdict =
      Survey(kSoftplus, OfOne([](double x) {
               const auto e = static_cast<float>(std::exp(x));
               return static_cast<double>(std::log(e + 1.0F));
             }));
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
  ASSERT_THAT(Kinds(verdict), ElementsAre(HostFailureKind::kNotFinite,
                                          HostFailureKind::kInaccurate));
  const HostFinding& overflow = verdict.findings[0];
  EXPECT_GT(overflow.count, 1000);
  EXPECT_EQ(overflow.worst_ulp, 0);
  EXPECT_EQ(overflow.example.got, "inf (inf)");
  EXPECT_EQ(overflow.example.call, "checked(x: f32[1])");
  const HostFinding& lost = verdict.findings[1];
  EXPECT_GT(lost.count, 500);
  // All digits of the smallest results.
  EXPECT_NEAR(lost.worst_ulp, 0x1p24, 0x1p21);
  EXPECT_THAT(lost.worst_at, HasSubstr(" in f32"));
  EXPECT_GT(lost.example.ulp, lost.example.bound);
  // The verdict shows the gravest, and counts what agrees as well.
  EXPECT_EQ(verdict.counterexample->inputs, overflow.example.inputs);
  EXPECT_GT(verdict.samples, overflow.count + lost.count);
}

TEST(HostSurvey, TellsNaNFromInfinities) {
  const Verdict verdict = Survey("op checked(x: f32[n]) -> f32[n]\n  = sqrt(x)",
                                 OfOne([](double x) {
                                   if (std::isinf(x) && x > 0)
                                     return 1.0;           // not the infinity
                                   if (x < 0) return 0.0;  // a number for NaN
                                   if (x > 1e30)
                                     return std::nan("");  // NaN for a number
                                   return std::sqrt(x);
                                 }));
  ASSERT_THAT(Kinds(verdict),
              ElementsAre(HostFailureKind::kNotFinite,
                          HostFailureKind::kSpecial, HostFailureKind::kLostNaN))
      << Shown(verdict);
  EXPECT_EQ(verdict.findings[1].example.got, "1 (0x1p+0)");
  EXPECT_THAT(verdict.findings[2].example.expected, HasSubstr("nan"));
}

TEST(HostSurvey, CountsErrorsAndOtherIntegers) {
  const Verdict integers = Survey(
      "op checked(x: i8[n]) -> i8[n]\n  = x and 3", OfOne([](double x) {
        return static_cast<double>(static_cast<int>(x) & (x == 6 ? 7 : 3));
      }));
  ASSERT_THAT(Kinds(integers), ElementsAre(HostFailureKind::kDiscrete))
      << Shown(integers);
  EXPECT_THAT(integers.findings[0].example.inputs, HasSubstr("6"));
  EXPECT_EQ(integers.findings[0].example.got, "6");
  const Verdict errors =
      Survey("op checked(x: f32[n]) -> f32[n]\n  = 2 * x",
             [](const HostCall&) -> absl::StatusOr<std::vector<Tensor>> {
               return absl::InternalError("out of order");
             });
  ASSERT_THAT(Kinds(errors), ElementsAre(HostFailureKind::kCall))
      << Shown(errors);
  EXPECT_GT(errors.findings[0].count, 10);
  EXPECT_THAT(errors.findings[0].example.got, HasSubstr("out of order"));
}

TEST(HostSurvey, AgreesAsAnyCheckDoes) {
  const Verdict verdict =
      Survey(kSoftplus, OfOne([](double x) {
               return std::log1p(std::exp(-std::abs(x))) + std::fmax(x, 0.0);
             }));
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
  EXPECT_TRUE(verdict.findings.empty());
}

// A difference beside a zero of f64 is more of the smallest numbers than a
// double counts: the bound holds it all the same.
TEST(HostSurvey, BoundsWhatCancelsToZeroInF64) {
  const Verdict verdict =
      Survey("op checked(x: f64[n], y: f64[n]) -> f64[n]\n  = x - y",
             Pointwise([](const std::vector<double>& x, const HostCall&) {
               if (std::abs(x[0]) > 1e300) return x[0] - x[1];
               return x[0] * (1 + 0x1p-52) - x[1];
             }));
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
}

}  // namespace
}  // namespace cleave
