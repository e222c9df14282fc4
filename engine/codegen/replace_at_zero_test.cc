#include "engine/codegen/replace_at_zero.h"

#include <memory>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Rewritten(const std::string& condition) {
  auto graph = ParseGraph(
      "graph (%x: f32[n], %y: f32[n]) -> (z: f32[n]) {\n"
      "  %1: f32[] = constant(dtype: f32, value: 0.0)\n"
      "  %2: f32[n] = broadcast_in_dim(%1, axes: [], shape: [n])\n"
      "  %3: bool[n] = " +
          condition +
          "\n"
          "  %4: f32[n] = expm1(%x)\n"
          "  %5: f32[n] = select(%3, %4, %y)\n"
          "  return z = %5\n"
          "}\n",
      std::make_shared<Context>());
  return graph.ok() ? PrintGraph(ReplaceAtZero(*graph))
                    : std::string(graph.status().message());
}

TEST(ReplaceAtZero, TakesTheOperandWhereItIsZero) {
  EXPECT_THAT(Rewritten("eq(%x, %2)"), HasSubstr("select(%3, %x, %y)"));
  EXPECT_THAT(Rewritten("eq(%2, %x)"), HasSubstr("select(%3, %x, %y)"));
  EXPECT_THAT(Rewritten("eq(%x, %2)"), Not(HasSubstr("expm1")));
}

TEST(ReplaceAtZero, KeepsTheFunctionElsewhere) {
  EXPECT_THAT(Rewritten("le(%x, %2)"), HasSubstr("expm1"));
  EXPECT_THAT(Rewritten("eq(%y, %2)"), HasSubstr("expm1"));
  EXPECT_THAT(Rewritten("eq(%x, %y)"), HasSubstr("expm1"));
}

TEST(ReplaceAtZero, KeepsGuards) {
  GraphBuilder builder(std::make_shared<Context>());
  const Dim n = Dim::Variable("n");
  const Value x = builder.Input("x", {DType::kF32, {n}});
  builder.AddGuard({n, CompareOp::kGe, 1, "not empty"});
  const Graph graph = *std::move(builder).Build({{"y", x}});
  EXPECT_EQ(ReplaceAtZero(graph).guards().size(), 1u);
}

}  // namespace
}  // namespace cleave
