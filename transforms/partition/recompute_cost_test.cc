#include "transforms/partition/recompute_cost.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/partition/partition_testing.h"

namespace cleave::aot {
namespace {

class RecomputeCostTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    rules_ = LoadFunctions(std::make_shared<Context>());
  }
  static void TearDownTestSuite() { rules_.reset(); }

  // The cost of the last node of `fn f` that is no result of another.
  static NodeCost CostOf(const std::string& function,
                         const CostOptions& options = {}) {
    const LoadResult loaded = ExtendRules(
        rules_, {"cost.rules", absl::StrCat("language 1\n\nfn f", function)});
    if (loaded.rules == nullptr) {
      ADD_FAILURE() << loaded.diagnostics[0];
      return {};
    }
    const absl::StatusOr<Graph> graph = loaded.rules->Function("f");
    Value v = graph->outputs()[0].value;
    while (graph->node(v).op == ToOpId(Primitive::kResult)) {
      v = graph->operands(v)[0];
    }
    CostModel model(*loaded.rules, options);
    const absl::StatusOr<NodeCost> cost = model.Of(*graph, v);
    EXPECT_THAT(cost, IsOk());
    return cost.ok() ? *cost : NodeCost();
  }

  static inline std::shared_ptr<const RuleSet> rules_;
};

TEST_F(RecomputeCostTest, CountsOperationsAndBytes) {
  const NodeCost sum = CostOf("(x: f32[4, 8]) -> f32[4, 8] = x + x");
  EXPECT_EQ(sum.kind, RecomputeClass::kFused);
  EXPECT_EQ(sum.operations, 32);
  EXPECT_TRUE(sum.cheap);

  const NodeCost total = CostOf(
      "(x: f32[4, 8]) -> f32[4] = reduce_sum(x, axes: [1], "
      "keepdims: false)");
  EXPECT_EQ(total.kind, RecomputeClass::kReduction);
  EXPECT_EQ(total.operations, 32);
  EXPECT_EQ(total.traffic, (32 + 4) * 4);

  const NodeCost dot = CostOf(
      "(x: f64[4, 8], y: f64[8, 16]) -> f64[4, 16]\n"
      "{\n  z[i, j] = sum[k](x[i, k] * y[k, j])\n}");
  EXPECT_EQ(dot.kind, RecomputeClass::kContraction);
  EXPECT_EQ(dot.operations, 2 * 4 * 8 * 16);
  EXPECT_EQ(dot.traffic, (4 * 8 + 8 * 16 + 4 * 16) * 8);

  // 3 channels by 3 taps for each output.
  const NodeCost conv = CostOf(
      "(x: f32[2, 3, 8], w: f32[5, 3, 3]) -> f32[2, 5, 6] = "
      "convolution(x, w)");
  EXPECT_EQ(conv.kind, RecomputeClass::kContraction);
  // Beside the products, the call adds a bias of zeros.
  EXPECT_EQ(conv.operations, 2 * (2 * 5 * 6) * (3 * 3) + 2 * 5 * 6);
}

TEST_F(RecomputeCostTest, CallsAreAsTheirBodies) {
  const auto kind = [](const std::string& function) {
    return CostOf(function).kind;
  };
  EXPECT_EQ(kind("(x: f32[n]) -> f32[n] = gelu(x)"), RecomputeClass::kFused);
  EXPECT_EQ(kind("(x: f32[n]) -> f32[n] = softmax(x)"),
            RecomputeClass::kReduction);
  EXPECT_EQ(kind("(x: f32[n, m], w: f32[k, m]) -> f32[n, k] = linear(x, w)"),
            RecomputeClass::kContraction);
  EXPECT_EQ(kind("(x: f32[n]) -> f32[n] = cumsum(x, axis: 0)"),
            RecomputeClass::kHeavy);
  EXPECT_EQ(kind("(x: f32[n]) -> f32[new k <= n] = unique(x).values"),
            RecomputeClass::kNever);
  EXPECT_EQ(kind("(x: f32[n]) -> f32[n] = checkpoint_name(x)"),
            RecomputeClass::kFree);
  EXPECT_EQ(kind("(x: f32[n], key: key) -> f32[n] = dropout(x, key)"),
            RecomputeClass::kFused);
}

TEST_F(RecomputeCostTest, LoopsCountTheirSteps) {
  const auto operations = [](int steps) {
    return CostOf(absl::StrCat("(x: f32[", steps,
                               ", 4], h: f32[4]) -> f32[4]\n"
                               "{\n  let r = scan(h = h) over t in x "
                               "{ (h = h * t + t) }\n  r.h\n}"))
        .operations;
  };
  EXPECT_EQ(operations(10), 10 * 2 * 4);
  EXPECT_EQ(operations(30), 3 * operations(10));
}

TEST_F(RecomputeCostTest, ThinProductsAreCheap) {
  const auto is_cheap = [](int shared) {
    return CostOf(absl::StrCat("(x: f32[4096, ", shared, "], y: f32[", shared,
                               ", 4096]) -> f32[4096, 4096] = x @ y"))
        .cheap;
  };
  EXPECT_TRUE(is_cheap(1));
  EXPECT_TRUE(is_cheap(8));
  EXPECT_FALSE(is_cheap(64));
  EXPECT_FALSE(is_cheap(4096));
  // A product with a vector reads as much as it computes.
  EXPECT_TRUE(
      CostOf("(x: f32[4096, 4096], y: f32[4096]) -> f32[4096] = x @ y").cheap);
}

TEST_F(RecomputeCostTest, TakesExtentsForVariables) {
  const std::string function = "(x: f32[n, m]) -> f32[n, m] = x + x";
  EXPECT_EQ(CostOf(function).operations, 4096.0 * 4096.0);
  CostOptions options;
  options.extent_hint = 10;
  EXPECT_EQ(CostOf(function, options).operations, 100);
  options.extents = {{"m", 3}};
  EXPECT_EQ(CostOf(function, options).operations, 30);
  options.extents = {{"m", 0}};
  EXPECT_EQ(CostOf(function, options).operations, 0);
}

// Each primitive has a class, and the classes are those of primitive.def.
TEST_F(RecomputeCostTest, ClassesOfPrimitives) {
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    SCOPED_TRACE(PrimitiveName(primitive));
    const RecomputeClass kind = RecomputeClassOf(primitive);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kContraction:
        EXPECT_EQ(kind, RecomputeClass::kContraction);
        break;
      case PrimitiveClass::kControl:
      case PrimitiveClass::kSort:
      case PrimitiveClass::kScan:
      case PrimitiveClass::kScatter:
        EXPECT_EQ(kind, RecomputeClass::kHeavy);
        break;
      case PrimitiveClass::kDynamic:
        EXPECT_EQ(kind, RecomputeClass::kNever);
        break;
      default:
        EXPECT_TRUE(kind <= RecomputeClass::kReduction ||
                    primitive == Primitive::kWindowsAdd);
    }
  }
}

}  // namespace
}  // namespace cleave::aot
