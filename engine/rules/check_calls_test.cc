#include "engine/rules/check_calls.h"

#include <memory>
#include <string>

#include "engine/ir/graph_text.h"
#include "engine/rules/rule_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kRules[] = R"(language 1

op twice(x: T[S..], *, times: int = 2) -> T[S..]
  where T: float
{
  times * x
  jvp x = twice(dx, times: times)
}

op pick(x: T[n], bias: T[n]?) -> T[n]
  where T: float
  = x + (bias ?? 0)

op all_of(xs[i]: T[n]) -> T[n]
  where T: float
  = xs[0]
)";

class CheckCallsTest : public ::testing::Test {
 protected:
  CheckCallsTest() {
    LoadOptions options = WithTransforms();
    options.cache_folder = "";
    LoadResult loaded =
        LoadRules({{"a.rules", kRules}}, std::make_shared<Context>(), options);
    for (const std::string& text : loaded.diagnostics) ADD_FAILURE() << text;
    rules_ = loaded.rules;
  }

  // The message for a graph of one call; empty where it is right.
  std::string Check(const std::string& inputs, const std::string& output,
                    const std::string& call) {
    const absl::StatusOr<Graph> graph = ParseGraph(
        "graph (" + inputs + ") -> (y: " + output + ") {\n  %1: " + output +
            " = " + call + "\n  return y = %1\n}\n",
        rules_->context());
    if (!graph.ok()) return std::string(graph.status().message());
    return std::string(CheckCalls(*graph, *rules_).message());
  }

  std::shared_ptr<const RuleSet> rules_;
};

TEST_F(CheckCallsTest, CallsAsTheyArePrintedPass) {
  EXPECT_EQ(Check("%x: f32[n]", "f32[n]", "twice(%x, times: 3)"), "");
  EXPECT_EQ(
      Check("%x: f32[n]", "f32[n]", "pick(%x, call.layout: [true, false])"),
      "");
  EXPECT_EQ(Check("%x: f32[n]", "f32[n]",
                  "all_of(%x, %x, call.layout: [[true, true]])"),
            "");
  EXPECT_EQ(Check("%x: f32[b, n]", "f32[b, n]",
                  "\"vmap:twice\"(%x, call.batched: [[true]], times: 3)"),
            "");
  EXPECT_EQ(Check("%x: f32[n], %t: f32[n]", "f32[n]",
                  "\"jvp:twice\"(%x, %t, call.active: [true], times: 3)"),
            "");
}

TEST_F(CheckCallsTest, OtherTypesAreTold) {
  EXPECT_THAT(Check("%x: f32[n]", "f32[m]", "twice(%x, times: 3)"),
              HasSubstr("`twice`: its result is f32[n], not f32[m]"));
  EXPECT_THAT(Check("%x: f32[n]", "f64[n]", "twice(%x, times: 3)"),
              HasSubstr("its result is f32[n], not f64[n]"));
  EXPECT_THAT(Check("%x: i32[n]", "i32[n]", "twice(%x, times: 3)"),
              HasSubstr("twice"));
  EXPECT_THAT(Check("%x: f32[b, n]", "f32[n]",
                    "\"vmap:twice\"(%x, call.batched: [[true]], times: 3)"),
              HasSubstr("its result is f32[b, n], not f32[n]"));
}

TEST_F(CheckCallsTest, OtherCallsAreTold) {
  EXPECT_THAT(Check("%x: f32[n]", "f32[n]", "thrice(%x)"),
              HasSubstr("there is no op `thrice`"));
  EXPECT_THAT(Check("%x: f32[n]", "f32[n]", "twice(%x, %x, times: 3)"),
              HasSubstr("does not take 2 tensors"));
  EXPECT_THAT(Check("%x: f32[n]", "f32[n]", "twice(%x, times: \"a\")"),
              HasSubstr("times"));
  EXPECT_THAT(Check("%x: f32[n]", "f32[n]", "twice(%x, other: 3)"),
              HasSubstr("other"));
}

// The attributes that RuleSet reads unchecked in a graph that the engine made.
TEST_F(CheckCallsTest, MalformedCallAttributesAreTold) {
  for (const char* call : {
           "pick(%x, call.layout: 3)",
           "pick(%x, call.layout: [3])",
           "pick(%x, call.layout: [[3]])",
           "twice(%x, call.active: [true])",
           "\"vmap:twice\"(%x)",
           "\"vmap:twice\"(%x, call.batched: [])",
           "\"vmap:twice\"(%x, call.batched: [[false]])",
           "\"vmap:twice\"(%x, call.batched: [[true, true]])",
           "\"vmap:twice\"(%x, call.batched: [[true], [true]])",
           "\"vmap:twice\"(%x, call.batched: true)",
           "\"jvp:twice\"(%x)",
           "\"jvp:twice\"(%x, call.active: [true])",
           "\"jvp:twice\"(%x, call.active: true)",
           "\"jvp:twice\"(%x, call.active: [1])",
           "\"vjp:twice\"(%x, call.active: [true])",
           "\"vjp:twice\"(%x, call.active: [true], call.live: [true])",
           "\"vmap:thrice\"(%x, call.batched: [[true]])",
       }) {
    EXPECT_NE(Check("%x: f32[n]", "f32[n]", call), "") << call;
  }
}

TEST_F(CheckCallsTest, RegionsAreLookedAt) {
  const absl::StatusOr<Graph> graph = ParseGraph(
      R"(graph (%p: bool[], %x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = cond(%p, %x, else: graph (%a: f32[n]) -> (r: f32[n]) {
    return r = %a
  }, then: graph (%a: f32[n]) -> (r: f32[n]) {
    %1: f32[n] = thrice(%a)
    return r = %1
  })
  return y = %1
}
)",
      rules_->context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(CheckCalls(*graph, *rules_).message(),
              HasSubstr("there is no op `thrice`"));
}

}  // namespace
}  // namespace cleave
