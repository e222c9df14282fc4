#include "engine/ir/rewrite_graph.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"
#include "ops/check.h"

namespace cleave {
namespace {

const OpId kNeg = ToOpId(Primitive::kNeg);

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, std::make_shared<Context>());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(RewriteGraph, ReplacesNodesAndDropsWhatNothingNeeds) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[n]) {
    %1: f32[n] = neg(%x)
    %2: f32[n] = neg(%1)
    %3: f32[n] = exp(%2)
    return y = %3
  })");
  const Graph simpler = RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    const Value x = graph.operands(v)[0];
    return graph.node(v).op == kNeg && graph.node(x).op == kNeg
               ? copy.of(graph.operands(x)[0])
               : copy.Keep(v);
  });
  EXPECT_EQ(PrintGraph(simpler), R"(graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = exp(%x)
  return y = %1
}
)");
}

TEST(RewriteGraph, KeepsGuards) {
  GraphBuilder builder(std::make_shared<Context>());
  const Value x = builder.Input("x", {DType::kF32, {Dim::Variable("n")}});
  builder.AddGuard({Dim::Variable("n"), CompareOp::kGe, 1, "not empty"});
  const Graph graph = *std::move(builder).Build({{"y", x}});
  const Graph same = RewriteGraph(
      graph, [](GraphCopy& copy, Value v) { return copy.Keep(v); });
  EXPECT_EQ(PrintGraph(same), PrintGraph(graph));
  ASSERT_EQ(same.guards().size(), 1u);
}

TEST(RewriteGraph, ReplacesEachResultOfANode) {
  const Graph graph = Parsed(
      R"(graph (%x: f32[n]) -> (values: f32[n], indices: i64[n]) {
    %1: f32[n], i64[n] = sort(%x, axis: 0, descending: false)
    %2: f32[n] = result(%1, index: 0)
    %3: i64[n] = result(%1, index: 1)
    return values = %2, indices = %3
  })");
  const Graph replaced = RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    if (graph.node(v).op != ToOpId(Primitive::kSort)) return copy.Keep(v);
    const Value x = copy.Operands(v)[0];
    const Value places = copy.builder().Zeros(graph.types(v)[1]);
    return copy.Replace(v, {x, places});
  });
  EXPECT_EQ(replaced.outputs()[0].value, replaced.inputs()[0].value);
  EXPECT_EQ(replaced.type(replaced.outputs()[1].value).dtype, DType::kI64);
}

TEST(RewriteGraph, ReturnsTheFirstError) {
  const Graph graph = Parsed(R"(graph (%x: f32[n]) -> (y: f32[n]) {
    %1: f32[n] = neg(%x)
    %2: f32[n] = exp(%1)
    return y = %2
  })");
  const absl::StatusOr<Graph> failed =
      RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
        return graph.node(v).op == kNeg
                   ? absl::StatusOr<Value>(absl::UnimplementedError("no neg"))
                   : absl::StatusOr<Value>(copy.Keep(v));
      });
  EXPECT_EQ(failed.status(), absl::UnimplementedError("no neg"));
}

}  // namespace
}  // namespace cleave
