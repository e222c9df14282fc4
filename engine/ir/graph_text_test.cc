#include "engine/ir/graph_text.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/ir/parse_typed_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(GraphText, RoundTrip) {
  TestGoldenFile("engine/ir/testdata/round_trip.golden",
                 [](absl::string_view input) -> std::string {
                   auto context = std::make_shared<Context>();
                   absl::StatusOr<Graph> graph = ParseGraph(input, context);
                   EXPECT_THAT(graph, IsOk());
                   if (!graph.ok()) return "";
                   EXPECT_THAT(Verify(*graph), IsOk());
                   const std::string text = PrintGraph(*graph);
                   absl::StatusOr<Graph> again = ParseGraph(text, context);
                   EXPECT_THAT(again, IsOk());
                   if (again.ok()) {
                     EXPECT_EQ(PrintGraph(*again), text);
                   }
                   return text;
                 });
}

TEST(GraphText, FailParse) {
  TestGoldenFile("engine/ir/testdata/fail_parse.golden",
                 [](absl::string_view input) -> std::string {
                   absl::StatusOr<Graph> graph =
                       ParseGraph(input, std::make_shared<Context>());
                   EXPECT_THAT(graph,
                               StatusIs(absl::StatusCode::kInvalidArgument));
                   return absl::StrCat(graph.status().message(), "\n");
                 });
}

