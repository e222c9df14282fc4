#include "engine/codegen/panels.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_replace.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/rewrite_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(Panels, HaveTheColumnsOfATile) {
  const auto columns = [](DType dtype, const Dim& width) {
    return ColumnsOfPanels({dtype, {Dim(7), width}}, /*contracted=*/0);
  };
  EXPECT_EQ(columns(DType::kF32, Dim(128)), 64);
  EXPECT_EQ(columns(DType::kF32, Dim(96)), 32);
  EXPECT_EQ(columns(DType::kF64, Dim(96)), 32);
  EXPECT_EQ(columns(DType::kF64, Dim(16)), 16);
  EXPECT_EQ(columns(DType::kF16, Dim(64)), 64);
  // Zeros behind the columns are at most a quarter of them.
  EXPECT_EQ(columns(DType::kF32, Dim(1000)), 64);
  EXPECT_EQ(columns(DType::kF32, Dim(80)), 32);
  EXPECT_EQ(columns(DType::kF32, Dim(70)), std::nullopt);
  EXPECT_EQ(columns(DType::kF32, Dim(3)), std::nullopt);
  EXPECT_EQ(columns(DType::kF32, Dim(0)), std::nullopt);
  EXPECT_EQ(columns(DType::kF32, Dim("n")), std::nullopt);
  EXPECT_EQ(columns(DType::kI32, Dim(64)), std::nullopt);
  EXPECT_EQ(ColumnsOfPanels({DType::kF32, {Dim(32), Dim(7)}}, 1), 32);
}

// A matrix by way of panels, whichever axis a product is summed over, with
// zeros behind its columns and without.
TEST(Panels, HoldTheMatrix) {
  for (const char* width : {"96", "90"}) {
    const std::string graph_text = absl::StrReplaceAll(
        R"(graph (%x: f32[5, N]) -> (y: f32[5, N]) {
  %1: f32[5, N] = neg(%x)
  return y = %1
}
)",
        {{"N", width}});
    for (const int64_t contracted : {0, 1}) {
      const auto stored = [&](const Graph& graph) {
        return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
          if (graph.node(v).op != ToOpId(Primitive::kNeg)) return copy.Keep(v);
          GraphBuilder& builder = copy.builder();
          Value x = copy.Keep(v);
          if (contracted == 1) x = builder.Transpose(x, {1, 0});
          return MatrixOf(builder, StorePanels(builder, x, contracted),
                          graph.type(v).shape[1]);
        });
      };
      const std::string text = CheckPass(graph_text, stored);
      EXPECT_THAT(text, HasSubstr("f32[3, 5, 32] = convert("));
      const auto graph = ParseGraph(text, std::make_shared<Context>());
      ASSERT_TRUE(graph.ok()) << graph.status();
      const Value y = graph->outputs()[0].value;
      const auto panels = PanelsOfMatrix(*graph, y);
      ASSERT_TRUE(panels.has_value()) << text;
      EXPECT_EQ(graph->type(*panels).ToString(), "f32[3, 5, 32]");
      EXPECT_EQ(PanelsOfMatrix(*graph, *panels), std::nullopt);
    }
  }
}

// Axes in another order, a matrix that keeps them apart otherwise, and columns
// from another one on.
TEST(Panels, AreNoOtherReshape) {
  for (const char* text : {R"(graph (%x: f32[5, 3, 32]) -> (y: f32[96, 5]) {
  %1: f32[3, 32, 5] = transpose(%x, axes: [1, 2, 0])
  %2: f32[96, 5] = reshape(%1, shape: [96, 5])
  return y = %2
}
)",
                           R"(graph (%x: f32[3, 5, 32]) -> (y: f32[15, 32]) {
  %1: f32[5, 3, 32] = transpose(%x, axes: [1, 0, 2])
  %2: f32[15, 32] = reshape(%1, shape: [15, 32])
  return y = %2
}
)",
                           R"(graph (%x: f32[3, 5, 32]) -> (y: f32[5, 90]) {
  %1: f32[5, 3, 32] = transpose(%x, axes: [1, 0, 2])
  %2: f32[5, 96] = reshape(%1, shape: [5, 96])
  %3: f32[5, 90] = slice(%2, size: [5, 90], start: [0, 6], stride: [1, 1])
  return y = %3
}
)"}) {
    const auto graph = ParseGraph(text, std::make_shared<Context>());
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(PanelsOfMatrix(*graph, graph->outputs()[0].value), std::nullopt);
  }
}

}  // namespace
}  // namespace cleave
