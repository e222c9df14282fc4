#include "ops/budget.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Budget, CountsNothingWithoutAScope) {
  EXPECT_TRUE(ChargeBudget(BudgetKind::kLoopSteps, int64_t{1} << 60).ok());
  EXPECT_TRUE(CheckTensorBytes(int64_t{1} << 60).ok());
}

TEST(Budget, CountsNestedScopesTogether) {
  Limits limits;
  limits.loop_steps = 10;
  const BudgetScope scope(limits);
  for (int i = 0; i < 10; ++i) {
    const BudgetScope inner;
    EXPECT_TRUE(ChargeBudget(BudgetKind::kLoopSteps).ok());
  }
  const absl::Status status = ChargeBudget(BudgetKind::kLoopSteps);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("more than 10 steps of loops"),
                    HasSubstr("Limits::loop_steps (--max-steps)")));
  // The whole call is at its end, but a renewed scope counts from zero.
  EXPECT_EQ(PollBudget(), status);
  EXPECT_EQ(ChargeBudget(BudgetKind::kNodes), status);
  const BudgetScope renewed(limits, BudgetScope::Mode::kRenew);
  EXPECT_TRUE(ChargeBudget(BudgetKind::kLoopSteps, 10).ok());
}

TEST(Budget, DefaultsCountForEachCall) {
  Limits limits;
  limits.loop_steps = 10;
  const BudgetScope defaults(limits, BudgetScope::Mode::kDefaults);
  EXPECT_TRUE(ChargeBudget(BudgetKind::kLoopSteps, 100).ok());
  for (int i = 0; i < 3; ++i) {
    const BudgetScope call;
    EXPECT_EQ(CurrentLimits().loop_steps, 10);
    EXPECT_TRUE(ChargeBudget(BudgetKind::kLoopSteps, 10).ok());
    EXPECT_FALSE(ChargeBudget(BudgetKind::kLoopSteps).ok());
  }
  EXPECT_TRUE(PollBudget().ok());
}

TEST(Budget, NamesHowItGotThere) {
  Limits limits;
  limits.bodies = 0;
  const BudgetScope scope(limits);
  const BudgetFrame a("a");
  const BudgetFrame b("b");
  EXPECT_THAT(std::string(ChargeBudget(BudgetKind::kBodies).message()),
              HasSubstr("in `a` -> `b`;"));
  const BudgetFrame c("c"), d("d"), e("e"), f("f");
  const BudgetScope renewed(limits, BudgetScope::Mode::kRenew);
  EXPECT_THAT(std::string(ChargeBudget(BudgetKind::kBodies).message()),
              HasSubstr("in `a` -> `b` -> `c` -> `d` -> .. (2 more);"));
}

TEST(Budget, CountsTensorsWhileTheyLive) {
  Limits limits;
  limits.tensor_bytes = 1000;
  absl::StatusOr<Tensor> kept;
  {
    const BudgetScope scope(limits);
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK_AND_ASSIGN(const Tensor x, Tensor::Create(DType::kF32, {200}));
    }
    kept = Tensor::Create(DType::kF32, {200});
    ASSERT_TRUE(kept.ok());
    EXPECT_EQ(Tensor::Create(DType::kF32, {100}).status().code(),
              absl::StatusCode::kResourceExhausted);
    kept = absl::UnknownError("");
    kept = Tensor::Create(DType::kF32, {100});
    ASSERT_TRUE(kept.ok());
  }
  // A tensor may outlive the scope.
  kept = absl::UnknownError("");
}

TEST(Budget, EndsWhenItIsCancelled) {
  std::atomic<bool> cancelled{false};
  Limits limits;
  limits.cancelled = &cancelled;
  const BudgetScope scope(limits);
  EXPECT_TRUE(PollBudget().ok());
  cancelled = true;
  EXPECT_EQ(PollBudget().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(BudgetEnded());
  const BudgetScope renewed({}, BudgetScope::Mode::kRenew);
  EXPECT_TRUE(BudgetEnded());
}

TEST(Budget, EndsAtItsDeadline) {
  Limits limits;
  limits.deadline = std::chrono::steady_clock::now();
  const BudgetScope scope(limits);
  int polls = 0;
  while (PollBudget().ok()) ASSERT_LT(++polls, 1000);
  EXPECT_EQ(PollBudget().code(), absl::StatusCode::kDeadlineExceeded);
}

absl::StatusOr<int> Down(int levels) {
  return Deeper([&]() -> absl::StatusOr<int> {
    // Big enough for the frame to count.
    volatile char room[1024];
    room[0] = 1;
    if (levels == 0) return static_cast<int>(room[0]);
    return Down(levels - 1);
  });
}

void* DownOnSmallStack(void* result) {
  *static_cast<absl::StatusOr<int>*>(result) = Down(19000);
  return nullptr;
}

TEST(Budget, GoesDeepOnASmallStack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  pthread_t thread;
  absl::StatusOr<int> result;
  ASSERT_EQ(pthread_create(&thread, &attributes, DownOnSmallStack, &result), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result, 1);
}

TEST(Budget, LimitsDepthWithoutAScope) {
  const absl::StatusOr<int> result = Down(1'000'000);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("more than 20000 levels of depth"));
}

TEST(Budget, DetachedScopeHasLimitsOfItsOwn) {
  const std::atomic<bool> cancelled{true};
  Limits limits;
  limits.cancelled = &cancelled;
  const BudgetScope scope(limits);
  ASSERT_FALSE(PollBudget().ok());
  {
    const BudgetScope detached({}, BudgetScope::Mode::kDetached);
    EXPECT_TRUE(PollBudget().ok());
    EXPECT_EQ(CurrentLimits().cancelled, nullptr);
  }
  EXPECT_FALSE(PollBudget().ok());
}

}  // namespace
}  // namespace cleave
