#include "testing/check/compare/compare_tangents.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

// The determinant of a matrix of two rows, and its logarithm.
constexpr char kLogDet[] = R"(
  %1: f32[1, 1] = slice(%a, start: [0, 0], size: [1, 1], stride: [1, 1])
  %2: f32[1, 1] = slice(%a, start: [0, 1], size: [1, 1], stride: [1, 1])
  %3: f32[1, 1] = slice(%a, start: [1, 0], size: [1, 1], stride: [1, 1])
  %4: f32[1, 1] = slice(%a, start: [1, 1], size: [1, 1], stride: [1, 1])
  %5: f32[1, 1] = mul(%1, %4)
  %6: f32[1, 1] = mul(%2, %3)
  %7: f32[1, 1] = sub(%5, %6)
  %8: f32[1, 1] = log(%7)
)";

// Its tangent along `da`, `factor` times too large.
std::string LogDetJvp(double factor) {
  return absl::StrCat(
      "graph (%a: f32[2, 2], %da: f32[2, 2]) -> (y: f32[1, 1], dy: f32[1, 1]) "
      "{",
      kLogDet, R"(
  %9: f32[1, 1] = slice(%da, start: [0, 0], size: [1, 1], stride: [1, 1])
  %10: f32[1, 1] = slice(%da, start: [0, 1], size: [1, 1], stride: [1, 1])
  %11: f32[1, 1] = slice(%da, start: [1, 0], size: [1, 1], stride: [1, 1])
  %12: f32[1, 1] = slice(%da, start: [1, 1], size: [1, 1], stride: [1, 1])
  %13: f32[1, 1] = mul(%9, %4)
  %14: f32[1, 1] = mul(%1, %12)
  %15: f32[1, 1] = mul(%10, %3)
  %16: f32[1, 1] = mul(%2, %11)
  %17: f32[1, 1] = add(%13, %14)
  %18: f32[1, 1] = add(%15, %16)
  %19: f32[1, 1] = sub(%17, %18)
  %20: f32[1, 1] = div(%19, %7)
  %21: f32[] = constant(dtype: f32, value: )",
      factor, R"()
  %22: f32[1, 1] = broadcast_in_dim(%21, axes: [], shape: [1, 1])
  %23: f32[1, 1] = mul(%20, %22)
  return y = %8, dy = %23
})");
}

Tensor Matrix(const std::vector<double>& elements) {
  Tensor matrix(DType::kF32, {2, 2});
  for (int i = 0; i < 4; ++i) matrix.SetDouble(i, elements[i]);
  return matrix;
}

// The comparison at a matrix whose determinant has few digits left of those
// of its products.
TangentComparison CompareIllConditioned(double factor) {
  const auto context = std::make_shared<Context>();
  const auto primal =
      ParseGraph(absl::StrCat("graph (%a: f32[2, 2]) -> (y: f32[1, 1]) {",
                              kLogDet, "  return y = %8\n}"),
                 context);
  const auto jvp = ParseGraph(LogDetJvp(factor), context);
  EXPECT_OK(primal.status());
  EXPECT_OK(jvp.status());
  if (!primal.ok() || !jvp.ok()) return {};
  const JvpGraphs graphs = {*jvp, std::nullopt, {true}};
  const TangentComparer comparer(*primal, *primal, graphs, 0);
  const auto comparison =
      comparer.CompareAlong({Matrix({1.2345678, 0.87654321, 1.4084075, 1})},
                            Matrix({0.3, -1.1, 0.7, 0.4}), 1e-8);
  EXPECT_OK(comparison.status());
  return comparison.value_or(TangentComparison());
}

TEST(CompareTangentsTest, AllowsWhatAnUlpOfTheMatrixMoves) {
  const TangentComparison comparison = CompareIllConditioned(1);
  EXPECT_EQ(comparison.samples, 1);
  EXPECT_FALSE(comparison.failure.has_value());
}

// As far off as rounding of the right rule may be, and wrong over the reals.
TEST(CompareTangentsTest, AllowsNoWrongRule) {
  const TangentComparison comparison = CompareIllConditioned(1 + 0x1p-6);
  ASSERT_TRUE(comparison.failure.has_value());
  EXPECT_EQ(comparison.failure->result, 0);
}

}  // namespace
}  // namespace cleave
