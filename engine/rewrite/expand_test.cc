#include "engine/rewrite/expand.h"

#include <memory>
#include <string>

#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kRules[] = R"(language 1
op twice(x: T[S..]) -> T[S..]
  where T: inexact
{
  y = x + x
}
op four_times(x: T[S..]) -> T[S..]
  where T: inexact
{
  y = twice(twice(x))
}
op doubled(x: T[S..], *, by: real = 2) -> T[S..]
  where T: inexact
{
  y = by * x
}
op circular(x: T[S..]) -> T[S..]
  where T: inexact
{
  y = twice(x) - 0
}
op narrow(x: T[S..]) -> f16[S..]
  where T: float
{
  y = convert(x, dtype: f16)
}
op two(x: T[S..], y: T[S..]) -> T[S..]
  where T: inexact
{
  y = x + y
}
op plainly_doubled(x: T[S..]) -> T[S..]
  where T: inexact
{
  y = x + x + 0
}
fn by_default(x: f32[3]) -> f32[3] = doubled(x)
fn by_three(x: f32[3]) -> f32[3] = doubled(x, by: 3)
fn f(x: f32[3]) -> f32[3] = four_times(x) * twice(x)
)";

std::shared_ptr<const RuleSet> Rules() {
  LoadResult loaded =
      LoadRules({{"test.rules", kRules}}, std::make_shared<Context>());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  return loaded.rules;
}

std::string ExpandedText(const ExpandOptions& options) {
  const auto rules = Rules();
  const absl::StatusOr<Graph> graph = rules->Function("f");
  EXPECT_OK(graph);
  const absl::StatusOr<Graph> expanded = Expand(*graph, *rules, options);
  return expanded.ok() ? PrintGraph(*expanded)
                       : std::string(expanded.status().message());
}

constexpr char kPairs[] = R"(language 1
op kept(x: T[n]) -> T[n]
  where T: inexact
{
  y = if is_known(n) and n % 2 == 0 then x + x else x * x
}
fn of_all(x: f32[n]) -> f32[n] = kept(x)
fn of_even(x: f32[8]) -> f32[8] = kept(x)
fn of_odd(x: f32[7]) -> f32[7] = kept(x)
)";

// A form that is for some sizes alone leaves the others to run.
TEST(ExpandTest, AFormForKnownSizesRefusesNoOthers) {
  LoadResult loaded =
      LoadRules({{"test.rules", kPairs}}, std::make_shared<Context>());
  EXPECT_THAT(loaded.diagnostics, ::testing::IsEmpty());
  const auto expanded = [&](const char* function) {
    const absl::StatusOr<Graph> graph = loaded.rules->Function(function);
    EXPECT_OK(graph);
    const absl::StatusOr<Graph> all = Expand(*graph, *loaded.rules, {});
    EXPECT_OK(all);
    EXPECT_TRUE(all->guards().empty());
    return PrintGraph(*all);
  };
  EXPECT_THAT(expanded("of_all"), HasSubstr("mul(%x, %x)"));
  EXPECT_THAT(expanded("of_even"), HasSubstr("add(%x, %x)"));
  EXPECT_THAT(expanded("of_odd"), HasSubstr("mul(%x, %x)"));
}

TEST(ExpandTest, PreservedOpsStayCalls) {
  EXPECT_EQ(ExpandedText({{"twice"}, {}, {}}),
            "graph (%x: f32[3]) -> (y: f32[3]) {\n"
            "  %1: f32[3] = twice(%x)\n"
            "  %2: f32[3] = twice(%1)\n"
            "  %3: f32[3] = mul(%2, %1)\n"
            "  return y = %3\n"
            "}\n");
}

TEST(ExpandTest, OnlyTheseAreDecomposed) {
  const std::string text = ExpandedText({{}, {{"four_times"}}, {}});
  EXPECT_THAT(text, HasSubstr("twice("));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("four_times(")));
  EXPECT_THAT(ExpandedText({{}, {std::set<std::string>()}, {}}),
              HasSubstr("four_times("));
}

TEST(ExpandTest, AnotherOpTakesItsPlace) {
  const std::string text = ExpandedText({{}, {}, {{"twice", "doubled"}}});
  EXPECT_THAT(text, ::testing::Not(HasSubstr("add(")));
  EXPECT_THAT(text, HasSubstr("constant(dtype: f32, value: 2.0)"));
  // Where not all are decomposed, what is replaced is.
  EXPECT_THAT(
      ExpandedText({{}, {std::set<std::string>()}, {{"twice", "doubled"}}}),
      HasSubstr("four_times("));
}

