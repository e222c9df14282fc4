#include "ops/status_macros.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<int>> MakePositive(int value) {
  if (value <= 0) return absl::OutOfRangeError("not positive");
  return std::make_unique<int>(value);
}

absl::Status Require(bool condition, int* calls) {
  ++*calls;
  if (!condition) return absl::FailedPreconditionError("required");
  return absl::OkStatus();
}

absl::StatusOr<int> Sum(int a, int b) {
  CLEAVE_ASSIGN_OR_RETURN(const std::unique_ptr<int> left, MakePositive(a));
  std::unique_ptr<int> right;
  CLEAVE_ASSIGN_OR_RETURN(right, MakePositive(b));
  return *left + *right;
}

absl::Status RequireBoth(bool first, bool second, int* calls) {
  CLEAVE_RETURN_IF_ERROR(Require(first, calls));
  CLEAVE_RETURN_IF_ERROR(Require(second, calls));
  return absl::OkStatus();
}

TEST(StatusMacros, AssignsValues) { EXPECT_THAT(Sum(2, 3), IsOkAndHolds(5)); }

TEST(StatusMacros, ReturnsTheFirstErrorOfAnAssignment) {
  EXPECT_THAT(Sum(-1, 3), StatusIs(absl::StatusCode::kOutOfRange,
                                   HasSubstr("not positive")));
  EXPECT_THAT(Sum(1, 0), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(StatusMacros, ReturnsTheFirstError) {
  int calls = 0;
  EXPECT_THAT(RequireBoth(true, true, &calls), IsOk());
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_THAT(RequireBoth(false, true, &calls),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(calls, 1);
}

TEST(StatusMatchers, SayWhatTheyFound) {
  const absl::StatusOr<int> error = absl::NotFoundError("no axis");
  EXPECT_THAT(error, ::testing::Not(IsOk()));
  EXPECT_THAT(error, ::testing::Not(IsOkAndHolds(1)));
  EXPECT_THAT(absl::StatusOr<int>(2), ::testing::Not(IsOkAndHolds(1)));
  ::testing::StringMatchResultListener listener;
  EXPECT_FALSE(
      ::testing::ExplainMatchResult(IsOkAndHolds(1), error, &listener));
  EXPECT_THAT(listener.str(), HasSubstr("NOT_FOUND: no axis"));
}

TEST(StatusMatchers, AssignOrFail) {
  ASSERT_OK_AND_ASSIGN(const int sum, Sum(1, 2));
  EXPECT_EQ(sum, 3);
  EXPECT_OK(Sum(1, 2));
}

}  // namespace
}  // namespace cleave
