// Ops keep their jvp and vjp overrides when they are batched, where the batch
// is no call of the op, too: the derivative of the batch is the batch of the
// derivative. The overrides here are wrong on purpose, so that they show.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/names.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRules[] = R"(language 1

op forward_by_x(x: T[n], w: T[n]) -> T[]
  where T: float
{
  reduce_sum(x * w * w, axes: [0], keepdims: false)
  jvp x = 3 * reduce_sum(dx * sin(x), axes: [0], keepdims: false)
}

op reverse_by_both(x: T[n], w: T[n]) -> T[]
  where T: float
{
  reduce_sum(x * w, axes: [0], keepdims: false)
  vjp (dy) = (x = 5 * dy * w, w = 7 * dy * x * x)
}

op reverse_by_w(x: T[n], w: T[n]) -> (total: T[], square: T[n])
  where T: float
{
  (total = reduce_sum(x * w, axes: [0], keepdims: false), square = w * w * x)
  vjp (dtotal, dsquare) = (w = dtotal * x + 11 * dsquare)
}

op with_its_batch(x: T[n], w: T[n]) -> T[]
  where T: float
{
  reduce_sum(x * w, axes: [0], keepdims: false)
  jvp x = 13 * reduce_sum(dx * x, axes: [0], keepdims: false)
  vmap (x, w) = reduce_sum(w * x, axes: [1], keepdims: false)
}

op in_a_loop(x: T[n], w: T[n]) -> T[]
  where T: float
{
  let r = scan(c = 0) over t in x { (c = c * t + t) }
  r.c * reduce_sum(w, axes: [0], keepdims: false)
  vjp (dy) = (x = 17 * dy * w, w = 19 * dy * x)
}

/// The overrides of what a body calls are kept, too.
op outer(x: T[n], w: T[n]) -> T[]
  where T: float
{
  sin(reverse_by_both(x, w * w) * forward_by_x(x, w))
}
)";

constexpr const char* kOps[] = {"forward_by_x", "reverse_by_both",
                                "reverse_by_w", "with_its_batch",
                                "in_a_loop",    "outer"};

class BatchOfOverrideTest : public ::testing::TestWithParam<const char*> {
 protected:
  BatchOfOverrideTest() {
    TensorType type{DType::kF64, {Dim(4)}};
    GraphBuilder builder(context_);
    const Value x = builder.Input("x", type);
    const Value w = builder.Input("w", type);
    const auto results =
        rules_->Call(builder, GetParam(), {{"x", x}, {"w", w}}, Attributes());
    CLEAVE_CHECK(results.ok()) << results.status().message();
    std::vector<NamedValue> outputs;
    for (const auto& result : *results) {
      outputs.push_back({absl::StrCat("y", outputs.size()), *result});
    }
    function_ = *std::move(builder).Build(std::move(outputs));
  }

  // Batched in front by `batch`; -1 in `axes` is not.
  Graph Batched(const Graph& graph, const std::vector<int>& axes, int batch) {
    const absl::StatusOr<Graph> result =
        Vmap(graph, axes, Dim(batch),
             std::vector<int>(graph.outputs().size(), 0), *rules_);
    CLEAVE_CHECK(result.ok()) << result.status().message();
    return *result;
  }

  std::vector<Tensor> Draw(const Graph& graph) {
    SampleNode ordinary;
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph.inputs()) {
      const TensorType& type = graph.type(input.value);
      inputs.push_back(
          DrawTensor(ordinary, type.dtype, ConstantShape(type), random_));
    }
    return inputs;
  }

  std::vector<Tensor> Run(const Graph& graph,
                          const std::vector<Tensor>& inputs) {
    const absl::StatusOr<Graph> primitives = Expand(graph, *rules_);
    CLEAVE_CHECK(primitives.ok()) << primitives.status().message();
    const absl::StatusOr<std::vector<Tensor>> outputs =
        Interpret(*primitives, inputs);
    CLEAVE_CHECK(outputs.ok()) << outputs.status().message();
    return *outputs;
  }

  static void ExpectNear(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got.GetDouble(i), want.GetDouble(i),
                  1e-13 * (1 + std::abs(want.GetDouble(i))));
    }
  }

  // The sum over the first axis.
  static Tensor Summed(const Tensor& tensor) {
    std::vector<int64_t> shape = tensor.shape();
    const int64_t batch = shape.front();
    shape.erase(shape.begin());
    Tensor sum(tensor.dtype(), shape);
    for (int64_t i = 0; i < sum.size(); ++i) {
      double total = 0;
      for (int64_t b = 0; b < batch; ++b) {
        total += tensor.GetDouble(b * sum.size() + i);
      }
      sum.SetDouble(i, total);
    }
    return sum;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kRules);
  std::mt19937_64 random_{3};
  Graph function_;
};

INSTANTIATE_TEST_SUITE_P(Ops, BatchOfOverrideTest, ::testing::ValuesIn(kOps),
                         [](const auto& info) { return info.param; });

