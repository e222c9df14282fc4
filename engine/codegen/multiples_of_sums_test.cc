#include "engine/codegen/multiples_of_sums.h"

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

TEST(MultiplesOfSums, HaveTheBitsOfTheSums) {
  const Graph graph = Parsed(
      R"(graph (%x: f32[3, 4]) -> (a: f32[4], b: f32[3], c: f32[]) {
  %1: f32[3, 4] = add(%x, %x)
  %2: f32[3, 4] = neg(%1)
  %3: f32[4] = reduce_sum(%2, axes: [0])
  %4: f32[3] = reduce_sum(%1, axes: [1])
  %5: f32[3, 4] = neg(%2)
  %6: f32[] = reduce_sum(%5, axes: [0, 1])
  return a = %3, b = %4, c = %6
}
)");
  const Graph rewritten = MultiplesOfSums(graph);
  const std::string text = PrintGraph(rewritten);
  EXPECT_THAT(text, HasSubstr("f32[4] = reduce_sum(%x, axes: [0])"));
  EXPECT_THAT(text, HasSubstr("f32[3] = reduce_sum(%x, axes: [1])"));
  EXPECT_THAT(text, HasSubstr("f32[] = reduce_sum(%x, axes: [0, 1])"));
  Tensor x(DType::kF32, {3, 4});
  // The sum of the last column is 0, not -0.
  for (int i = 0; i < 12; ++i) x.SetDouble(i, i % 4 == 3 ? 0 : 0.1 * i - 0.37);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want, Interpret(graph, {x}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       Interpret(rewritten, {x}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].ToString(), want[i].ToString());
  }
}

// Doubled integers wrap, the largest of negated values is another one, and a
// sum of two values is none of one.
TEST(MultiplesOfSums, LeaveOthers) {
  for (const char* text : {R"(graph (%x: i32[3]) -> (y: i32[]) {
  %1: i32[3] = add(%x, %x)
  %2: i32[] = reduce_sum(%1, axes: [0])
  return y = %2
}
)",
                           R"(graph (%x: f32[3]) -> (y: f32[]) {
  %1: f32[3] = neg(%x)
  %2: f32[] = reduce_max(%1, axes: [0], tie: "even")
  return y = %2
}
)",
                           R"(graph (%x: f32[3], %z: f32[3]) -> (y: f32[]) {
  %1: f32[3] = add(%x, %z)
  %2: f32[] = reduce_sum(%1, axes: [0])
  return y = %2
}
)"}) {
    EXPECT_EQ(PrintGraph(MultiplesOfSums(Parsed(text))), text);
  }
}

}  // namespace
}  // namespace cleave
