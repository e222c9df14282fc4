#include "engine/codegen/products_of_windows.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Convolution(const std::string& x, const std::string& w,
                        const std::string& y, const std::string& attributes,
                        int groups = 1, int batch_groups = 1) {
  return absl::StrCat("graph (%x: f64", x, ", %w: f64", w, ") -> (y: f64", y,
                      ") {\n  %1: f64", y, " = conv(%x, %w, ", attributes,
                      ", groups: ", groups, ", batch_groups: ", batch_groups,
                      ")\n  return y = %1\n}");
}

// Extents that are open have a value for all tensors.
Tensor Numbers(const TensorType& type, double step) {
  const std::map<std::string, int64_t> open = {
      {"n", 2}, {"c", 3}, {"o", 4}, {"w", 7}, {"k", 5}};
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) {
    shape.push_back(dim.Value() ? *dim.Value() : open.at(dim.ToString()));
  }
  Tensor tensor(type.dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, static_cast<double>(i % 17) * step - 1);
  }
  return tensor;
}

// Strides, dilations of both sides and padding of more and less than nothing.
TEST(ProductsOfWindows, HaveTheValuesOfConvolutions) {
  struct Example {
    const char* x;
    const char* w;
    const char* y;
    const char* attributes;
    int groups = 1;
    int batch_groups = 1;
  };
  constexpr char kPlain[] =
      "stride: [1], low: [0], high: [0], lhs_dilation: [1], rhs_dilation: [1]";
  constexpr char kPadded[] =
      "stride: [1], low: [5], high: [5], lhs_dilation: [1], rhs_dilation: [1]";
  constexpr char kUneven[] =
      "stride: [2], low: [2], high: [-1], lhs_dilation: [1], rhs_dilation: "
      "[1]";
  const Example examples[] = {
      {"[2, 3, 7]", "[4, 3, 3]", "[2, 4, 4]",
       "stride: [2], low: [1], high: [1], lhs_dilation: [1], "
       "rhs_dilation: [1]"},
      {"[1, 2, 5, 6]", "[3, 2, 2, 3]", "[1, 3, 5, 3]",
       "stride: [1, 1], low: [2, -1], high: [0, 2], lhs_dilation: [1, 1], "
       "rhs_dilation: [2, 2]"},
      {"[2, 1, 4]", "[2, 1, 3]", "[2, 2, 9]",
       "stride: [1], low: [2], high: [2], lhs_dilation: [2], "
       "rhs_dilation: [1]"},
      {"[2, 3]", "[4, 3]", "[2, 4]",
       "stride: [], low: [], high: [], lhs_dilation: [], rhs_dilation: []"},
      // Places as columns: of all images, of one image, of the image as it is.
      {"[2, 3, 20]", "[4, 3, 3]", "[2, 4, 20]",
       "stride: [1], low: [1], high: [1], lhs_dilation: [1], "
       "rhs_dilation: [1]"},
      {"[1, 2, 9, 6]", "[3, 2, 2, 3]", "[1, 3, 5, 12]",
       "stride: [2, 1], low: [2, -1], high: [0, 4], lhs_dilation: [1, 2], "
       "rhs_dilation: [1, 1]"},
      {"[2, 3, 600]", "[4, 3, 1]", "[2, 4, 600]",
       "stride: [1], low: [0], high: [0], lhs_dilation: [1], "
       "rhs_dilation: [1]"},
      // Groups of features and of images, likewise.
      {"[2, 6, 20]", "[8, 3, 11]", "[2, 8, 20]", kPadded, 2},
      {"[1, 6, 20]", "[8, 3, 11]", "[1, 8, 20]", kPadded, 2},
      {"[2, 6, 20]", "[8, 3, 11]", "[2, 8, 10]", kPlain, 2},
      {"[4, 3, 20]", "[8, 3, 11]", "[2, 8, 20]", kPadded, 1, 2},
      {"[4, 3, 20]", "[8, 3, 11]", "[2, 8, 10]", kPlain, 1, 2},
      {"[1, 66, 20]", "[8, 33, 1]", "[1, 8, 20]", kPlain, 2},
      {"[2, 33, 20]", "[8, 33, 1]", "[1, 8, 20]", kPlain, 1, 2},
      // Windows of an unknown size: places of an image, of its rows, and of
      // all.
      {"[2, c, 20]", "[o, c, 3]", "[2, o, 20]",
       "stride: [1], low: [1], high: [1], lhs_dilation: [1], "
       "rhs_dilation: [1]"},
      {"[n, 2, 6, w]", "[3, 2, 3, 2]", "[n, 3, 6, max(w - 1, 0)]",
       "stride: [1, 1], low: [1, 0], high: [1, 0], lhs_dilation: [1, 1], "
       "rhs_dilation: [1, 1]"},
      {"[n, 2, w]", "[3, 2, k]", "[n, 3, max(w - k + 1, 0)]", kPlain},
      {"[n, 33, w]", "[o, 33, 1]", "[n, o, w]", kPlain},
      // Sums of windows: one output of each group.
      {"[2, 3, 12]", "[3, 1, 9]", "[2, 3, 4]", kPlain, 3},
      {"[2, 3, 12]", "[3, 1, 9]", "[2, 3, 3]", kUneven, 3},
      {"[3, 2, 12]", "[3, 2, 9]", "[1, 3, 4]", kPlain, 1, 3},
      {"[0, 3, 5]", "[4, 3, 2]", "[0, 4, 4]",
       "stride: [1], low: [0], high: [0], lhs_dilation: [1], "
       "rhs_dilation: [1]"}};
  for (const Example& e : examples) {
    const std::string text =
        Convolution(e.x, e.w, e.y, e.attributes, e.groups, e.batch_groups);
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         ParseGraph(text, std::make_shared<Context>()));
    const Graph product = ProductsOfWindows(graph);
    EXPECT_THAT(PrintGraph(product), Not(HasSubstr("conv(")));
    EXPECT_THAT(PrintGraph(product),
                AnyOf(HasSubstr("dot_general("), HasSubstr("reduce_sum(")));
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph.inputs()) {
      inputs.push_back(Numbers(graph.type(input.value), 0.375));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                         Interpret(graph, inputs));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Interpret(product, inputs));
    EXPECT_EQ(got[0].ToString(), want[0].ToString());
  }
}