TEST(ExpandTest, CallsBecomeSpecs) {
  LoadResult loaded = LoadRules({{"test.rules", R"(language 1
op doubled(x: f32[S..]) -> f32[S..]
  spec y = 2 * x
  = x + x
op quadrupled(x: f32[S..]) -> f32[S..]
  = doubled(doubled(x))
fn f(x: f32[n]) -> f32[n] = quadrupled(x)
)"}},
                                std::make_shared<Context>());
  EXPECT_THAT(loaded.diagnostics, ::testing::IsEmpty());
  const absl::StatusOr<Graph> graph = loaded.rules->Function("f");
  EXPECT_OK(graph);
  const auto expanded = [&](const std::string& op) {
    ExpandOptions options;
    options.by_spec = [&](const Signature& call) {
      return loaded.rules->context()->op_name(call.op) == op;
    };
    const auto all = Expand(*graph, *loaded.rules, options);
    EXPECT_OK(all);
    return PrintGraph(*all);
  };
  EXPECT_THAT(expanded("doubled"), HasSubstr("mul("));
  EXPECT_THAT(expanded("doubled"), ::testing::Not(HasSubstr("add(")));
  // It has no spec.
  EXPECT_THAT(expanded("quadrupled"), HasSubstr("add("));
}

TEST(ExpandTest, WhatCannotTakeItsPlaceIsRefused) {
  EXPECT_THAT(ExpandedText({{}, {}, {{"twice", "narrow"}}}),
              HasSubstr("`narrow` cannot take the place of `twice`: the types "
                        "of its results are others"));
  EXPECT_THAT(ExpandedText({{}, {}, {{"twice", "two"}}}),
              HasSubstr("`two` cannot take the place of `twice`: "));
  EXPECT_THAT(ExpandedText({{}, {}, {{"twice", "nothing"}}}),
              HasSubstr("there is no op `nothing`"));
  EXPECT_THAT(ExpandedText({{}, {}, {{"twice", "circular"}}}),
              HasSubstr("what takes the place of `twice` calls `twice`"));
}

TEST(ExpandTest, AttributesThatItDoesNotDeclareHaveTheirDefaults) {
  const auto rules = Rules();
  ExpandOptions options;
  options.replace = {{"doubled", "plainly_doubled"}};
  const absl::StatusOr<Graph> graph = rules->Function("by_default");
  ASSERT_OK(graph);
  const absl::StatusOr<Graph> expanded = Expand(*graph, *rules, options);
  ASSERT_OK(expanded);
  EXPECT_THAT(PrintGraph(*expanded), HasSubstr("add("));
  const absl::StatusOr<Graph> other = rules->Function("by_three");
  ASSERT_OK(other);
  EXPECT_THAT(Expand(*other, *rules, options).status().message(),
              HasSubstr("it has no attribute `by`, which is 3.0"));
}

// x - x in the place of `twice`.
absl::StatusOr<std::vector<Value>> Nothing(GraphBuilder& b,
                                           absl::Span<const Value> x,
                                           const Attributes&) {
  return std::vector<Value>{b.Apply(Primitive::kSub, {x[0], x[0]})};
}

TEST(ExpandTest, AFunctionTakesItsPlace) {
  const std::string text =
      ExpandedText({{}, {}, {{"twice", BodyFunction(Nothing)}}});
  EXPECT_THAT(text, ::testing::Not(HasSubstr("add(")));
  EXPECT_THAT(text, HasSubstr("%1: f32[3] = sub(%x, %x)"));
  // Its attributes are the call's, and what it calls is decomposed, too.
  const auto rules = Rules();
  ExpandOptions options;
  options.replace["doubled"] = BodyFunction(
      [&](GraphBuilder& b, absl::Span<const Value> x,
          const Attributes& attributes) -> absl::StatusOr<std::vector<Value>> {
        EXPECT_EQ(attributes.Get("by").ToString(), "3.0");
        const auto y = rules->Call(b, "four_times", {{"x", x[0]}}, {});
        if (!y.ok()) return y.status();
        return std::vector<Value>{*(*y)[0]};
      });
  const absl::StatusOr<Graph> graph = rules->Function("by_three");
  ASSERT_OK(graph);
  const absl::StatusOr<Graph> expanded = Expand(*graph, *rules, options);
  ASSERT_OK(expanded);
  EXPECT_EQ(PrintGraph(*expanded),
            "graph (%x: f32[3]) -> (y: f32[3]) {\n"
            "  %1: f32[3] = add(%x, %x)\n"
            "  %2: f32[3] = add(%1, %1)\n"
            "  return y = %2\n"
            "}\n");
}

TEST(ExpandTest, WhatAFunctionMayNotGiveIsRefused) {
  const auto refused = [](BodyFunction function) {
    return ExpandedText({{}, {}, {{"twice", std::move(function)}}});
  };
  using Values = absl::StatusOr<std::vector<Value>>;
  EXPECT_THAT(refused([](GraphBuilder& b, absl::Span<const Value> x,
                         const Attributes&) -> Values {
                return std::vector<Value>{b.Reshape(x[0], {Dim(3), Dim(1)})};
              }),
              HasSubstr("the function that decomposes `twice` gave f32[3, 1] "
                        "for result 0, which is f32[3]"));
  EXPECT_THAT(
      refused([](GraphBuilder&, absl::Span<const Value>,
                 const Attributes&) -> Values { return std::vector<Value>{}; }),
      HasSubstr("`twice` gave 0 results, not 1"));
  EXPECT_THAT(refused([](GraphBuilder&, absl::Span<const Value>,
                         const Attributes&) -> Values {
                return std::vector<Value>{Value{99}};
              }),
              HasSubstr("`twice` gave no value of its builder for result 0"));
  EXPECT_THAT(refused([](GraphBuilder&, absl::Span<const Value>,
                         const Attributes&) -> Values {
                return absl::UnimplementedError("not on Sundays");
              }),
              HasSubstr("`twice` failed: not on Sundays"));
  EXPECT_THAT(refused(nullptr), HasSubstr("`twice` is none"));
  const auto rules = Rules();
  EXPECT_THAT(
      refused([&](GraphBuilder& b, absl::Span<const Value> x,
                  const Attributes&) -> Values {
        const TypeId type = b.graph().node(x[0]).type;
        return std::vector<Value>{b.AddTyped(b.context()->InternOp("twice"),
                                             kNoAttributes, type, {x[0]}, 0)};
      }),
      HasSubstr("what takes the place of `twice` calls `twice`"));
}

}  // namespace
}  // namespace cleave
