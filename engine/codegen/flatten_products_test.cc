#include "engine/codegen/flatten_products.h"

#include <memory>
#include <string>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

std::string Rewritten(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  return graph.ok() ? PrintGraph(FlattenProducts(*graph))
                    : std::string(graph.status().message());
}

// Heads that were computed one by one, side by side.
TEST(FlattenProducts, StoresRowsOfSeveralAxes) {
  const std::string text = Rewritten(
      R"(graph (%o: f32[4, 8, 128, 64], %w: f32[512, 512]) -> (y: f32[4, 128, 512]) {
  %1: f32[4, 128, 8, 64] = transpose(%o, axes: [0, 2, 1, 3])
  %2: f32[4, 128, 512] = reshape(%1, shape: [4, 128, 512])
  %3: f32[4, 128, 512] = dot_general(%2, %w, batch_a: [], batch_b: [], contract_a: [2], contract_b: [1])
  return y = %3
})");
  EXPECT_THAT(text, HasSubstr("%2: f32[512, 512] = reshape(%1"));
  EXPECT_THAT(text, HasSubstr("%3: f32[512, 512] = convert(%2, dtype: f32)"));
  EXPECT_THAT(text, HasSubstr("dot_general(%3, %w, batch_a: [], batch_b: [], "
                              "contract_a: [1], contract_b: [1])"));
  EXPECT_THAT(text, HasSubstr("f32[4, 128, 512] = reshape(%4"));
}

// Contracted axes that the other side has in another order.
TEST(FlattenProducts, PutsContractedAxesInOneOrder) {
  const std::string text = Rewritten(
      R"(graph (%a: f32[m, i, j], %b: f32[j, n, i]) -> (y: f32[m, n]) {
  %1: f32[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1, 2], contract_b: [2, 0])
  return y = %1
})");
  EXPECT_THAT(text, HasSubstr("f32[m, i*j] = reshape(%a"));
  EXPECT_THAT(text, HasSubstr("f32[n, i, j] = transpose(%b, axes: [1, 2, 0])"));
  EXPECT_THAT(text, HasSubstr("contract_a: [1], contract_b: [1])"));
}

// Rows that lie one behind the other are rows of a matrix as they are, and so
// are those of a transposed one.
TEST(FlattenProducts, LeavesWhatLiesInOrder) {
  const std::string layer =
      R"(graph (%x: f32[b, s, 512], %w: f32[512, n]) -> (y: f32[b, s, n]) {
  %1: f32[n, 512] = transpose(%w, axes: [1, 0])
  %2: f32[b, s, n] = dot_general(%x, %1, batch_a: [], batch_b: [], contract_a: [2], contract_b: [1])
  return y = %2
}
)";
  EXPECT_EQ(Rewritten(layer), layer);
  // Heads of attention, split from rows.
  const std::string heads =
      R"(graph (%q: f32[b, s, 512], %k: f32[b, s, 512]) -> (y: f32[b, 8, s, s]) {
  %1: f32[b, s, 8, 64] = reshape(%q, shape: [b, s, 8, 64])
  %2: f32[b, 8, s, 64] = transpose(%1, axes: [0, 2, 1, 3])
  %3: f32[b, s, 8, 64] = reshape(%k, shape: [b, s, 8, 64])
  %4: f32[b, 8, s, 64] = transpose(%3, axes: [0, 2, 1, 3])
  %5: f32[b, 8, s, s] = dot_general(%2, %4, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [3])
  return y = %5
}
)";
  EXPECT_EQ(Rewritten(heads), heads);
}

}  // namespace
}  // namespace cleave
