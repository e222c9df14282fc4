#include "engine/codegen/sums_of_products.h"

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

std::string Rewritten(const std::string& text) {
  auto graph = ParseGraph(text, std::make_shared<Context>());
  return graph.ok() ? PrintGraph(SumsOfProducts(*graph))
                    : std::string(graph.status().message());
}

TEST(SumsOfProducts, MultipliesElementByElement) {
  const std::string text = Rewritten(
      R"(graph (%a: f32[b, n, m], %b: f32[m, b, n]) -> (y: f32[b]) {
  %1: f32[b] = dot_general(%a, %b, batch_a: [0], batch_b: [1], contract_a: [2, 1], contract_b: [0, 2])
  return y = %1
})");
  EXPECT_THAT(text,
              HasSubstr("%1: f32[b, n, m] = transpose(%b, axes: [1, 2, 0])"));
  EXPECT_THAT(text, HasSubstr("%2: f32[b, n, m] = mul(%a, %1)"));
  EXPECT_THAT(text, HasSubstr("reduce_sum(%2, axes: [1, 2])"));
  EXPECT_THAT(text, Not(HasSubstr("dot_general")));
}

// One term of each element needs no tiles.
TEST(SumsOfProducts, MultipliesOuterProducts) {
  const std::string text = Rewritten(
      R"(graph (%a: f32[b, m, 1], %b: f32[n, b, 1]) -> (y: f32[b, m, n]) {
  %1: f32[b, m, n] = dot_general(%a, %b, batch_a: [0], batch_b: [1], contract_a: [2], contract_b: [2])
  return y = %1
})");
  EXPECT_THAT(text, HasSubstr("broadcast_in_dim(%1, axes: [0, 1]"));
  EXPECT_THAT(text, HasSubstr("axes: [0, 2], shape: [b, m, n])"));
  EXPECT_THAT(text, HasSubstr("= mul("));
  EXPECT_THAT(text, HasSubstr("= add("));
  EXPECT_THAT(text, Not(HasSubstr("dot_general")));
}

TEST(SumsOfProducts, KeepsNarrowSumsWide) {
  const std::string text =
      Rewritten(R"(graph (%a: bf16[n], %b: bf16[n]) -> (y: bf16[]) {
  %1: bf16[] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [0], contract_b: [0])
  return y = %1
})");
  EXPECT_THAT(text, HasSubstr("f32[n] = mul("));
  EXPECT_THAT(text, HasSubstr("f32[] = reduce_sum("));
  EXPECT_THAT(text, HasSubstr("bf16[] = convert("));
}

// The matrix stays as it lies in memory, on either side.
TEST(SumsOfProducts, SpreadsVectorsOverMatrices) {
  std::string text =
      Rewritten(R"(graph (%a: f32[m, n], %b: f32[n]) -> (y: f32[m]) {
  %1: f32[m] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %1
})");
  EXPECT_THAT(text,
              HasSubstr("broadcast_in_dim(%b, axes: [1], shape: [m, n])"));
  EXPECT_THAT(text, HasSubstr("reduce_sum(%2, axes: [1])"));
  text = Rewritten(
      R"(graph (%a: f64[1, k], %b: f64[k, n]) -> (y: f64[1, n]) {
  %1: f64[1, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %1
})");
  EXPECT_THAT(text,
              HasSubstr("broadcast_in_dim(%2, axes: [0], shape: [k, n])"));
  EXPECT_THAT(text, HasSubstr("reduce_sum(%4, axes: [0])"));
  EXPECT_THAT(text, HasSubstr("f64[1, n] = reshape("));
  EXPECT_THAT(text, Not(HasSubstr("dot_general")));
}

TEST(SumsOfProducts, PutsTheBatchInFront) {
  const std::string text = Rewritten(
      R"(graph (%a: f32[n, k, b], %b: f32[b, k, 1]) -> (y: f32[b, n, 1]) {
  %1: f32[b, n, 1] = dot_general(%a, %b, batch_a: [2], batch_b: [0], contract_a: [1], contract_b: [1])
  return y = %1
})");
  EXPECT_THAT(text, HasSubstr("transpose(%b, axes: [1, 0, 2])"));
  EXPECT_THAT(text, HasSubstr("axes: [1, 2], shape: [n, k, b])"));
  EXPECT_THAT(text, HasSubstr("f32[n, b] = reduce_sum("));
  EXPECT_THAT(text, HasSubstr("f32[b, n] = transpose("));
}

TEST(SumsOfProducts, LeavesMatrices) {
  EXPECT_THAT(
      Rewritten(R"(graph (%a: f32[m, n], %b: f32[n, k]) -> (y: f32[m, k]) {
  %1: f32[m, k] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %1
})"),
      HasSubstr("dot_general"));
}

}  // namespace
}  // namespace cleave
