#include "tools/oracle/oracle.h"

#include <chrono>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using testing::HasSubstr;

OracleOptions Options(const char* symbol) {
  OracleOptions options;
  options.library = "tools/oracle/libfunctions_testing.so";
  options.symbol = symbol;
  options.program = "tools/oracle/worker_testing";
  options.seconds = 5;
  return options;
}

absl::StatusOr<std::vector<Tensor>> Call(const HostFunction& function,
                                         double x) {
  const Tensor input = Tensor::FromDoubles(DType::kF32, {2}, {x, 1});
  const Attributes attributes;
  const TensorType type = input.type();
  return function({"twice", {&input, 1}, attributes, {&type, 1}});
}

TEST(Oracle, Computes) {
  ASSERT_OK_AND_ASSIGN(const HostFunction twice, StartOracle(Options("twice")));
  for (const double x : {1.5, -3.0}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results, Call(twice, x));
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].GetDouble(0), 2 * x);
    EXPECT_EQ(results[0].GetDouble(1), 2);
  }
}

TEST(Oracle, IsThereAgainAfterACrash) {
  ASSERT_OK_AND_ASSIGN(const HostFunction fragile,
                       StartOracle(Options("fragile")));
  EXPECT_THAT(Call(fragile, 1), IsOk());
  EXPECT_THAT(Call(fragile, -1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("`fragile` ended its process by signal 6")));
  EXPECT_THAT(Call(fragile, 1), IsOk());
}

TEST(Oracle, IsStoppedOnceItDoesNotReturn) {
  OracleOptions options = Options("endless");
  options.seconds = 0.5;
  ASSERT_OK_AND_ASSIGN(const HostFunction endless, StartOracle(options));
  EXPECT_THAT(Call(endless, 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("did not return within 0.5 s")));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(Call(endless, 1), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(400));
}

TEST(Oracle, StatusOfALibraryWithoutCleaveIsAnError) {
  ASSERT_OK_AND_ASSIGN(const HostFunction refusing,
                       StartOracle(Options("refusing")));
  EXPECT_THAT(Call(refusing, 1), StatusIs(absl::StatusCode::kUnknown));
}

TEST(Oracle, SaysWhatIsNotThere) {
  EXPECT_THAT(StartOracle(Options("nothing")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing")));
  OracleOptions options = Options("twice");
  options.library = "./no_library.so";
  EXPECT_THAT(StartOracle(options), StatusIs(absl::StatusCode::kNotFound,
                                             HasSubstr("no_library.so")));
  options.program = "./no_program";
  EXPECT_THAT(StartOracle(options), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace cleave
