// Keys and statistics that the tests of rules/core/random.rules share.

#ifndef CLEAVE_TRANSFORMS_TESTING_RANDOM_TESTING_H_
#define CLEAVE_TRANSFORMS_TESTING_RANDOM_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/tensor.h"
#include "transforms/testing/test_rules.h"

namespace cleave {

inline Tensor Key(int64_t key) {
  return Tensor::FromInts(DType::kKey, {}, {key});
}

// The functions of a test, by rules/core/random.rules.
class RandomTest : public ::testing::Test {
 protected:
  explicit RandomTest(const std::string& functions)
      : rules_(LoadTestRules(
            context_, ReadText("rules/core/random.rules") + functions)) {}

  Graph Function(const std::string& name) {
    const absl::StatusOr<Graph> graph = rules_->Function(name);
    CLEAVE_CHECK(graph.ok()) << name << ": " << graph.status().ToString();
    return *graph;
  }

  std::vector<Tensor> RunGraph(const Graph& graph,
                               const std::vector<Tensor>& inputs) {
    const absl::StatusOr<Graph> expanded = Expand(graph, *rules_);
    CLEAVE_CHECK(expanded.ok()) << expanded.status().ToString();
    const absl::StatusOr<std::vector<Tensor>> results =
        Interpret(*expanded, inputs);
    CLEAVE_CHECK(results.ok()) << results.status().ToString();
    return *results;
  }

  Tensor Run(const std::string& name, const std::vector<Tensor>& inputs) {
    return RunGraph(Function(name), inputs)[0];
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_;
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TESTING_RANDOM_TESTING_H_
