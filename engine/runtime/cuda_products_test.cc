// Products that cuBLAS computes, on the libraries of fake_cuda_testing.c and
// fake_cublas_testing.c: which it is given, and where it finds the operands.

#include <string>
#include <vector>

#include "absl/strings/substitute.h"
#include "engine/codegen/device.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

struct CudaRun {
  std::vector<Tensor> got;
  std::vector<Tensor> want;
  RunReport report;
};

CudaRun RunOnCuda(const std::string& text,
                  const std::vector<std::vector<int64_t>>& shapes) {
  const Graph graph = ParseCase(text);
  CompileOptions options = CaseOptions();
  options.device = Device::kCuda;
  const auto kernel = Compile(graph, Numerics(), options);
  EXPECT_OK(kernel.status());
  CudaRun result;
  if (!kernel.ok()) return result;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    TensorType type = graph.type(graph.inputs()[i].value);
    type.shape.assign(shapes[i].begin(), shapes[i].end());
    inputs.push_back(SmallIntegers(type, static_cast<int64_t>(i)));
  }
  RunOptions run;
  run.report = &result.report;
  const auto got = kernel->Run(inputs, run);
  const auto want = Interpret(graph, inputs);
  EXPECT_OK(got.status());
  EXPECT_OK(want.status());
  if (!got.ok() || !want.ok()) return result;
  result.got = *got;
  result.want = *want;
  return result;
}

struct ProductCase {
  const char* name;
  std::string text;
  std::vector<std::vector<int64_t>> shapes;
};

// Heads of attention that lie beside each other: two axes of a batch.
constexpr char kHeads[] =
    R"(graph (%q: f32[b, s, h, d], %k: f32[b, t, h, d]) -> (y: f32[b, h, s, t]) {
  %1: f32[b, h, s, d] = transpose(%q, axes: [0, 2, 1, 3])
  %2: f32[b, h, d, t] = transpose(%k, axes: [0, 2, 3, 1])
  %3: f32[b, h, s, t] = dot_general(%1, %2, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [2])
  return y = %3
})";

std::vector<ProductCase> ProductCases() {
  return {
      {"Matrices",
       R"(graph (%a: f32[m, k], %b: f32[k, n]) -> (y: f32[m, n]) {
  %1: f32[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %1
})",
       {{17, 33}, {33, 20}}},
      {"TransposedRight",
       R"(graph (%a: f64[m, k], %b: f64[n, k]) -> (y: f64[m, n]) {
  %1: f64[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  return y = %1
})",
       {{16, 16}, {70, 16}}},
      {"TransposedLeft",
       R"(graph (%a: f32[k, m], %b: f32[k, n]) -> (y: f32[m, n]) {
  %1: f32[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [0], contract_b: [0])
  return y = %1
})",
       {{19, 40}, {19, 16}}},
      {"Batch",
       R"(graph (%a: f32[b, m, k], %b: f32[b, k, n]) -> (y: f32[b, m, n]) {
  %1: f32[b, m, n] = dot_general(%a, %b, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [1])
  return y = %1
})",
       {{3, 17, 18}, {3, 18, 19}}},
      {"Heads", kHeads, {{2, 17, 5, 16}, {2, 18, 5, 16}}},
      {"ManyExamplesOfFewHeads", kHeads, {{70, 17, 2, 16}, {70, 18, 2, 16}}},
      // A part of what one product made for all three.
      {"Slice",
       R"(graph (%a: f32[64, 90], %b: f32[20, 30]) -> (y: f32[64, 20]) {
  %1: f32[64, 30] = slice(%a, start: [0, 30], size: [64, 30], stride: [1, 1])
  %2: f32[64, 20] = dot_general(%1, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  return y = %2
})",
       {{64, 90}, {20, 30}}},
      {"RepeatedOverTheBatch",
       R"(graph (%a: f32[b, m, k], %w: f32[k, n]) -> (y: f32[b, m, n]) {
  %1: f32[b, k, n] = broadcast_in_dim(%w, axes: [1, 2], shape: [b, k, n])
  %2: f32[b, m, n] = dot_general(%a, %1, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [1])
  return y = %2
})",
       {{4, 17, 18}, {18, 19}}},
      // Weights by windows, as of a convolution.
      {"SeveralAxes",
       R"(graph (%w: f32[16, 5, 2, 2], %c: f32[5, 2, 2, 3, 4, 6]) -> (y: f32[16, 3, 4, 6]) {
  %1: f32[16, 3, 4, 6] = dot_general(%w, %c, batch_a: [], batch_b: [], contract_a: [1, 2, 3], contract_b: [0, 1, 2])
  return y = %1
})",
       {{16, 5, 2, 2}, {5, 2, 2, 3, 4, 6}}},
      {"ResultInAnotherShape",
       R"(graph (%a: f32[32, 20], %b: f32[20, 16]) -> (y: f32[2, 16, 16]) {
  %1: f32[32, 16] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %2: f32[2, 16, 16] = reshape(%1, shape: [2, 16, 16])
  return y = %2
})",
       {{32, 20}, {20, 16}}},
  };
}