// Its extent is no longer the sum that inference gives.
TEST(GraphText, ReadsTypesAsTheyAreWrittenWhereAsked) {
  constexpr char kText[] = R"(graph (%x: f32[d0], %y: f32[d1]) -> (z: f32[d2]) {
  %1: f32[d2] = concatenate(%x, %y, axis: 0)
  return z = %1
}
)";
  const auto context = std::make_shared<Context>();
  EXPECT_THAT(ParseGraph(kText, context),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseTypedGraph(kText, context));
  EXPECT_EQ(PrintGraph(graph), kText);
  EXPECT_THAT(ParseTypedGraph("graph () -> (y: f32[2]) {", context),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(GraphText, PrintsProvenance) {
  auto context = std::make_shared<Context>();
  GraphBuilder b(context);
  const Value x = b.Input("x", {DType::kF32, {}});
  b.SetProvenance(context->Intern(Provenance{"softplus", "a.rules", 12}));
  const Value y = b.Apply(Primitive::kExp, {x});
  b.SetProvenance(context->Intern(Provenance{"jvp tanh", "", 0}));
  const Value z = b.Apply(Primitive::kLog, {y});
  const Graph graph = *std::move(b).Build({{"z", z}});
  const std::string text = PrintGraph(graph, {.provenance = true});
  EXPECT_EQ(text,
            "graph (%x: f32[]) -> (z: f32[]) {\n"
            "  %1: f32[] = exp(%x)  // softplus, a.rules:12\n"
            "  %2: f32[] = log(%1)  // jvp tanh\n"
            "  return z = %2\n"
            "}\n");
  EXPECT_THAT(ParseGraph(text, context), IsOk());
}

TEST(GraphText, RefusesDeepNesting) {
  std::string list;
  for (int i = 0; i <= kMaxTextNesting; ++i) absl::StrAppend(&list, "[");
  EXPECT_THAT(
      ParseGraph(absl::StrCat("graph () -> () {\n  %1: f32[] = f(a: ", list,
                              ")\n  return\n}\n"),
                 std::make_shared<Context>()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper")));
}

// Every prefix of a text is an error, and none a crash.
TEST(GraphText, RefusesCutText) {
  auto context = std::make_shared<Context>();
  const std::string text =
      "graph (%x: f32[n, 2*n + 1]) -> (y: f32[2*n + 1]) {\n"
      "  %1: f32[2*n + 1] = scan(%x, body: graph (%a: f32[2*n + 1]) -> "
      "(y: f32[2*n + 1]) {\n"
      "    return y = %a\n"
      "  }, consts: 0, carries: 0, length: n, s: [\"t\\n\", (a = 0.5)])\n"
      "  guard n == 3: \"why\"\n"
      "  return y = %1\n"
      "}";
  for (size_t n = 0; n < text.size(); ++n) {
    EXPECT_THAT(ParseGraph(text.substr(0, n), context),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << n;
  }
}

TEST(Verify, FindsAWrongType) {
  auto context = std::make_shared<Context>();
  GraphBuilder b(context);
  const Value x = b.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y =
      b.AddTyped(ToOpId(Primitive::kIsnan), kNoAttributes,
                 context->Intern(TensorType{DType::kF32, {}}), {x}, 0);
  EXPECT_THAT(Verify(*std::move(b).Build({{"y", y}})),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("inference gives bool[n]")));
}

TEST(Verify, FindsAMissingGuard) {
  auto context = std::make_shared<Context>();
  GraphBuilder b(context);
  const Shape shape = {Dim::Variable("m")};
  const Value x = b.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y = b.AddTyped(
      ToOpId(Primitive::kReshape),
      context->Intern(Attributes{{"shape", StaticValue::Dims(shape)}}),
      context->Intern(TensorType{DType::kF32, shape}), {x}, 0);
  EXPECT_THAT(Verify(*std::move(b).Build({{"y", y}})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("guard")));
}

TEST(Verify, FindsAnInvalidCallAndATupleOutput) {
  auto context = std::make_shared<Context>();
  {
    GraphBuilder b(context);
    const Value x = b.Input("x", {DType::kF32, {}});
    const Value y =
        b.AddTyped(ToOpId(Primitive::kAdd), kNoAttributes,
                   context->Intern(TensorType{DType::kF32, {}}), {x}, 0);
    EXPECT_THAT(Verify(*std::move(b).Build({{"y", y}})),
                StatusIs(absl::StatusCode::kInternal));
  }
  GraphBuilder b(context);
  const Value x = b.Input("x", {DType::kF32, {3}});
  const Value y =
      b.Apply(Primitive::kSort, {x}, {{"axis", 0}, {"descending", false}});
  EXPECT_THAT(Verify(*std::move(b).Build({{"y", y}})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("tuple")));
}

TEST(Verify, FindsAWrongRegion) {
  auto context = std::make_shared<Context>();
  const TensorType scalar{DType::kF32, {}};
  auto cond_with = [&](Region region) {
    GraphBuilder b(context);
    const Value p = b.Input("p", {DType::kBool, {}});
    const Value x = b.Input("x", scalar);
    const Value y =
        b.Apply(Primitive::kCond, {p, x}, {{"then", region}, {"else", region}});
    return Verify(*std::move(b).Build({{"y", y}}));
  };
  auto identity = [&](std::shared_ptr<Context> of) {
    GraphBuilder b(std::move(of));
    const Value x = b.Input("x", scalar);
    return MakeRegion(*std::move(b).Build({{"y", x}}));
  };
  EXPECT_THAT(cond_with(identity(context)), IsOk());
  Region renamed = identity(context);
  renamed.text = "another";
  EXPECT_THAT(cond_with(renamed),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("text")));
  auto other_context = std::make_shared<Context>();
  GraphBuilder foreign(other_context);
  const Value x = foreign.Input("x", scalar);
  const Value y = foreign.Apply(Primitive::kNeg, {x});
  EXPECT_THAT(
      cond_with(MakeRegion(*std::move(foreign).Build({{"y", y}}))),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("another context")));
  // A builder of another context: otherwise the test would leak.
  GraphBuilder by_hand(std::make_shared<Context>());
  const Value z = by_hand.Input("z", scalar);
  const Value absolute = by_hand.Apply(Primitive::kAbs, {z});
  auto owning = std::make_shared<const Graph>(
      *std::move(by_hand).Build({{"y", absolute}}));
  EXPECT_THAT(cond_with(Region{owning, PrintGraph(*owning)}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("owns")));
}

Region ConstantRegion(const std::shared_ptr<Context>& context) {
  GraphBuilder b(context);
  const Value one = b.Constant(Exact(1), DType::kF32);
  return MakeRegion(*std::move(b).Build({{"y", one}}));
}

TEST(MakeRegion, DoesNotKeepTheContextAlive) {
  auto context = std::make_shared<Context>();
  const std::weak_ptr<Context> watched = context;
  GraphBuilder b(context);
  const Region region = ConstantRegion(context);
  const Value y = b.Apply(Primitive::kCond, {b.Input("p", {DType::kBool, {}})},
                          {{"then", region}, {"else", region}});
  Graph graph = *std::move(b).Build({{"y", y}});
  context.reset();
  EXPECT_FALSE(watched.expired()) << "the graph owns it";
  graph = Graph();
  EXPECT_TRUE(watched.expired()) << "its own tables own it";
}

TEST(MakeRegion, ACopyOfItsGraphOwnsTheContext) {
  auto context = std::make_shared<Context>();
  const Region region = ConstantRegion(context);
  EXPECT_FALSE(region.graph->owns_context());
  const Graph copy = *region.graph;
  EXPECT_TRUE(copy.owns_context());
  context.reset();
  EXPECT_EQ(copy.type(copy.outputs()[0].value), (TensorType{DType::kF32, {}}));
  EXPECT_EQ(PrintGraph(*region.graph), region.text);
}

TEST(MakeRegionDeathTest, UseAfterTheContextIsGone) {
  const Region region = ConstantRegion(std::make_shared<Context>());
  EXPECT_DEATH(region.graph->context(), "after its context is gone");
}

}  // namespace
}  // namespace cleave
