// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_THAT(Check(file), IsOk());
//   EXPECT_THAT(Parse("1"), IsOkAndHolds(1));
//   EXPECT_THAT(Parse(""), StatusIs(absl::StatusCode::kInvalidArgument,
//                                   HasSubstr("empty")));
//   ASSERT_OK_AND_ASSIGN(const Graph graph, Compile(file));

#ifndef CLEAVE_TESTING_STATUS_MATCHERS_H_
#define CLEAVE_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace internal_status_matchers {

inline const absl::Status& ToStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

template <typename StatusOrType>
class IsOkAndHoldsImpl
    : public ::testing::MatcherInterface<const StatusOrType&> {
 public:
  using Value = typename std::decay_t<StatusOrType>::value_type;

  template <typename Inner>
  explicit IsOkAndHoldsImpl(Inner inner)
      : inner_(::testing::SafeMatcherCast<const Value&>(inner)) {}

  void DescribeTo(std::ostream* out) const override {
    *out << "is OK and its value ";
    inner_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const override {
    *out << "is not OK or its value ";
    inner_.DescribeNegationTo(out);
  }
  bool MatchAndExplain(
      const StatusOrType& actual,
      ::testing::MatchResultListener* listener) const override {
    if (!actual.ok()) {
      *listener << "whose status is " << actual.status().ToString();
      return false;
    }
    return inner_.MatchAndExplain(*actual, listener);
  }

 private:
  const ::testing::Matcher<const Value&> inner_;
};

template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename StatusOrType>
  operator ::testing::Matcher<StatusOrType>() const {  // NOLINT
    return ::testing::Matcher<StatusOrType>(
        new IsOkAndHoldsImpl<std::decay_t<StatusOrType>>(inner_));
  }

 private:
  const Inner inner_;
};

}  // namespace internal_status_matchers

// Matches an absl::Status or absl::StatusOr that is OK.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = internal_status_matchers::ToStatus(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.ok();
}

// Matches one that has this code, whatever its message.
MATCHER_P(StatusIs, code,
          std::string(negation ? "has not" : "has") + " the status code " +
              absl::StatusCodeToString(code)) {
  const absl::Status& status = internal_status_matchers::ToStatus(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code;
}

// Matches one that has this code and a message that `message` matches.
MATCHER_P2(StatusIs, code, message,
           std::string(negation ? "has not" : "has") + " the status code " +
               absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = internal_status_matchers::ToStatus(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()),
                                       result_listener);
}

// Matches an absl::StatusOr that is OK and whose value `inner` matches.
template <typename Inner>
internal_status_matchers::IsOkAndHoldsMatcher<std::decay_t<Inner>> IsOkAndHolds(
    Inner&& inner) {
  return internal_status_matchers::IsOkAndHoldsMatcher<std::decay_t<Inner>>(
      std::forward<Inner>(inner));
}

}  // namespace cleave

#define EXPECT_OK(...) EXPECT_THAT((__VA_ARGS__), ::cleave::IsOk())
#define ASSERT_OK(...) ASSERT_THAT((__VA_ARGS__), ::cleave::IsOk())

#define CLEAVE_STATUS_MATCHERS_CONCAT_INNER(a, b) a##b
#define CLEAVE_STATUS_MATCHERS_CONCAT(a, b) \
  CLEAVE_STATUS_MATCHERS_CONCAT_INNER(a, b)

// Assigns the value of `...`, an absl::StatusOr, to `target`, which may be a
// declaration, or fails the test and returns from it.
#define ASSERT_OK_AND_ASSIGN(target, ...)                                 \
  CLEAVE_ASSERT_OK_AND_ASSIGN_INNER(                                      \
      CLEAVE_STATUS_MATCHERS_CONCAT(cleave_status_or_, __LINE__), target, \
      __VA_ARGS__)

#define CLEAVE_ASSERT_OK_AND_ASSIGN_INNER(result, target, ...)         \
  auto result = (__VA_ARGS__);                                         \
  ASSERT_TRUE(result.ok()) << #__VA_ARGS__ << ": " << result.status(); \
  target = *std::move(result)

#endif  // CLEAVE_TESTING_STATUS_MATCHERS_H_
