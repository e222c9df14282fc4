// Scans whose rounds do not read each other, on threads.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "engine/runtime/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using Results = absl::StatusOr<std::vector<Tensor>>;

// Rounds of m x m elements, with rounds of m elements within. %z is nobody's
// result.
constexpr char kSums[] =
    R"(graph (%x: f32[n, m, m]) -> (s: f32[n, m]) {
  %1: f32[n, m], f32[n] = scan(%x, body: graph (%e: f32[m, m]) -> (y: f32[m], z: f32[]) {
    %1: f32[m] = scan(%e, body: graph (%r: f32[m]) -> (y: f32[]) {
      %1: f32[] = reduce_sum(%r, axes: [0])
      return y = %1
    }, carries: 0, consts: 0, length: m, reverse: false)
    %2: f32[] = reduce_max(%1, axes: [0], tie: "even")
    return y = %1, z = %2
  }, carries: 0, consts: 0, length: n, reverse: REVERSE)
  %2: f32[n, m] = result(%1, index: 0)
  return s = %2
})";

// Kernels check divisors before they run.
constexpr char kQuotients[] =
    R"(graph (%x: i32[n, m], %d: i32[n, m]) -> (q: i32[n, m]) {
  %1: i32[n, m] = scan(%x, %d, body: graph (%a: i32[m], %b: i32[m]) -> (q: i32[m]) {
    %1: i32[m] = floor_div(%a, %b)
    return q = %1
  }, carries: 0, consts: 0, length: n, reverse: false)
  return q = %1
})";

Tensor Numbers(DType dtype, const std::vector<int64_t>& shape) {
  Tensor x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.SetDouble(i, static_cast<double>(i * 7 % 32 + 1));
  }
  return x;
}

RunOptions On(ThreadPool* pool) {
  RunOptions options;
  options.call.pool = pool;
  return options;
}

TEST(ScanLoop, HasTheSameBitsOnAnyThreads) {
  for (const char* reverse : {"false", "true"}) {
    std::string text = kSums;
    text.replace(text.find("REVERSE"), 7, reverse);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(ParseCase(text), Numerics(), CaseOptions()));
    // Few rounds and many, small ones and such that threads share.
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0, 3, 3},
                                              {1, 64, 64},
                                              {3, 200, 200},
                                              {100, 5, 5},
                                              {100, 40, 40}}) {
      const Tensor x = Numbers(DType::kF32, shape);
      std::vector<double> want;
      for (int64_t row = 0; row < shape[0] * shape[1]; ++row) {
        double& sum = want.emplace_back(0);
        for (int64_t i = 0; i < shape[2]; ++i) {
          sum += x.GetDouble(row * shape[2] + i);
        }
      }
      for (const int threads : {1, 2, 5}) {
        const std::unique_ptr<ThreadPool> pool = MakeThreadPool(threads);
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> y,
                             kernel.Run({x}, On(pool.get())));
        ASSERT_EQ(y[0].size(), static_cast<int64_t>(want.size()));
        for (int64_t i = 0; i < y[0].size(); ++i) {
          ASSERT_EQ(y[0].GetDouble(i), want[i])
              << i << " of " << x.ToString() << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(ScanLoop, FailsWithOneOfItsRounds) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(ParseCase(kQuotients),
                                                    Numerics(), CaseOptions()));
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  const Tensor x = Numbers(DType::kI32, {200, 1000});
  Tensor by = Numbers(DType::kI32, {200, 1000});
  ASSERT_OK(kernel.Run({x, by}, On(pool.get())).status());
  for (const int64_t round : {0, 7, 199}) by.SetInt(round * 1000 + round, 0);
  const Results y = kernel.Run({x, by}, On(pool.get()));
  EXPECT_EQ(y.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("zero"));
}

TEST(ScanLoop, EndsWithTheBudgetOfItsCall) {
  std::string text = kSums;
  text.replace(text.find("REVERSE"), 7, "false");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(ParseCase(text), Numerics(), CaseOptions()));
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  const Tensor x = Numbers(DType::kF32, {100, 40, 40});
  Limits limits;
  limits.loop_steps = 99;
  {
    const BudgetScope scope(limits);
    EXPECT_EQ(kernel.Run({x}, On(pool.get())).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  const std::atomic<bool> cancelled{true};
  limits = Limits();
  limits.cancelled = &cancelled;
  const BudgetScope scope(limits);
  EXPECT_EQ(kernel.Run({x}, On(pool.get())).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace cleave
