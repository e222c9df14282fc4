// The litmus, op by op: which of its ops load, elaborate and run.

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Litmus : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    context_ = new std::shared_ptr<Context>(std::make_shared<Context>());
    LoadResult loaded =
        LoadRules({{"litmus.rules",
                    ReadFile("engine/lang/testdata/litmus.rules"), false}},
                  *context_);
    for (const std::string& d : loaded.diagnostics) ADD_FAILURE() << d;
    rules_ = new std::shared_ptr<const RuleSet>(loaded.rules);
  }

  // Calls the op and runs its expansion.
  // `as_list`: the inputs are one variadic input.
  absl::StatusOr<std::vector<Tensor>> Run(const std::string& op,
                                          const std::vector<Tensor>& inputs,
                                          const Attributes& attributes = {},
                                          bool as_list = false) {
    GraphBuilder builder(*context_);
    std::vector<Argument> arguments;
    for (const Tensor& input : inputs) {
      arguments.push_back(
          {"", builder.Input("x" + std::to_string(arguments.size()),
                             input.type())});
    }
    if (as_list) {
      std::vector<std::optional<Value>> list;
      for (const Argument& a : arguments)
        list.push_back(std::get<Value>(a.value));
      arguments = {{"", std::move(list)}};
    }
    auto results = (*rules_)->Call(builder, op, arguments, attributes);
    if (!results.ok()) return results.status();
    std::vector<NamedValue> outputs;
    for (const auto& result : *results) {
      if (result.has_value()) {
        outputs.push_back({"y" + std::to_string(outputs.size()), *result});
      }
    }
    const Graph graph = *std::move(builder).Build(std::move(outputs));
    auto expanded = Expand(graph, **rules_);
    if (!expanded.ok()) return expanded.status();
    absl::Status verified = Verify(*expanded);
    if (!verified.ok()) return verified;
    return Interpret(*expanded, inputs);
  }

  static std::shared_ptr<Context>* context_;
  static std::shared_ptr<const RuleSet>* rules_;
};
std::shared_ptr<Context>* Litmus::context_ = nullptr;
std::shared_ptr<const RuleSet>* Litmus::rules_ = nullptr;

Tensor F64(std::vector<int64_t> shape, std::vector<double> values) {
  return Tensor::FromDoubles(DType::kF64, std::move(shape), values);
}

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    values.push_back(tensor.GetDouble(i));
  }
  return values;
}

void ExpectNear(const Tensor& tensor, const std::vector<double>& expected) {
  const std::vector<double> values = Doubles(tensor);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-12) << i;
  }
}

TEST_F(Litmus, Gelu) {
  ASSERT_OK_AND_ASSIGN(auto y, Run("gelu", {F64({3}, {-1, 0, 1})}));
  ExpectNear(y[0], {-0.158655253931457074, 0, 0.841344746068542926});
}

TEST_F(Litmus, LogSoftmax) {
  ASSERT_OK_AND_ASSIGN(
      auto y, Run("log_softmax", {F64({2, 2}, {0, 0, 1, 1})}, {{"axis", 1}}));
  ExpectNear(y[0], std::vector<double>(4, -0.69314718055994531));
}

TEST_F(Litmus, LogSumExp) {
  ASSERT_OK_AND_ASSIGN(auto y,
                       Run("logsumexp", {F64({2, 2}, {0, 0, 1, 1})},
                           {{"axes", StaticValue::Ints(std::vector<int>{1})}}));
  ExpectNear(y[0], {0.69314718055994531, 1.69314718055994531});
}

TEST_F(Litmus, HuberLoss) {
  ASSERT_OK_AND_ASSIGN(auto y,
                       Run("huber_loss", {F64({2}, {0, 3}), F64({2}, {0.5, 0})},
                           {{"reduction", "none"}}));
  ExpectNear(y[0], {0.125, 2.5});
}

TEST_F(Litmus, LayerNorm) {
  ASSERT_OK_AND_ASSIGN(
      auto y, Run("layer_norm",
                  {F64({1, 2}, {1, 3}), F64({2}, {1, 2}), F64({2}, {0, 1})},
                  {{"N", StaticValue::Ints(std::vector<int>{2})}, {"eps", 0}}));
  ExpectNear(y[0], {-1, 3});
}

