#include "engine/codegen/transposed_products.h"

#include <memory>
#include <string>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

std::string Rewritten(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  return graph.ok() ? PrintGraph(TransposedProducts(*graph))
                    : std::string(graph.status().message());
}

// With a batch, and several axes of one operand.
TEST(TransposedProducts, SwapTheirOperands) {
  EXPECT_EQ(
      Rewritten(
          R"(graph (%a: f32[k, b, m, l], %b: f32[b, n, k]) -> (y: f32[b, n, m, l]) {
  %1: f32[b, m, l, n] = dot_general(%a, %b, batch_a: [1], batch_b: [0], contract_a: [0], contract_b: [2])
  %2: f32[b, n, m, l] = transpose(%1, axes: [0, 3, 1, 2])
  return y = %2
}
)"),
      R"(graph (%a: f32[k, b, m, l], %b: f32[b, n, k]) -> (y: f32[b, n, m, l]) {
  %1: f32[b, n, m, l] = dot_general(%b, %a, batch_a: [0], batch_b: [1], contract_a: [2], contract_b: [0])
  return y = %1
}
)");
}

// Another order of the axes, and a product that something else reads.
TEST(TransposedProducts, LeaveOthers) {
  for (
      const char* text :
      {R"(graph (%a: f32[m, l, k], %b: f32[n, k]) -> (y: f32[n, l, m]) {
  %1: f32[m, l, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [2], contract_b: [1])
  %2: f32[n, l, m] = transpose(%1, axes: [2, 1, 0])
  return y = %2
}
)",
       R"(graph (%a: f32[m, k], %b: f32[n, k]) -> (x: f32[m, n], y: f32[n, m]) {
  %1: f32[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  %2: f32[n, m] = transpose(%1, axes: [1, 0])
  return x = %1, y = %2
}
)"}) {
    EXPECT_EQ(Rewritten(text), text);
  }
}

}  // namespace
}  // namespace cleave
