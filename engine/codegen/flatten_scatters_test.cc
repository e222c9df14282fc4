#include "engine/codegen/flatten_scatters.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kScatter[] =
    "graph (%x: f32[4, 2], %i: i64[2, 3, 1], %u: f32[2, 3, 2]) -> (y: f32[4, "
    "2]) {\n  %1: f32[4, 2] = scatter(%x, %i, %u, axes: [0], batch: 0, mode: "
    "\"add\")\n  return y = %1\n}";

TEST(FlattenScatters, HaveTheValuesOfThose) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(kScatter, std::make_shared<Context>()));
  const Graph flat = FlattenScatters(graph);
  EXPECT_THAT(PrintGraph(flat), HasSubstr("i64[6, 1] = reshape(%i"));
  EXPECT_THAT(PrintGraph(flat), HasSubstr("f32[6, 2] = reshape(%u"));
  Tensor x(DType::kF32, {4, 2});
  Tensor i(DType::kI64, {2, 3, 1});
  Tensor u(DType::kF32, {2, 3, 2});
  // Some rows twice, one beyond the end.
  const int64_t rows[] = {3, 0, 3, 1, 4, 0};
  for (int64_t k = 0; k < 6; ++k) i.SetInt(k, rows[k]);
  for (int64_t k = 0; k < 12; ++k) u.SetDouble(k, 0.1 * k);
  for (int64_t k = 0; k < 8; ++k) x.SetDouble(k, 1.0 + k);
  const absl::StatusOr<std::vector<Tensor>> want = Interpret(graph, {x, i, u});
  const absl::StatusOr<std::vector<Tensor>> got = Interpret(flat, {x, i, u});
  ASSERT_EQ(want.ok(), got.ok()) << want.status() << got.status();
  if (want.ok()) {
    EXPECT_EQ((*got)[0].ToString(), (*want)[0].ToString());
  }
  i.SetInt(4, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> all,
                       Interpret(graph, {x, i, u}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> again,
                       Interpret(flat, {x, i, u}));
  EXPECT_EQ(again[0].ToString(), all[0].ToString());
}

TEST(FlattenScatters, KeepABatch) {
  constexpr char kBatch[] =
      "graph (%x: f32[2, 4], %i: i64[2, 3, 2, 1], %u: f32[2, 3, 2]) -> (y: "
      "f32[2, 4]) {\n  %1: f32[2, 4] = scatter(%x, %i, %u, axes: [1], batch: "
      "1, mode: \"add\")\n  return y = %1\n}";
  // Indices are -2 to 2: some places are met twice, and some are none.
  const std::string text = CheckPass(kBatch, FlattenScatters);
  EXPECT_THAT(text, HasSubstr("i64[2, 6, 1] = reshape(%i"));
  EXPECT_THAT(text, HasSubstr("f32[2, 6] = reshape(%u"));
}

TEST(FlattenScatters, AddsInTheShapeOfTheNumbers) {
  constexpr char kSum[] =
      "graph (%x: f32[2, 3], %i: i64[4, 1], %u: f32[4, 1]) -> (y: f32[2, 3]) "
      "{\n"
      "  %1: f32[6, 1] = reshape(%x, shape: [6, 1])\n"
      "  %2: f32[] = constant(dtype: f32, value: 0)\n"
      "  %3: f32[6, 1] = broadcast_in_dim(%2, axes: [], shape: [6, 1])\n"
      "  %4: f32[6, 1] = scatter(%3, %i, %u, axes: [0], batch: 0, mode: "
      "\"add\")\n"
      "  %5: f32[6, 1] = add(%1, %4)\n"
      "  %6: f32[2, 3] = reshape(%5, shape: [2, 3])\n"
      "  return y = %6\n}";
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(kSum, std::make_shared<Context>()));
  const Graph flat = FlattenScatters(graph);
  EXPECT_THAT(PrintGraph(flat), HasSubstr("f32[2, 3] = add(%x, "));
  Tensor x(DType::kF32, {2, 3});
  Tensor i(DType::kI64, {4, 1});
  Tensor u(DType::kF32, {4, 1});
  const int64_t places[] = {5, 0, 5, 3};
  for (int64_t k = 0; k < 4; ++k) {
    i.SetInt(k, places[k]);
    u.SetDouble(k, 0.5 + k);
  }
  for (int64_t k = 0; k < 6; ++k) x.SetDouble(k, 1.0 + k);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                       Interpret(graph, {x, i, u}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       Interpret(flat, {x, i, u}));
  EXPECT_EQ(got[0].ToString(), want[0].ToString());
}

TEST(FlattenScatters, LeavesOthers) {
  std::string text = kScatter;
  text.replace(text.find("\"add\""), 5, "\"max\"");
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(text, std::make_shared<Context>()));
  EXPECT_THAT(PrintGraph(FlattenScatters(graph)), Not(HasSubstr("reshape")));
}

}  // namespace
}  // namespace cleave
