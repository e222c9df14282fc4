#include "engine/codegen/phases_of_convolutions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

Tensor Numbers(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor tensor(type.dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, static_cast<double>(i % 17) * 0.375 - 1);
  }
  return tensor;
}

// A convolution over one axis, and over a second one that is not spread.
std::string Spread(int64_t length, int64_t size, int64_t spread, int64_t low,
                   int64_t high) {
  const int64_t outputs = (length - 1) * spread + 1 + low + high - size + 1;
  return absl::StrCat(
      "graph (%x: f64[2, 3, ", length, ", 4], %w: f64[2, 3, ", size,
      ", 3]) -> (y: f64[2, 2, ", outputs, ", 4]) {\n  %1: f64[2, 2, ", outputs,
      ", 4] = conv(%x, %w, stride: [1, 1], low: [", low, ", 1], high: [", high,
      ", 1], lhs_dilation: [", spread,
      ", 1], rhs_dilation: [1, 1], groups: 1, batch_groups: 1)\n"
      "  return y = %1\n}");
}

// All kernels and paddings for some spreads, whether they divide or not.
TEST(PhasesOfConvolutions, HaveTheValuesOfConvolutions) {
  for (const int64_t spread : {2, 3}) {
    for (int64_t size = 1; size <= 5; ++size) {
      for (int64_t low = 0; low <= 4; ++low) {
        for (int64_t high = 0; high <= 4; ++high) {
          const std::string text = Spread(4, size, spread, low, high);
          ASSERT_OK_AND_ASSIGN(const Graph graph,
                               ParseGraph(text, std::make_shared<Context>()));
          const Graph phases = PhasesOfConvolutions(graph);
          EXPECT_THAT(PrintGraph(phases), HasSubstr("lhs_dilation: [1, 1]"));
          const std::vector<Tensor> inputs = {
              Numbers(graph.type(graph.inputs()[0].value)),
              Numbers(graph.type(graph.inputs()[1].value))};
          ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                               Interpret(graph, inputs));
          ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                               Interpret(phases, inputs));
          ASSERT_EQ(got[0].ToString(), want[0].ToString()) << text;
        }
      }
    }
  }
}

// Zeros that stand for places a kernel does not have meet the windows of x.
TEST(PhasesOfConvolutions, SayWhatIsToBeFinite) {
  const auto finite = [](int64_t size, int64_t low) {
    const auto graph =
        ParseGraph(Spread(8, size, 2, low, low), std::make_shared<Context>());
    std::vector<std::vector<int>> all;
    if (!graph.ok()) return all;
    const Graph product = ProductsOfWindows(PhasesOfConvolutions(*graph));
    for (uint32_t id = 0; id < product.size(); ++id) {
      auto operands = FiniteOperands(product, Value{id});
      if (!operands.empty()) all.push_back(std::move(operands));
    }
    return all;
  };
  // The other axis is padded: the weights are to be finite in any case.
  const std::vector<int> weights = {0};
  const std::vector<int> weights_and_x = {0, 1};
  EXPECT_THAT(finite(4, 3), ElementsAre(UnorderedElementsAreArray(weights)));
  EXPECT_THAT(finite(3, 2),
              ElementsAre(UnorderedElementsAreArray(weights_and_x)));
}

// Strides, groups, and extents that are open.
TEST(PhasesOfConvolutions, LeaveOthers) {
  for (const char* attributes :
       {"stride: [2], low: [0], high: [1], lhs_dilation: [2], rhs_dilation: "
        "[1], groups: 1, batch_groups: 1",
        "stride: [1], low: [0], high: [0], lhs_dilation: [1], rhs_dilation: "
        "[1], groups: 1, batch_groups: 1"}) {
    const std::string text = absl::StrCat(
        "graph (%x: f64[2, 3, 4], %w: f64[2, 3, 1]) -> (y: f64[2, 2, 4]) {\n"
        "  %1: f64[2, 2, 4] = conv(%x, %w, ",
        attributes, ")\n  return y = %1\n}");
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         ParseGraph(text, std::make_shared<Context>()));
    EXPECT_EQ(PrintGraph(PhasesOfConvolutions(graph)), PrintGraph(graph));
  }
}

}  // namespace
}  // namespace cleave