std::string Rewritten(const std::string& text) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  return graph.ok() ? PrintGraph(ProductsOfWindows(*graph))
                    : std::string(graph.status().message());
}

// The contraction reads the windows from memory, but for those of one element.
TEST(ProductsOfWindows, AreStored) {
  EXPECT_THAT(Rewritten(Convolution("[1, 3, 5]", "[4, 3, 3]", "[1, 4, 3]",
                                    "stride: [1], low: [0], high: [0], "
                                    "lhs_dilation: [1], rhs_dilation: [1]")),
              HasSubstr("f64[1, 3, 3, 3] = convert("));
  EXPECT_THAT(Rewritten(Convolution("[1, 3, 50]", "[4, 3, 3]", "[1, 4, 48]",
                                    "stride: [1], low: [0], high: [0], "
                                    "lhs_dilation: [1], rhs_dilation: [1]")),
              HasSubstr("f64[1, 3, 3, 48] = convert("));
  EXPECT_THAT(Rewritten(Convolution("[1, 3, 50]", "[4, 3, 1]", "[1, 4, 50]",
                                    "stride: [1], low: [0], high: [0], "
                                    "lhs_dilation: [1], rhs_dilation: [1]")),
              Not(HasSubstr("convert(")));
}

// Nobody knows how much memory they would take, or it is more than the limit.
TEST(ProductsOfWindows, AreFoundWhereTheyAreLarge) {
  const std::string rest =
      "stride: [1], low: [0], high: [0], lhs_dilation: [1], rhs_dilation: [1]";
  for (const std::string& text :
       {Rewritten(Convolution("[n, 3, 5]", "[4, 3, 3]", "[n, 4, 3]", rest)),
        Rewritten(Convolution("[4096, 64, 512]", "[4, 64, 3]", "[4096, 4, 510]",
                              rest))}) {
    EXPECT_THAT(text, Not(HasSubstr("convert(")));
    EXPECT_THAT(text, HasSubstr("dot_general("));
  }
}