Tensor I64(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return Tensor::FromInts(DType::kI64, std::move(shape), values);
}

StaticValue Ints(std::vector<int> values) { return StaticValue::Ints(values); }

// All ops, at all signatures that stand for others: bodies expand to
// primitives. The exceptions are named here, with the reason.
TEST_F(Litmus, EveryOpExpands) {
  const std::map<std::string, std::string> exceptions = {
      {"einsum", "its equation has no default; EinsumContracts runs it"}};
  for (const std::string& op : (*rules_)->Names(ItemKind::kOp)) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Graph> calls,
                         (*rules_)->SymbolicCalls(op));
    EXPECT_EQ(calls.empty(), exceptions.count(op) > 0) << op;
    for (const Graph& call : calls) {
      const auto expanded = Expand(call, **rules_);
      ASSERT_TRUE(expanded.ok()) << op << ": " << expanded.status();
      EXPECT_THAT(Verify(*expanded), IsOk()) << op;
    }
  }
}

// transforms/ derives the bodies of `jvp` and `vjp`; these rules are loaded
// without it.
TEST_F(Litmus, DerivativesNeedTransforms) {
  EXPECT_THAT((*rules_)->Function("free_energy"), IsOk());
  for (const char* name : {"gradient", "curvature"}) {
    ASSERT_OK_AND_ASSIGN(const Graph function, (*rules_)->Function(name));
    EXPECT_THAT(Expand(function, **rules_),
                StatusIs(absl::StatusCode::kUnimplemented,
                         ::testing::HasSubstr("loaded without transforms")));
  }
}

TEST_F(Litmus, ErrorClausesReachTheCaller) {
  const auto y =
      Run("huber_loss", {F64({1}, {0}), F64({1}, {0})}, {{"delta", Exact(0)}});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(y.status().message(), "value: delta must be positive");
}

TEST_F(Litmus, Scans) {
  const Tensor x = F64({3}, {1, 2, 3});
  ASSERT_OK_AND_ASSIGN(auto sum, Run("cumsum", {x}, {{"axis", 0}}));
  ExpectNear(sum[0], {1, 3, 6});
  ASSERT_OK_AND_ASSIGN(auto product, Run("cumprod", {x}, {{"axis", 0}}));
  ExpectNear(product[0], {1, 2, 6});
}

TEST_F(Litmus, Orders) {
  ASSERT_OK_AND_ASSIGN(auto top,
                       Run("topk", {F64({3}, {3, 1, 2})}, {{"k", 2}}));
  ExpectNear(top[0], {3, 2});
  ExpectNear(top[1], {0, 2});
  ASSERT_OK_AND_ASSIGN(
      auto q,
      Run("quantile", {F64({4}, {4, 1, 3, 2}), F64({}, {0.5})}, {{"axis", 0}}));
  ExpectNear(q[0], {2.5});
}

TEST_F(Litmus, UniqueHasAnExtentOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(auto y, Run("unique", {I64({3}, {3, 1, 3})}));
  ExpectNear(y[0], {1, 3});
  ExpectNear(y[1], {1, 0, 1});
  ExpectNear(y[2], {1, 2});
}

TEST_F(Litmus, EinsumContracts) {
  ASSERT_OK_AND_ASSIGN(
      auto y,
      Run("einsum", {F64({2, 2}, {1, 2, 3, 4}), F64({2, 2}, {1, 1, 0, 1})},
          {{"equation", "ij,jk->ik"}}, /*as_list=*/true));
  ExpectNear(y[0], {1, 3, 3, 7});
}

TEST_F(Litmus, Movement) {
  ASSERT_OK_AND_ASSIGN(
      auto padded,
      Run("pad", {F64({3}, {1, 2, 3})},
          {{"before", Ints({1})}, {"after", Ints({1})}, {"mode", "reflect"}}));
  ExpectNear(padded[0], {2, 1, 2, 3, 2});
  ASSERT_OK_AND_ASSIGN(
      auto cat, Run("cat", {F64({1}, {1}), F64({2}, {2, 3})}, {{"axis", 0}},
                    /*as_list=*/true));
  ExpectNear(cat[0], {1, 2, 3});
}