class CudaProducts : public ::testing::TestWithParam<ProductCase> {};

INSTANTIATE_TEST_SUITE_P(All, CudaProducts, ::testing::ValuesIn(ProductCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CudaProducts, FindTheirOperands) {
  const CudaRun run = RunOnCuda(GetParam().text, GetParam().shapes);
  ASSERT_EQ(run.got.size(), 1);
  EXPECT_TRUE(SameValue(run.got[0], run.want[0]));
  ASSERT_EQ(run.report.steps.size(), 1);
  EXPECT_EQ(run.report.steps[0].library, "cublas");
  EXPECT_THAT(run.report.ToString(), HasSubstr("by cublas"));
}

constexpr char kFused[] = R"(
graph (%a: f32[m, k], %b: f32[k, n]) -> (y: f32[m, n]) {
  %1: f32[m, n] = dot_general(%a, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %2: f32[m, n] = exp(%1)
  return y = %2
})";

TEST(CudaProductsOfKernels, AreAKernelOfTheirOwn) {
  const CudaRun run = RunOnCuda(kFused, {{16, 16}, {16, 16}});
  ASSERT_EQ(run.report.steps.size(), 2);
  EXPECT_EQ(run.report.steps[0].library, "cublas");
  EXPECT_EQ(run.report.steps[1].library, "");
  EXPECT_EQ(run.report.steps[1].device, "cuda");
}

// A convolution 3x3 of 20x20 elements, padded at every end.
CudaRun RunConvolution(int padding) {
  return RunOnCuda(absl::Substitute(R"(
graph (%x: f32[2, 8, 20, 20], %w: f32[16, 8, 3, 3]) -> (y: f32[2, 16, $0, $0]) {
  %1: f32[2, 16, $0, $0] = conv(%x, %w, batch_groups: 1, groups: 1, high: [$1, $1], lhs_dilation: [1, 1], low: [$1, $1], rhs_dilation: [1, 1], stride: [1, 1])
  return y = %1
})",
                                    18 + 2 * padding, padding),
                   {{2, 8, 20, 20}, {16, 8, 3, 3}});
}

// Its windows are stored by a kernel, which does nothing here.
TEST(CudaProductsOfKernels, AreConvolutions) {
  EXPECT_THAT(RunConvolution(0).report.steps,
              Contains(Field(&StepReport::library, "cublas")));
}

// Padding is of terms that weights are not multiplied with: whether they are
// finite is asked on the device.
TEST(CudaProductsOfKernels, ArePaddedConvolutions) {
  EXPECT_FALSE(RunConvolution(1).report.steps.empty());
}

// Extents at which a kernel is faster, and what the library has no form for.
TEST(CudaProductsOfKernels, AreKernelsWhereTheyAreSmall) {
  const CudaRun run = RunOnCuda(kFused, {{15, 16}, {16, 16}});
  ASSERT_EQ(run.report.steps.size(), 2);
  EXPECT_EQ(run.report.steps[0].library, "");
  const CudaRun small = RunOnCuda(R"(
graph (%a: f32[b, 4, 4], %b: f32[b, 4, 4]) -> (y: f32[b, 4, 4]) {
  %1: f32[b, 4, 4] = dot_general(%a, %b, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [1])
  %2: f32[b, 4, 4] = exp(%1)
  return y = %2
})",
                                  {{5, 4, 4}, {5, 4, 4}});
  ASSERT_EQ(small.report.steps.size(), 1);
  EXPECT_EQ(small.report.steps[0].library, "");
}

TEST(CudaProductsOfKernels, AreKernelsOfStridesThatTheLibraryHasNot) {
  const CudaRun run = RunOnCuda(R"(
graph (%a: f32[32, 64], %b: f32[32, 20]) -> (y: f32[32, 20]) {
  %1: f32[32, 32] = slice(%a, start: [0, 0], size: [32, 32], stride: [1, 2])
  %2: f32[32, 20] = dot_general(%1, %b, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %2
})",
                                {{32, 64}, {32, 20}});
  ASSERT_EQ(run.report.steps.size(), 1);
  EXPECT_EQ(run.report.steps[0].library, "");
}

}  // namespace
}  // namespace cleave