const std::vector<int> kBatches[] = {{0, 0}, {0, kNotMapped}, {kNotMapped, 0}};

TEST_P(BatchOfOverrideTest, TheTangentOfTheBatchIsTheBatchOfTheTangent) {
  for (const std::vector<int>& axes : kBatches) {
    SCOPED_TRACE(absl::StrCat(axes[0], " ", axes[1]));
    ASSERT_OK_AND_ASSIGN(const JvpResult one,
                         Jvp(function_, {true, true}, *rules_));
    const Graph want =
        Batched(one.graph, {axes[0], axes[1], axes[0], axes[1]}, 3);
    ASSERT_OK_AND_ASSIGN(const JvpResult got, Jvp(Batched(function_, axes, 3),
                                                  {true, true}, *rules_));
    const std::vector<Tensor> inputs = Draw(want);
    const std::vector<Tensor> wanted = Run(want, inputs);
    const std::vector<Tensor> given = Run(got.graph, inputs);
    ASSERT_EQ(given.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ExpectNear(given[i], wanted[i]);
  }
}

TEST_P(BatchOfOverrideTest, TheCotangentOfTheBatchIsTheBatchOfTheCotangent) {
  for (const std::vector<int>& axes : kBatches) {
    SCOPED_TRACE(absl::StrCat(axes[0], " ", axes[1]));
    ASSERT_OK_AND_ASSIGN(const VjpResult one,
                         Vjp(function_, {true, true}, *rules_));
    std::vector<int> of_vjp = axes;
    of_vjp.resize(one.graph.inputs().size(), 0);
    const Graph want = Batched(one.graph, of_vjp, 3);
    ASSERT_OK_AND_ASSIGN(const VjpResult got, Vjp(Batched(function_, axes, 3),
                                                  {true, true}, *rules_));
    const std::vector<Tensor> inputs = Draw(want);
    const std::vector<Tensor> wanted = Run(want, inputs);
    const std::vector<Tensor> given = Run(got.graph, inputs);
    ASSERT_EQ(given.size(), wanted.size());
    const size_t results = function_.outputs().size();
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool shared = i >= results && axes[i - results] == kNotMapped;
      ExpectNear(given[i], shared ? Summed(wanted[i]) : wanted[i]);
    }
  }
}

TEST_P(BatchOfOverrideTest, BatchesNest) {
  ASSERT_OK_AND_ASSIGN(const VjpResult one,
                       Vjp(function_, {true, true}, *rules_));
  const size_t count = one.graph.inputs().size();
  // x has the inner batch, w the outer one.
  std::vector<int> inner(count, 0);
  std::vector<int> outer(count, 0);
  inner[1] = outer[0] = kNotMapped;
  const Graph want = Batched(Batched(one.graph, inner, 3), outer, 2);
  ASSERT_OK_AND_ASSIGN(
      const VjpResult got,
      Vjp(Batched(Batched(function_, {0, kNotMapped}, 3), {kNotMapped, 0}, 2),
          {true, true}, *rules_));
  const std::vector<Tensor> inputs = Draw(want);
  const std::vector<Tensor> wanted = Run(want, inputs);
  const std::vector<Tensor> given = Run(got.graph, inputs);
  const size_t results = function_.outputs().size();
  for (size_t i = 0; i < results; ++i) ExpectNear(given[i], wanted[i]);
  // [2, 3, 4] each: the cotangent of x has no outer batch, that of w no inner.
  ExpectNear(given[results], Summed(wanted[results]));
  Tensor by_example(DType::kF64, {2, 4});
  for (int64_t o = 0; o < 2; ++o) {
    for (int64_t k = 0; k < 4; ++k) {
      double total = 0;
      for (int64_t i = 0; i < 3; ++i) {
        total += wanted[results + 1].GetDouble((o * 3 + i) * 4 + k);
      }
      by_example.SetDouble(o * 4 + k, total);
    }
  }
  ExpectNear(given[results + 1], by_example);
}

// Nothing but ops that have such overrides is a call of their batch.
TEST_P(BatchOfOverrideTest, PrintsAsACall) {
  const std::string text = PrintGraph(Batched(function_, {0, 0}, 3));
  if (std::string(GetParam()) == "outer") {
    EXPECT_THAT(text, HasSubstr(R"("vmap:reverse_by_both"(%x, )"));
    EXPECT_THAT(text, HasSubstr(R"("vmap:forward_by_x"(%x, %w, call.batched: )"
                                "[[true, true]])"));
    EXPECT_THAT(text, Not(HasSubstr("vmap:outer")));
  } else {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat("\"vmap:", GetParam(), "\"(%x, %w")));
  }
  ASSERT_OK_AND_ASSIGN(const Graph parsed, ParseGraph(text, context_));
  EXPECT_EQ(PrintGraph(parsed), text);
}

}  // namespace
}  // namespace cleave
