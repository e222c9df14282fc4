#include "engine/codegen/transpose_loop_weights.h"

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

// A scan whose body is `nodes`, of w and h.
std::string Loop(const std::string& nodes) {
  return "graph (%w: f32[4, 4], %h: f32[2, 4]) -> (h: f32[2, 4]) {\n"
         "  %1: f32[2, 4] = scan(%w, %h, body: graph (%w: f32[4, 4], "
         "%h: f32[2, 4]) -> (h: f32[2, 4]) {\n" +
         nodes +
         "  }, carries: 1, consts: 1, length: 3, reverse: false)\n"
         "  return h = %1\n"
         "}\n";
}

std::string Rewritten(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  return graph.ok() ? PrintGraph(TransposeLoopWeights(*graph))
                    : std::string(graph.status().message());
}

TEST(TransposeLoopWeights, TransposesOutsideOfTheLoop) {
  const std::string text = Rewritten(
      Loop("    %1: f32[2, 4] = dot_general(%h, %w, batch_a: [], batch_b: [], "
           "contract_a: [1], contract_b: [1])\n"
           "    return h = %1\n"));
  EXPECT_THAT(text, HasSubstr("%1: f32[4, 4] = transpose(%w, axes: [1, 0])"));
  EXPECT_THAT(text, HasSubstr("%2: f32[4, 4] = convert(%1, dtype: f32)"));
  EXPECT_THAT(text, HasSubstr("scan(%2, %h"));
  EXPECT_THAT(text, HasSubstr("contract_b: [0])"));
}

// A matrix that is read as it lies, too, stays, and so does one whose columns
// are contracted.
TEST(TransposeLoopWeights, LeavesOtherMatrices) {
  const std::string both = Loop(
      "    %1: f32[2, 4] = dot_general(%h, %w, batch_a: [], batch_b: [], "
      "contract_a: [1], contract_b: [1])\n"
      "    %2: f32[2, 4] = dot_general(%1, %w, batch_a: [], batch_b: [], "
      "contract_a: [1], contract_b: [0])\n"
      "    return h = %2\n");
  EXPECT_EQ(Rewritten(both), both);
  const std::string columns = Loop(
      "    %1: f32[2, 4] = dot_general(%h, %w, batch_a: [], batch_b: [], "
      "contract_a: [1], contract_b: [0])\n"
      "    return h = %1\n");
  EXPECT_EQ(Rewritten(columns), columns);
}

}  // namespace
}  // namespace cleave
