#include "engine/codegen/scatters_of_padding.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

Graph Parsed(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) ADD_FAILURE() << graph.status();
  return *std::move(graph);
}

TEST(ScattersOfPadding, TakeTheIndicesOfWhatIsThere) {
  const Graph graph = Parsed(
      R"(graph (%i: i64[3, 5], %u: f32[3, 2]) -> (y: f32[3, 4]) {
  %1: f32[] = constant(dtype: f32, value: 0.0)
  %2: f32[3, 5] = pad_general(%u, %1, high: [0, 2], interior: [0, 0], low: [0, 1])
  %3: i64[3, 5, 1] = reshape(%i, shape: [3, 5, 1])
  %4: f32[3, 4] = broadcast_in_dim(%1, axes: [], shape: [3, 4])
  %5: f32[3, 4] = scatter(%4, %3, %2, axes: [1], batch: 1, mode: "add")
  return y = %5
})");
  const Graph rewritten = ScattersOfPadding(graph);
  const std::string text = PrintGraph(rewritten);
  EXPECT_THAT(text, HasSubstr("i64[3, 2] = slice(%i, size: [3, 2], "
                              "start: [0, 1], stride: [1, 1])"));
  EXPECT_THAT(text, HasSubstr("%u, axes: [1], batch: 1, mode: \"add\")"));
  Tensor indices(DType::kI64, {3, 5});
  for (int i = 0; i < 15; ++i) indices.SetInt(i, i * 7 % 5);  // 4: nowhere
  Tensor updates(DType::kF32, {3, 2});
  for (int i = 0; i < 6; ++i) updates.SetDouble(i, i - 2.5);
  updates.SetDouble(1, -0.0);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                       Interpret(graph, {indices, updates}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       Interpret(rewritten, {indices, updates}));
  EXPECT_EQ(got[0].ToString(), want[0].ToString());
}

// Updates that are padded with other numbers, along the batch or within rows,
// and scatters into other numbers than zeros.
TEST(ScattersOfPadding, LeaveOthers) {
  for (const char* text :
       {R"(graph (%i: i64[3, 5, 1], %u: f32[3, 2]) -> (y: f32[3, 4]) {
  %1: f32[] = constant(dtype: f32, value: 1.0)
  %2: f32[3, 5] = pad_general(%u, %1, high: [0, 2], interior: [0, 0], low: [0, 1])
  %3: f32[] = constant(dtype: f32, value: 0.0)
  %4: f32[3, 4] = broadcast_in_dim(%3, axes: [], shape: [3, 4])
  %5: f32[3, 4] = scatter(%4, %i, %2, axes: [1], batch: 1, mode: "add")
  return y = %5
}
)",
        R"(graph (%i: i64[3, 1], %u: f32[1, 2]) -> (y: f32[3, 4, 2]) {
  %1: f32[] = constant(dtype: f32, value: 0.0)
  %2: f32[3, 2] = pad_general(%u, %1, high: [1, 0], interior: [0, 0], low: [1, 0])
  %3: f32[3, 4, 2] = broadcast_in_dim(%1, axes: [], shape: [3, 4, 2])
  %4: f32[3, 4, 2] = scatter(%3, %i, %2, axes: [1], batch: 1, mode: "add")
  return y = %4
}
)",
        R"(graph (%x: f32[4], %i: i64[3, 1], %u: f32[2]) -> (y: f32[4]) {
  %1: f32[] = constant(dtype: f32, value: 0.0)
  %2: f32[3] = pad_general(%u, %1, high: [1], interior: [0], low: [0])
  %3: f32[4] = scatter(%x, %i, %2, axes: [0], batch: 0, mode: "add")
  return y = %3
}
)"}) {
    EXPECT_EQ(PrintGraph(ScattersOfPadding(Parsed(text))), text);
  }
}

}  // namespace
}  // namespace cleave
