#include "engine/ir/graph_key.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

TEST(GraphKey, TellsGraphsOfOneContextApart) {
  const auto context = std::make_shared<Context>();
  const auto key = [&](const char* inputs, const char* node,
                       const char* outputs) {
    const absl::StatusOr<Graph> graph =
        ParseGraph(absl::StrCat("graph ", inputs, " {\n  %1: f32[n] = ", node,
                                "\n  return ", outputs, "\n}\n"),
                   context);
    EXPECT_OK(graph);
    return graph.ok() ? GraphKey(*graph) : std::string();
  };
  const char* const kOfX = "(%x: f32[n]) -> (y: f32[n])";
  const std::string exp = key(kOfX, "exp(%x)", "y = %1");
  EXPECT_EQ(exp, key("(%x: f32[n]) -> (z: f32[n])", "exp(%x)", "z = %1"));
  EXPECT_NE(exp, key(kOfX, "log(%x)", "y = %1"));
  EXPECT_NE(exp, key("(%x: f32[n]) -> (y: f32[n], z: f32[n])", "exp(%x)",
                     "y = %1, z = %x"));
  EXPECT_NE(
      exp, key("(%x: f32[n], %z: f32[n]) -> (y: f32[n])", "exp(%x)", "y = %1"));
}

// Kernels are kept by the key.
TEST(GraphKey, TellsZerosApart) {
  const auto context = std::make_shared<Context>();
  const auto key = [&](const Exact& number) {
    GraphBuilder builder(context);
    const Value y = builder.Apply(Primitive::kCopysign,
                                  {builder.Input("x", {DType::kF32, {}}),
                                   builder.Constant(number, DType::kF32)});
    return GraphKey(*std::move(builder).Build({{"y", y}}));
  };
  EXPECT_EQ(key(Exact::FromDouble(-0.0)), key(Exact::FromDouble(-0.0)));
  EXPECT_NE(key(Exact::FromDouble(-0.0)), key(0));
}

}  // namespace
}  // namespace cleave