// Weights that meet zeros for what is absent are to be finite.
TEST(ProductsOfWindows, SayWhatIsToBeFinite) {
  const auto finite = [](const std::string& padding) -> std::optional<int> {
    const auto graph = ParseGraph(
        Convolution(
            "[1, 3, 50]", "[4, 3, 3]",
            padding == "0" ? "[1, 4, 48]" : "[1, 4, 50]",
            absl::StrCat("stride: [1], low: [", padding, "], high: [", padding,
                         "], lhs_dilation: [1], rhs_dilation: [1]")),
        std::make_shared<Context>());
    if (!graph.ok()) return -1;
    const Graph product = ProductsOfWindows(*graph);
    for (uint32_t id = 0; id < product.size(); ++id) {
      for (const int operand : FiniteOperands(product, Value{id})) {
        return operand;
      }
    }
    return std::nullopt;
  };
  EXPECT_EQ(finite("0"), std::nullopt);
  EXPECT_EQ(finite("1"), 0);
}

TEST(ProductsOfWindows, LeaveOthers) {
  const std::string rest =
      "stride: [1], low: [0], high: [0], lhs_dilation: [1], rhs_dilation: [1]";
  // Nobody knows whether the channels are as many.
  EXPECT_THAT(
      Rewritten(Convolution("[n, c, 5]", "[4, d, 3]", "[n, 4, 3]", rest)),
      HasSubstr("conv("));
  // Each output reads one channel.
  EXPECT_THAT(
      Rewritten(Convolution("[1, 4, 5]", "[4, 1, 3]", "[1, 4, 3]", rest, 4)),
      HasSubstr("conv("));
}

// Sums leave out what is absent, which an infinite weight would turn into NaN.
TEST(ProductsOfWindows, SumsLeaveAbsentElementsOut) {
  const std::string text =
      Convolution("[1, 2, 3]", "[2, 1, 4]", "[1, 2, 2]",
                  "stride: [1], low: [1], high: [1], lhs_dilation: [1], "
                  "rhs_dilation: [1]",
                  2);
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(text, std::make_shared<Context>()));
  const Graph sum = ProductsOfWindows(graph);
  EXPECT_THAT(PrintGraph(sum), HasSubstr("reduce_sum("));
  Tensor x = Numbers(graph.type(graph.inputs()[0].value), 0.375);
  Tensor w = Numbers(graph.type(graph.inputs()[1].value), 0.375);
  w.SetDouble(0, std::numeric_limits<double>::infinity());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                       Interpret(graph, {x, w}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, Interpret(sum, {x, w}));
  EXPECT_EQ(got[0].ToString(), want[0].ToString());
}

// Few rows of weights meet the rows of images where they are; columns that fill
// the last vector are left out of the result.
TEST(ProductsOfWindows, FindRowsOfImages) {
  constexpr char kText[] =
      R"(graph (%x: f32[2, 3, 9, 20], %w: f32[17, 3, 3, 3]) -> (y: f32[2, 17, 4, 17]) {
  %1: f32[2, 17, 4, 17] = conv(%x, %w, batch_groups: 1, groups: 1, high: [0, -1], lhs_dilation: [1, 1], low: [0, 2], rhs_dilation: [1, 2], stride: [2, 1])
  return y = %1
})";
  const std::string found = CheckPass(
      kText, [](const Graph& graph) { return ProductsOfWindows(graph); });
  EXPECT_THAT(found, HasSubstr("f32[2, 4, 17, 32] = dot_general"));
  EXPECT_THAT(found, HasSubstr("slice"));
  const std::string stored = CheckPass(kText, [](const Graph& graph) {
    return ProductsOfWindows(graph, /*rows_of_images=*/false);
  });
  EXPECT_THAT(stored, Not(HasSubstr("slice")));
}

