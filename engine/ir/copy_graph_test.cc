#include "engine/ir/copy_graph.h"

#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr char kText[] =
    R"(graph (%x: f32[n], %idle: i64[2]) -> (y: f32[k, 1], s: f32[n]) {
  %2: f32[n], i64[n] = sort(%x, axis: 0, descending: false)
  %3: f32[n] = result(%2, index: 0)
  %4: i64[k, 1] = nonzero(%x, size: k)
  %5: f32[k, 1] = my_op(%4, scale: 0.5)
  %6: f32[] = constant(dtype: f32, value: 0.0)
  %7: f32[], f32[n] = scan(%6, %3, body: graph (%c: f32[], %e: f32[]) -> (c: f32[], e: f32[]) {
    %2: f32[] = add(%c, %e)
    return c = %2, e = %2
  }, carries: 1, consts: 0, length: n, reverse: false)
  %8: f32[n] = result(%7, index: 1)
  guard n >= 2: "why"
  return y = %5, s = %8
}
)";

TEST(CopyGraph, IsTheSameInAnotherContext) {
  const auto context = std::make_shared<Context>();
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(kText, context));
  // The ids of the other one's tables are others.
  const auto other = std::make_shared<Context>();
  other->InternOp("another_op");
  other->Intern(TensorType{DType::kF64, {}});
  const Graph copy = CopyGraph(graph, other);
  EXPECT_OK(Verify(copy));
  EXPECT_EQ(PrintGraph(copy), PrintGraph(graph));
  ASSERT_EQ(copy.size(), graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    EXPECT_EQ(copy.types({id}), graph.types({id})) << id;
  }
  EXPECT_EQ(copy.context(), other);
}

TEST(CopyGraph, NeedsNothingOfTheOldContext) {
  auto context = std::make_shared<Context>();
  const std::weak_ptr<Context> watched = context;
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(kText, context));
  const std::string text = PrintGraph(graph);
  const Graph copy = CopyGraph(graph, std::make_shared<Context>());
  graph = Graph();
  context.reset();
  EXPECT_TRUE(watched.expired()) << "a region of the copy holds it";
  EXPECT_EQ(PrintGraph(copy), text);
}

TEST(CopyGraph, KeepsProvenance) {
  GraphBuilder b(std::make_shared<Context>());
  b.SetProvenance(b.context()->Intern(Provenance{"silu", "a.rules", 7}));
  const Value x = b.Input("x", {DType::kF32, {}});
  const Value y = b.Apply(Primitive::kExp, {x});
  const Graph graph = *std::move(b).Build({{"y", y}});
  PrintOptions options;
  options.provenance = true;
  const std::string text = PrintGraph(graph, options);
  EXPECT_NE(text.find("a.rules:7"), std::string::npos);
  EXPECT_EQ(PrintGraph(CopyGraph(graph, std::make_shared<Context>()), options),
            text);
}

}  // namespace
}  // namespace cleave