TEST_F(Litmus, Windows) {
  ASSERT_OK_AND_ASSIGN(auto pooled, Run("max_pool2d_with_indices",
                                        {F64({1, 2, 2}, {1, 2, 4, 3})},
                                        {{"kernel", Ints({2, 2})}}));
  ExpectNear(pooled[0], {4});
  ExpectNear(pooled[1], {2});
  ASSERT_OK_AND_ASSIGN(auto conv, Run("convolution", {F64({1, 1, 3}, {1, 2, 3}),
                                                      F64({1, 1, 2}, {1, 1})}));
  ExpectNear(conv[0], {3, 5});
  ASSERT_OK_AND_ASSIGN(auto sampled,
                       Run("grid_sampler_2d", {F64({1, 1, 2, 2}, {1, 2, 3, 4}),
                                               F64({1, 1, 1, 2}, {0, 0})}));
  ExpectNear(sampled[0], {2.5});
}

TEST_F(Litmus, BagsAndLosses) {
  ASSERT_OK_AND_ASSIGN(
      auto bag, Run("embedding_bag", {F64({3, 1}, {1, 2, 4}),
                                      I64({3}, {0, 2, 1}), I64({2}, {0, 2})}));
  ExpectNear(bag[0], {5, 2});
  ASSERT_OK_AND_ASSIGN(
      auto loss, Run("cross_entropy", {F64({1, 2}, {0, 0}), I64({1}, {0})},
                     {{"axis", 1}}));
  ExpectNear(loss[0], {0.69314718055994531});
  // One frame must emit the one label.
  const double half = -0.69314718055994531;
  ASSERT_OK_AND_ASSIGN(auto ctc,
                       Run("ctc_loss",
                           {F64({1, 1, 2}, {half, half}), I64({1, 1}, {1}),
                            I64({1}, {1}), I64({1}, {1})},
                           {{"reduction", "none"}}));
  ExpectNear(ctc[0], {-half});
}

TEST_F(Litmus, Networks) {
  // With weights of zero every gate is sigmoid(0) = 1/2.
  ASSERT_OK_AND_ASSIGN(
      auto lstm,
      Run("lstm", {F64({2, 1}, {1, 1}), F64({1}, {0}), F64({1}, {1}),
                   F64({4, 1}, {0, 0, 0, 0}), F64({4, 1}, {0, 0, 0, 0})}));
  ExpectNear(lstm[0], {0.5 * std::tanh(0.5), 0.5 * std::tanh(0.25)});
  ExpectNear(lstm[2], {0.25});
  // Equal scores average the values.
  ASSERT_OK_AND_ASSIGN(auto attention,
                       Run("scaled_dot_product_attention",
                           {F64({1, 1, 1}, {0}), F64({1, 2, 1}, {1, 2}),
                            F64({1, 2, 1}, {3, 5})}));
  ExpectNear(attention[0], {4});
  ASSERT_OK_AND_ASSIGN(auto clipped, Run("clip_norm", {F64({2}, {3, 4})},
                                         {{"limit", Exact(1)}}));
  ExpectNear(clipped[0], {0.6, 0.8});
}

TEST_F(Litmus, HostsByTheirOwnNames) {
  ASSERT_OK_AND_ASSIGN(
      auto sum, Run("aten.add.Tensor", {I64({2}, {1, 2}), F64({}, {0.5})},
                    {{"alpha", 2}}));
  EXPECT_EQ(sum[0].dtype(), DType::kF64);
  ExpectNear(sum[0], {2, 3});
  ASSERT_OK_AND_ASSIGN(
      auto y, Run("onnx.Gelu", {F64({1}, {1})}, {{"approximate", "none"}}));
  ExpectNear(y[0], {0.841344746068542926});
}

}  // namespace
}  // namespace cleave
