#include "engine/codegen/sums_of_loops.h"

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
using ::testing::Not;

// The text of the rewritten graph, which gives the same for small integers,
// whose sums are exact in any order.
std::string Checked(const std::string& text) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) return std::string(graph.status().message());
  const Graph rewritten = SumsOfLoops(*graph);
  std::vector<Tensor> inputs;
  for (const NamedValue& input : graph->inputs()) {
    std::vector<int64_t> shape;
    for (const Dim& dim : graph->type(input.value).shape) {
      shape.push_back(*dim.Value());
    }
    Tensor x(DType::kF32, shape);
    for (int64_t i = 0; i < x.size(); ++i) {
      x.SetDouble(i, static_cast<double>(i * 7 % 5) - 2);
    }
    inputs.push_back(std::move(x));
  }
  const auto want = Interpret(*graph, inputs);
  const auto got = Interpret(rewritten, inputs);
  if (!want.ok() || !got.ok()) {
    ADD_FAILURE() << want.status() << got.status();
    return "";
  }
  for (size_t i = 0; i < want->size(); ++i) {
    EXPECT_EQ((*got)[i].ToString(), (*want)[i].ToString()) << i;
  }
  return PrintGraph(rewritten);
}

// Gradients of a weight and of a bias beside a carry that stays, backwards.
TEST(SumsOfLoops, AreProductsOfWhatIsStacked) {
  const std::string text = Checked(
      R"(graph (%w: f32[4, 3], %b: f32[3], %h: f32[2, 3], %x: f32[5, 2, 4], %d: f32[5, 2, 3]) -> (w: f32[4, 3], b: f32[3], h: f32[2, 3]) {
  %1: f32[4, 3], f32[3], f32[2, 3] = scan(%w, %b, %h, %x, %d, body: graph (%w: f32[4, 3], %b: f32[3], %h: f32[2, 3], %x: f32[2, 4], %d: f32[2, 3]) -> (w: f32[4, 3], b: f32[3], h: f32[2, 3]) {
    %1: f32[2, 3] = sub(%h, %d)
    %2: f32[4, 3] = dot_general(%x, %1, batch_a: [], batch_b: [], contract_a: [0], contract_b: [0])
    %3: f32[4, 3] = add(%w, %2)
    %4: f32[3] = reduce_sum(%1, axes: [0])
    %5: f32[3] = add(%4, %b)
    return w = %3, b = %5, h = %1
  }, carries: 3, consts: 0, length: 5, reverse: true)
  %2: f32[4, 3] = result(%1, index: 0)
  %3: f32[3] = result(%1, index: 1)
  %4: f32[2, 3] = result(%1, index: 2)
  return w = %2, b = %3, h = %4
})");
  EXPECT_THAT(text, HasSubstr("carries: 1"));
  EXPECT_THAT(text, HasSubstr("contract_a: [0, 1], contract_b: [0, 1]"));
  EXPECT_THAT(text, HasSubstr("reduce_sum(%3, axes: [0, 1])"));
  EXPECT_THAT(text, Not(HasSubstr("    %2: f32[4, 3] = dot_general")));
}

// The only result; what is summed is sliced.
TEST(SumsOfLoops, LeaveNoCarry) {
  const std::string text = Checked(
      R"(graph (%w: f32[4], %x: f32[5, 2, 4]) -> (w: f32[4]) {
  %1: f32[4] = scan(%w, %x, body: graph (%w: f32[4], %x: f32[2, 4]) -> (w: f32[4]) {
    %1: f32[4] = reduce_sum(%x, axes: [0])
    %2: f32[4] = add(%w, %1)
    return w = %2
  }, carries: 1, consts: 0, length: 5, reverse: false)
  return w = %1
})");
  EXPECT_THAT(text, HasSubstr("reduce_sum(%x, axes: [0, 1])"));
}

// Sums that steps read, of what all steps share, or of more elements than the
// carry has.
TEST(SumsOfLoops, LeaveOthers) {
  for (const char* body : {R"(    %1: f32[2] = reduce_sum(%x, axes: [0])
    %2: f32[2] = add(%w, %1)
    %3: f32[2] = mul(%w, %2)
    return w = %2, h = %3
)",
                           R"(    %1: f32[2] = reduce_sum(%c, axes: [0])
    %2: f32[2] = add(%w, %1)
    return w = %2, h = %h
)",
                           R"(    %1: f32[3, 2] = neg(%x)
    %2: f32[2] = reduce_sum(%1, axes: [0])
    %3: f32[2] = add(%w, %2)
    return w = %3, h = %h
)"}) {
    const std::string text =
        std::string(
            R"(graph (%c: f32[3, 2], %w: f32[2], %h: f32[2], %x: f32[5, 3, 2]) -> (w: f32[2], h: f32[2]) {
  %1: f32[2], f32[2] = scan(%c, %w, %h, %x, body: graph (%c: f32[3, 2], %w: f32[2], %h: f32[2], %x: f32[3, 2]) -> (w: f32[2], h: f32[2]) {
)") + body +
        R"(  }, carries: 2, consts: 1, length: 5, reverse: false)
  %2: f32[2] = result(%1, index: 0)
  %3: f32[2] = result(%1, index: 1)
  return w = %2, h = %3
}
)";
    EXPECT_EQ(Checked(text), text);
  }
}

}  // namespace
}  // namespace cleave
