#include "engine/rewrite/evaluate.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kRules[] = R"(language 1
op twice(x: f32[n]) -> f32[n] = x + x
op hosted(x: f32[n]) -> f32[n]
fn f(x: f32[n]) -> f32[n] = twice(x) + 1
fn g(x: f32[n]) -> f32[n] = hosted(twice(x))
)";

std::shared_ptr<const RuleSet> Rules() {
  LoadResult loaded =
      LoadRules({{"test.rules", kRules}}, std::make_shared<Context>());
  for (const auto& diagnostic : loaded.diagnostics) ADD_FAILURE() << diagnostic;
  return loaded.rules;
}

const Tensor& X() {
  static const auto* const x =
      new Tensor(Tensor::FromDoubles(DType::kF32, {2}, {1, 2}));
  return *x;
}

absl::StatusOr<std::vector<Tensor>> Negated(const HostCall& call) {
  Tensor y(DType::kF32, call.inputs[0].shape());
  for (int64_t i = 0; i < y.size(); ++i) {
    y.SetDouble(i, -call.inputs[0].GetDouble(i));
  }
  return std::vector<Tensor>{y};
}

TEST(Evaluate, ExpandsCalls) {
  const auto rules = Rules();
  ASSERT_OK_AND_ASSIGN(const auto y,
                       Evaluate(*rules->Function("f"), *rules, {X()}));
  EXPECT_EQ(y[0].ToString(), "f32[2] [3, 5]");
}

// The op `twice` has a body, `hosted` has none.
TEST(Evaluate, LeavesCallsToHostKernels) {
  const auto rules = Rules();
  InterpretOptions options;
  options.host_kernels.Set("twice", Negated);
  ASSERT_OK_AND_ASSIGN(auto y,
                       Evaluate(*rules->Function("f"), *rules, {X()}, options));
  EXPECT_EQ(y[0].ToString(), "f32[2] [0, -1]");
  options.host_kernels.Set("hosted", Negated);
  ASSERT_OK_AND_ASSIGN(y,
                       Evaluate(*rules->Function("g"), *rules, {X()}, options));
  EXPECT_EQ(y[0].ToString(), "f32[2] [1, 2]");
  EXPECT_THAT(Evaluate(*rules->Function("g"), *rules, {X()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`hosted` is no primitive")));
}

}  // namespace
}  // namespace cleave
