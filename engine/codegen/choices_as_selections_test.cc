#include "engine/codegen/choices_as_selections.h"

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
using ::testing::Not;

Graph Parsed(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) ADD_FAILURE() << graph.status();
  return *std::move(graph);
}

constexpr char kChoice[] =
    R"(graph (%p: bool[], %x: f32[n], %i: i32[n]) -> (a: f32[n], b: i32[n]) {
  %1: f32[n], i32[n] = cond(%p, %x, %i, else: graph (%x: f32[n], %i: i32[n]) -> (y0: f32[n], y1: i32[n]) {
    %1: f32[n] = exp(%x)
    return y0 = %1, y1 = %i
  }, then: graph (%x: f32[n], %i: i32[n]) -> (y0: f32[n], y1: i32[n]) {
    %1: i32[] = constant(dtype: i32, value: 3.0)
    %2: i32[n] = broadcast_in_dim(%1, axes: [], shape: [n])
    %3: i32[n] = floor_div(%i, %2)
    return y0 = %x, y1 = %3
  })
  %2: f32[n] = result(%1, index: 0)
  %3: i32[n] = result(%1, index: 1)
  return a = %2, b = %3
}
)";

TEST(ChoicesAsSelections, HaveTheResultsOfTheBranch) {
  const Graph graph = Parsed(kChoice);
  const Graph selections = ChoicesAsSelections(graph);
  EXPECT_THAT(PrintGraph(selections), Not(HasSubstr("cond")));
  Tensor x(DType::kF32, {3});
  Tensor i(DType::kI32, {3});
  for (int k = 0; k < 3; ++k) {
    x.SetDouble(k, 0.5 * k);
    i.SetInt(k, 7 * k - 3);
  }
  for (const bool taken : {false, true}) {
    Tensor p(DType::kBool, {});
    p.SetInt(0, taken);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                         Interpret(graph, {p, x, i}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Interpret(selections, {p, x, i}));
    for (int k = 0; k < 2; ++k) {
      EXPECT_EQ(got[k].ToString(), want[k].ToString());
    }
  }
}

// A divisor that is computed may be 0 where the branch is not taken.
TEST(ChoicesAsSelections, LeaveBranchesThatMayFail) {
  std::string text = kChoice;
  text.replace(text.find("floor_div(%i, %2)"), 17, "floor_div(%2, %i)");
  EXPECT_THAT(PrintGraph(ChoicesAsSelections(Parsed(text))), HasSubstr("cond"));
}

}  // namespace
}  // namespace cleave
