#include "testing/mutate/resolve_choices.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_key.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/rules/rule_files.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"
#include "transforms/jvp/jvp.h"

namespace cleave {
namespace {

std::shared_ptr<const RuleSet> Load(
    const absl::StatusOr<std::vector<NamedSource>>& sources,
    std::shared_ptr<Context> context) {
  EXPECT_OK(sources);
  if (!sources.ok()) return nullptr;
  const LoadResult loaded =
      LoadRules(*sources, std::move(context), WithTransforms());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  return loaded.rules;
}

// The rules of derivatives and rewrites, and `text`.
std::shared_ptr<const RuleSet> LoadWith(const std::string& text,
                                        std::shared_ptr<Context> context) {
  auto sources = ReadRuleFiles({"rules/derivative", "rules/simplify"});
  if (sources.ok()) {
    sources->push_back({"test.rules", "language 1\n\n" + text, false});
  }
  return Load(sources, std::move(context));
}

// The resolved graphs of the op `f` of x and z with that value, and of its
// derivative.
std::vector<std::string> KeysOf(const std::string& value,
                                const std::shared_ptr<Context>& context) {
  const auto rules = LoadWith(
      absl::StrCat("op f(x: T[n], z: T[n]) -> T[n]\n  where T: float\n  = ",
                   value, " + x * z\n"),
      context);
  if (rules == nullptr) return {};
  const auto calls = rules->SymbolicCalls("f");
  EXPECT_OK(calls);
  std::vector<std::string> keys;
  for (const Graph& call : calls.value()) {
    for (const Graph& graph :
         {call, Jvp(call, {true, true}, *rules).value().graph}) {
      const absl::StatusOr<Graph> expanded = Expand(graph, *rules);
      EXPECT_OK(expanded);
      const absl::StatusOr<Graph> resolved =
          ResolveChoices(Simplify(*expanded, *rules));
      EXPECT_OK(resolved);
      keys.push_back(GraphKey(Simplify(*resolved, *rules)));
    }
  }
  return keys;
}

bool AreOne(const std::string& a, const std::string& b) {
  const auto context = std::make_shared<Context>();
  const std::vector<std::string> keys = KeysOf(a, context);
  return !keys.empty() && keys == KeysOf(b, context);
}

TEST(ResolveChoices, NumbersThatGuardABranchAreGone) {
  EXPECT_TRUE(AreOne("select(x > 64, x, exp(select(x > 64, 64, x)))",
                     "select(x > 64, x, exp(select(x > 64, 65, x)))"));
  EXPECT_TRUE(AreOne("select(x == 0, 0, z / select(x == 0, 1, x))",
                     "select(x == 0, 0, z / select(x == 0, 2, x))"));
  EXPECT_TRUE(AreOne("select(x == 3 and z == 3, floor(x), z)",
                     "select(x == 3 and z == 3, floor(z), z)"));
  // A zero has two signs.
  EXPECT_FALSE(AreOne("select(x == 0 and z == 0, floor(x), z)",
                      "select(x == 0 and z == 0, floor(z), z)"));
  // The guard is not that of the choice.
  EXPECT_FALSE(AreOne("select(x > 63, x, exp(select(x > 62, 64, x)))",
                      "select(x > 63, x, exp(select(x > 62, 65, x)))"));
  EXPECT_FALSE(AreOne("select(x == 0, 1, x) * z", "select(x == 0, 2, x) * z"));
}

TEST(ResolveChoices, ConditionsFollowFromOthers) {
  EXPECT_TRUE(AreOne("select(x > 3, x, exp(select(x > 4, 1, x)))",
                     "select(x > 3, x, exp(x))"));
  EXPECT_FALSE(AreOne("select(x > 3, x, exp(select(x > 2, 1, x)))",
                      "select(x > 3, x, exp(x))"));
  EXPECT_TRUE(AreOne("select(abs(x) < 3, select(x > -3, x, z), 1)",
                     "select(abs(x) < 3, x, 1)"));
  EXPECT_FALSE(AreOne("select(abs(x) > 3, select(x > -3, x, z), 1)",
                      "select(abs(x) > 3, x, 1)"));
  EXPECT_TRUE(AreOne("select(x > 0 and z > 0, select(z > 0, x, z), 1)",
                     "select(x > 0 and z > 0, x, 1)"));
  EXPECT_TRUE(AreOne("select(x > 0 or z > 0, 1, select(z > 0, x, z))",
                     "select(x > 0 or z > 0, 1, z)"));
  EXPECT_FALSE(AreOne("select(x > 0 or z > 0, select(z > 0, x, z), 1)",
                      "select(x > 0 or z > 0, x, 1)"));
  EXPECT_TRUE(AreOne("select(not isnan(x), select(x == x, x, z), 1)",
                     "select(not isnan(x), x, 1)"));
}

// A comparison with a NaN does not hold, and neither does its opposite.
TEST(ResolveChoices, AConditionThatFailsMayBeOfANaN) {
  EXPECT_FALSE(
      AreOne("select(x > 3, x, select(x <= 3, 1, z))", "select(x > 3, x, 1)"));
  EXPECT_TRUE(
      AreOne("select(x > 3, select(x <= 3, 1, z), x)", "select(x > 3, z, x)"));
  EXPECT_FALSE(AreOne("select(x > 3, x, max(x, 4))", "select(x > 3, x, 4)"));
}

TEST(ResolveChoices, ExtremaWithANumberAreOneOperand) {
  EXPECT_TRUE(AreOne("select(x > 0, x, nograd(min(x, 1)))",
                     "select(x > 0, x, nograd(x))"));
  EXPECT_FALSE(AreOne("select(x > 0, x, nograd(min(x, -1)))",
                      "select(x > 0, x, nograd(x))"));
  EXPECT_TRUE(AreOne("select(x >= 2, max(x, 2) @tie(first), z)",
                     "select(x >= 2, max(x, 1), z)"));
  // The zeros: max(-0, 0) is 0.
  EXPECT_FALSE(AreOne("select(x >= 0, nograd(max(x, 0)), z)",
                      "select(x >= 0, nograd(x), z)"));
  EXPECT_TRUE(AreOne("select(x <= 0, nograd(min(x, 0)), z)",
                     "select(x <= 0, nograd(x), z)"));
}

// Elements of a sum are not those of its result.
TEST(ResolveChoices, KnowsNothingOfOtherElements) {
  const std::string total =
      "reduce_sum(select(x > 0, x, 1), axes: [0], keepdims: true)";
  EXPECT_FALSE(AreOne(
      absl::StrCat("select(x > 0, broadcast_to(", total, ", shape: [n]), z)"),
      "select(x > 0, broadcast_to(reduce_sum(x, axes: [0], keepdims: true), "
      "shape: [n]), z)"));
}

// Whether all numbers are the same, zeros by their signs too; NaN is one value.
bool AreSame(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.GetDouble(i);
    const double y = b.GetDouble(i);
    if (std::isnan(x) != std::isnan(y)) return false;
    if (!std::isnan(x) && (x != y || std::signbit(x) != std::signbit(y))) {
      return false;
    }
  }
  return true;
}

// All bits of the outputs stay, at numbers where branches meet.
TEST(ResolveChoices, ChangesNoValueOfTheShippedOps) {
  const auto rules =
      Load(ReadRuleFiles({"rules"}), std::make_shared<Context>());
  ASSERT_NE(rules, nullptr);
  std::vector<double> numbers = {NAN, INFINITY, 1e-30, 3.4e38, 1e-40};
  for (const double x : {0.0, 0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0,
                         20.0, 32.0, 64.0, 88.5, 1e5}) {
    numbers.push_back(x);
  }
  const size_t magnitudes = numbers.size();
  for (size_t i = 0; i < magnitudes; ++i) numbers.push_back(-numbers[i]);
  const int64_t n = static_cast<int64_t>(numbers.size());
  int compared = 0;
  for (const std::string& op : rules->Names(ItemKind::kOp)) {
    // Ops of hosts rest on the others.
    if (absl::StrContains(op, "::") || absl::StrContains(op, ".")) continue;
    const auto calls = rules->SymbolicCalls(op);
    if (!calls.ok()) continue;
    for (const Graph& call : *calls) {
      std::vector<Tensor> inputs;
      for (const NamedValue& input : call.inputs()) {
        const TensorType& type = call.type(input.value);
        if (type.dtype != DType::kF32 || type.shape.size() != 1) break;
        // Each input has the numbers in another order.
        std::vector<double> values(numbers.size());
        const int64_t step = 1 + 4 * static_cast<int64_t>(inputs.size());
        for (int64_t i = 0; i < n; ++i) values[i] = numbers[i * step % n];
        inputs.push_back(Tensor::FromDoubles(type.dtype, {n}, values));
      }
      if (inputs.size() != call.inputs().size()) continue;
      const absl::StatusOr<JvpResult> jvp =
          Jvp(call, std::vector<bool>(call.inputs().size(), true), *rules);
      for (const bool derivative : {false, true}) {
        if (derivative && !jvp.ok()) continue;
        const auto expanded = Expand(derivative ? jvp->graph : call, *rules);
        if (!expanded.ok()) continue;
        const auto resolved = ResolveChoices(*expanded);
        ASSERT_OK(resolved) << op;
        std::vector<Tensor> given = inputs;
        if (derivative) given.insert(given.end(), inputs.begin(), inputs.end());
        if (given.size() != expanded->inputs().size()) continue;
        const auto expected = Interpret(*expanded, given);
        if (!expected.ok()) continue;
        const auto got = Interpret(*resolved, given);
        ASSERT_OK(got) << op;
        for (size_t r = 0; r < expected->size(); ++r) {
          EXPECT_TRUE(AreSame((*expected)[r], (*got)[r])) << op;
        }
        ++compared;
      }
    }
  }
  // Most ops are elementwise, and have calls of f32 vectors.
  EXPECT_GT(compared, 150);
}

}  // namespace
}  // namespace cleave
