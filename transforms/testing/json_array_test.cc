#include "transforms/testing/json_array.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(JsonArray, ReadsNestedLists) {
  ASSERT_OK_AND_ASSIGN(
      const JsonArray array,
      ReadJsonArray(json::parse(R"([[1, -2.5, "inf"], ["-inf", 0, 3]])")));
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  EXPECT_THAT(array.elements,
              ElementsAre(1, -2.5, kInfinity, -kInfinity, 0, 3));
  EXPECT_FALSE(array.has_bools);
}

TEST(JsonArray, ReadsScalarsAndEmptyLists) {
  ASSERT_OK_AND_ASSIGN(const JsonArray scalar,
                       ReadJsonArray(nlohmann::ordered_json("nan")));
  EXPECT_THAT(scalar.shape, IsEmpty());
  ASSERT_EQ(scalar.elements.size(), 1);
  EXPECT_TRUE(std::isnan(scalar.elements[0]));
  ASSERT_OK_AND_ASSIGN(const JsonArray empty,
                       ReadJsonArray(json::parse("[[], []]")));
  EXPECT_THAT(empty.shape, ElementsAre(2, 0));
  EXPECT_THAT(empty.elements, IsEmpty());
}

TEST(JsonArray, TellsBools) {
  ASSERT_OK_AND_ASSIGN(const JsonArray array,
                       ReadJsonArray(json::parse("[true, false]")));
  EXPECT_TRUE(array.has_bools);
  EXPECT_THAT(array.elements, ElementsAre(1, 0));
}

TEST(JsonArray, RefusesWhatIsNoArray) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {{"[[1, 2], [3]]", "different lengths"},
                {"[1, [2]]", "different lengths"},
                {"[[1], 2]", "a list is expected"},
                {"[[], [1]]", "different lengths"},
                {R"(["one"])", "no number: \"one\""},
                {"[null]", "no number: null"},
                {"{}", "no number: {}"}};
  for (const auto& c : kCases) {
    EXPECT_THAT(
        ReadJsonArray(json::parse(c.text)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

}  // namespace
}  // namespace cleave