// Outputs that fill vectors meet places of rows of images, which are rows of
// the product; so do those of groups, and strides are no matter.
TEST(ProductsOfWindows, FindPlacesOfRows) {
  const auto rewrite = [](const Graph& graph) {
    return ProductsOfWindows(graph);
  };
  const std::string padded = CheckPass(
      R"(graph (%x: f32[2, 3, 9, 20], %w: f32[30, 3, 3, 3]) -> (y: f32[2, 30, 4, 10]) {
  %1: f32[2, 30, 4, 10] = conv(%x, %w, batch_groups: 1, groups: 1, high: [0, 1], lhs_dilation: [1, 1], low: [0, 2], rhs_dilation: [1, 2], stride: [2, 2])
  return y = %1
})",
      rewrite);
  EXPECT_THAT(padded, HasSubstr("f32[2, 4, 10, 32] = dot_general"));
  EXPECT_THAT(padded, HasSubstr("slice"));
  const std::string groups = CheckPass(
      R"(graph (%x: f32[2, 8, 5, 9], %w: f32[96, 4, 3, 3]) -> (y: f32[2, 96, 5, 9]) {
  %1: f32[2, 96, 5, 9] = conv(%x, %w, batch_groups: 1, groups: 2, high: [1, 1], lhs_dilation: [1, 1], low: [1, 1], rhs_dilation: [1, 1], stride: [1, 1])
  return y = %1
})",
      rewrite);
  EXPECT_THAT(groups, HasSubstr("f32[2, 2, 5, 9, 48] = dot_general"));
  EXPECT_THAT(groups, Not(HasSubstr("slice")));
  // One element is no window of which the parts would be found again.
  const std::string points = CheckPass(
      R"(graph (%x: f32[2, 3, 9, 19], %w: f32[32, 3, 1, 1]) -> (y: f32[2, 32, 5, 10]) {
  %1: f32[2, 32, 5, 10] = conv(%x, %w, batch_groups: 1, groups: 1, high: [0, 0], lhs_dilation: [1, 1], low: [0, 0], rhs_dilation: [1, 1], stride: [2, 2])
  return y = %1
})",
      rewrite);
  EXPECT_THAT(points, Not(HasSubstr("f32[2, 5, 10, 32] = dot_general")));
}

// The gradient of weights: channels by the places of the kernel are rows, found
// where x is, and the cotangent's channels are columns, stored side by side.
// Large images are products of their own.
TEST(ProductsOfWindows, FindTermsOfGradients) {
  const auto rewrite = [](const Graph& graph) {
    return ProductsOfWindows(graph);
  };
  const std::string small = CheckPass(
      R"(graph (%x: f32[3, 2, 6, 20], %w: f32[9, 2, 6, 20]) -> (y: f32[3, 9, 3, 3]) {
  %1: f32[3, 9, 3, 3] = conv(%x, %w, batch_groups: 1, groups: 1, high: [1, 1], lhs_dilation: [1, 1], low: [1, 1], rhs_dilation: [1, 1], stride: [1, 1])
  return y = %1
})",
      rewrite);
  EXPECT_THAT(small, HasSubstr("f32[27, 16] = dot_general"));
  EXPECT_THAT(small, Not(HasSubstr("reduce_sum")));
  const std::string large = CheckPass(
      R"(graph (%x: f32[1, 3, 42, 61], %w: f32[8, 3, 40, 60]) -> (y: f32[1, 8, 3, 2]) {
  %1: f32[1, 8, 3, 2] = conv(%x, %w, batch_groups: 1, groups: 1, high: [0, 0], lhs_dilation: [1, 1], low: [0, 0], rhs_dilation: [1, 1], stride: [1, 1])
  return y = %1
})",
      rewrite);
  EXPECT_THAT(large, HasSubstr("f32[3, 6, 16] = dot_general"));
  EXPECT_THAT(large, HasSubstr("reduce_sum"));
}

}  // namespace
}  // namespace cleave
