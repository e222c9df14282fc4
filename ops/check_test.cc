#include "ops/check.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(Check, PassesQuietlyAndEvaluatesNoMessage) {
  int evaluated = 0;
  CLEAVE_CHECK(1 + 1 == 2) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, IsOneStatement) {
  bool reached_else = false;
  if (1 + 1 == 3)
    CLEAVE_CHECK(true);
  else
    reached_else = true;
  EXPECT_TRUE(reached_else);
}

TEST(CheckDeathTest, AbortsWithPlaceConditionAndMessage) {
  const int rank = 3;
  EXPECT_DEATH(CLEAVE_CHECK(rank < 2) << "rank " << rank,
               "check_test.cc:[0-9]+: check failed: rank < 2 rank 3");
}

TEST(Check, PassesOkStatus) { CLEAVE_CHECK_OK(absl::OkStatus()); }

TEST(CheckDeathTest, AbortsOnErrorStatus) {
  EXPECT_DEATH(CLEAVE_CHECK_OK(absl::NotFoundError("no such axis")),
               "NOT_FOUND: no such axis");
}

}  // namespace
}  // namespace cleave
