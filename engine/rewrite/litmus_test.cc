// The litmus, op by op: which of its ops load, elaborate and run.

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/rule_set.h"
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

  // Calls the op on f64 values and runs its expansion.
  absl::StatusOr<std::vector<Tensor>> Run(const std::string& op,
                                          const std::vector<Tensor>& inputs,
                                          const Attributes& attributes = {}) {
    GraphBuilder builder(*context_);
    std::vector<Argument> arguments;
    for (const Tensor& input : inputs) {
      arguments.push_back(
          {"", builder.Input("x" + std::to_string(arguments.size()),
                             input.type())});
    }
    auto results = (*rules_)->Call(builder, op, arguments, attributes);
    if (!results.ok()) return results.status();
    std::vector<NamedValue> outputs;
    for (const auto& result : *results) {
      if (result.has_value()) {
        outputs.push_back({"y" + std::to_string(outputs.size()), *result});
      }
    }
    const Graph graph = std::move(builder).Build(std::move(outputs));
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

}  // namespace
}  // namespace cleave
