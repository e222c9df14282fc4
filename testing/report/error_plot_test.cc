// Profiles of errors, and their drawings.

#include "testing/report/error_plot.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/layers/error_profile.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ErrorProfile, BinsAreUniformInUlp) {
  const ErrorProfile profile(DType::kF32, "x");
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(profile.BinOf(-largest), 0);
  EXPECT_EQ(profile.BinOf(largest), ErrorProfile::kBins - 1);
  EXPECT_EQ(profile.BinOf(0), ErrorProfile::kBins / 2);
  // Half of the positive floats are below 1.
  EXPECT_NEAR(profile.BinOf(1), ErrorProfile::kBins * 3 / 4, 1);
  EXPECT_NEAR(profile.BinOf(-1), ErrorProfile::kBins / 4, 1);
}

TEST(ErrorProfile, KeepsTheLargestOfABin) {
  ErrorProfile profile(DType::kF32, "x");
  EXPECT_EQ(profile.Worst(), nullptr);
  profile.Add(1.5, 0.25);
  profile.Add(1.515625, 0.75);
  profile.Add(1.53125, 0.5);
  profile.Add(-2, 0.5);
  profile.Add(INFINITY, 7);
  profile.Add(1, NAN);
  EXPECT_EQ(profile.samples(), 4);
  ASSERT_NE(profile.Worst(), nullptr);
  EXPECT_EQ(profile.Worst()->worst_ulp, 0.75);
  EXPECT_EQ(profile.Worst()->worst_at, 1.515625);
  EXPECT_EQ(profile.Worst()->samples, 3);
}

TEST(ErrorProfile, PrefersF32) {
  std::optional<ErrorProfile> profile;
  EXPECT_NE(ProfileFor(profile, DType::kBF16, "x"), nullptr);
  EXPECT_EQ(ProfileFor(profile, DType::kF64, "x"), nullptr);
  ASSERT_NE(ProfileFor(profile, DType::kF32, "x"), nullptr);
  EXPECT_EQ(profile->dtype(), DType::kF32);
  EXPECT_EQ(ProfileFor(profile, DType::kBF16, "x"), nullptr);
}

TEST(ErrorPlot, MarksTheLargest) {
  ErrorProfile profile(DType::kF32, "x");
  profile.Add(-88, 1.5);
  profile.Add(2, 0.5);
  const std::string plot = ErrorPlot(profile, "Error of the value");
  EXPECT_THAT(
      plot,
      HasSubstr("Error of the value in ULP of f32 at 2 inputs, with default "
                "attributes; at most 1.5, at x = -88 (-0x1.6p+6)"));
  EXPECT_THAT(plot, HasSubstr("class=\"witness\""));
  // The largest at the top of the scale, a third of it at a third.
  EXPECT_THAT(plot, HasSubstr("V14"));
  EXPECT_THAT(plot, HasSubstr(">1.5</text>"));
  EXPECT_THAT(plot, HasSubstr(">1e19</text>"));
}

TEST(ErrorPlot, ScalesLargeErrorsByTheirLogarithm) {
  ErrorProfile profile(DType::kF64, "x");
  profile.Add(3, 1e6);
  profile.Add(5e9, std::numeric_limits<double>::infinity());
  const std::string plot = ErrorPlot(profile, "Error");
  EXPECT_THAT(plot, HasSubstr(">1e+06</text>"));
  EXPECT_THAT(plot, HasSubstr("at most inf, at x = 5e"));
  EXPECT_THAT(plot, Not(HasSubstr("nan")));
}

TEST(ErrorPlot, IsFlatWithoutErrorsAndNoneWithoutSamples) {
  ErrorProfile profile(DType::kF16, "x");
  EXPECT_EQ(ErrorPlot(profile, "Error"), "");
  profile.Add(1, 0);
  const std::string plot = ErrorPlot(profile, "Error");
  EXPECT_THAT(plot, HasSubstr("at most 0"));
  EXPECT_THAT(plot, Not(HasSubstr("witness")));
}

}  // namespace
}  // namespace cleave
