#include "transforms/report/derive_rule.h"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rule_text/graph_to_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/table/emit.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::NanSensitiveDoubleNear;

// The inexact inputs for derivatives, all for a batch.
std::vector<bool> AllInputs(const Graph& graph, Transform transform) {
  std::vector<bool> chosen;
  for (const NamedValue& input : graph.inputs()) {
    chosen.push_back(transform == Transform::kVmap ||
                     emit::IsInexact(graph.type(input.value).dtype));
  }
  return chosen;
}

// Primitives that no rule can say: a new extent, and what no rule makes.
bool IsUnsayable(const SampleNode& sample) {
  return sample.primitive == Primitive::kNonzero ||
         absl::StartsWith(sample.name, "scatter/set");
}

// Rules add what is scattered to what is there: two roundings for one.
bool IsRoundedTwice(const SampleNode& sample) {
  return sample.primitive == Primitive::kScatter;
}

TEST(GraphToRuleTest, SaysEveryPrimitive) {
  const auto context = std::make_shared<Context>();
  const std::shared_ptr<const RuleSet> rules = LoadTestRules(context);
  std::mt19937_64 random(1);
  for (const SampleNode& sample : SampleNodes(context)) {
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context));
    const absl::StatusOr<WrittenOp> written =
        GraphToOp(graph, "written", *rules);
    if (IsUnsayable(sample)) {
      EXPECT_EQ(written.status().code(), absl::StatusCode::kUnimplemented);
      continue;
    }
    ASSERT_THAT(written, IsOk());
    const LoadResult loaded = ExtendRules(
        rules,
        {"written.rules", absl::StrCat("language 1\n\n", written->text)});
    ASSERT_THAT(loaded.diagnostics, IsEmpty()) << written->text;
    ASSERT_OK_AND_ASSIGN(const std::vector<Graph> calls,
                         loaded.rules->SymbolicCalls("written"));
    ASSERT_EQ(calls.size(), 1u);
    ASSERT_OK_AND_ASSIGN(const Graph again, Expand(calls[0], *loaded.rules));
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph.inputs()) {
      const TensorType& type = graph.type(input.value);
      inputs.push_back(
          DrawTensor(sample, type.dtype, ConstantShape(type), random));
    }
    std::vector<Tensor> read;
    for (int i : written->inputs) read.push_back(inputs[i]);
    const absl::StatusOr<std::vector<Tensor>> want = Interpret(graph, inputs);
    const absl::StatusOr<std::vector<Tensor>> got = Interpret(again, read);
    ASSERT_EQ(want.ok(), got.ok()) << got.status();
    if (!want.ok()) continue;
    for (size_t i = 0; i < want->size(); ++i) {
      if (IsRoundedTwice(sample)) {
        ASSERT_EQ((*want)[i].size(), (*got)[i].size());
        for (int64_t k = 0; k < (*want)[i].size(); ++k) {
          EXPECT_THAT((*got)[i].GetDouble(k),
                      NanSensitiveDoubleNear((*want)[i].GetDouble(k), 1e-14));
        }
        continue;
      }
      EXPECT_EQ((*want)[i].ToString(), (*got)[i].ToString()) << written->text;
    }
  }
}

TEST(GraphToRuleTest, KeepsNamesApart) {
  const auto context = std::make_shared<Context>();
  const std::shared_ptr<const RuleSet> rules = LoadTestRules(context);
  GraphBuilder builder(context);
  const TensorType type{DType::kF32, {Dim::Variable("S.0")}};
  const Value v1 = builder.Input("v1", type);
  const Value x = builder.Input("if", type);
  const Value sum = builder.Apply(Primitive::kAdd, {v1, x});
  const Value product = builder.Apply(Primitive::kMul, {sum, sum});
  const Graph graph = *std::move(builder).Build({{"v1", product}});
  ASSERT_OK_AND_ASSIGN(const WrittenOp written,
                       GraphToOp(graph, "named", *rules));
  EXPECT_EQ(written.text,
            "op named(v1: f32[S_0], if_1: f32[S_0]) -> f32[S_0]\n"
            "{\n"
            "  let v2 = v1 + if_1\n"
            "  v2 * v2\n"
            "}\n");
}

class DeriveRuleTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Derive(const std::string& op,
                                     Transform transform) {
    return DeriveOpRule(
        op, transform,
        [&](const Graph& call) -> absl::StatusOr<std::vector<bool>> {
          return AllInputs(call, transform);
        },
        *rules_);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ =
      LoadTestRules(context_, "", {"core", "aten", "onnx"});
};

// Every op of the library has each rule as text that loads, or a reason of the
// golden file.
TEST_F(DeriveRuleTest, WholeLibrary) {
  // A file of each transform: one of all has more tokens than a file may have.
  std::map<Transform, std::string> texts;
  std::string refusals;
  int derived = 0;
  for (ItemKind kind : {ItemKind::kOp, ItemKind::kAten, ItemKind::kOnnx}) {
    for (const std::string& op : rules_->Names(kind)) {
      for (Transform transform : kTransforms) {
        const absl::StatusOr<std::string> text = Derive(op, transform);
        if (text.ok()) {
          ++derived;
          absl::StrAppend(&texts[transform],
                          absl::StrReplaceAll(*text, {{"language 1\n\n", ""}}));
          continue;
        }
        const std::string why(text.status().message());
        // Without inexact inputs or results.
        if (absl::StrContains(why, "no input of") ||
            why == "impossible: discrete") {
          continue;
        }
        absl::StrAppend(&refusals, op, " ", TransformName(transform), ": ", why,
                        "\n");
      }
    }
  }
  for (const auto& [transform, text] : texts) {
    const LoadResult loaded =
        ExtendRules(rules_, {absl::StrCat(TransformName(transform), ".rules"),
                             absl::StrCat("language 1\n\n", text)});
    EXPECT_THAT(loaded.diagnostics, IsEmpty());
  }
  EXPECT_GT(derived, 900);
  TestGoldenFile("transforms/report/testdata/derive_refusals.golden",
                 [&](absl::string_view) { return refusals; });
}

TEST_F(DeriveRuleTest, Golden) {
  TestGoldenFile("transforms/report/testdata/derived_rules.golden",
                 [this](absl::string_view input) -> std::string {
                   const std::vector<std::string> words = absl::StrSplit(
                       absl::StripTrailingAsciiWhitespace(input), ' ');
                   for (Transform transform : kTransforms) {
                     if (TransformName(transform) != words[1]) continue;
                     const auto text = Derive(words[0], transform);
                     return text.ok()
                                ? *text
                                : absl::StrCat(text.status().message(), "\n");
                   }
                   return "no such transform\n";
                 });
}

TEST_F(DeriveRuleTest, WantsAnInput) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Graph> calls,
                       rules_->SymbolicCalls("softmax"));
  EXPECT_THAT(DeriveRule(calls[0], "softmax", Transform::kJvp, {false}, *rules_)
                  .status()
                  .message(),
              HasSubstr("no input of `softmax` is chosen"));
  EXPECT_THAT(DeriveRule(calls[0], "softmax", Transform::kJvp, {}, *rules_)
                  .status()
                  .message(),
              HasSubstr("0 inputs are described"));
}

// Names of graphs may be any text; those of rules may not.
TEST(GraphToRuleTest, ChangesNamesThatRulesDoNotHave) {
  const auto context = std::make_shared<Context>();
  const std::shared_ptr<const RuleSet> rules = LoadTestRules(context);
  GraphBuilder b(context);
  const TensorType type{DType::kF32, {Dim::Variable("n")}};
  Value sum = b.Input("axis: 1", type);
  for (const char* name : {"", "_", "1st", "a b", "\xff\n", "if"}) {
    sum = b.Apply(Primitive::kAdd, {sum, b.Input(name, type)});
  }
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(b).Build({{"\"y\"", sum}}));
  ASSERT_OK_AND_ASSIGN(const WrittenOp written,
                       GraphToOp(graph, "written", *rules));
  const LoadResult loaded = ExtendRules(
      rules, {"written.rules", absl::StrCat("language 1\n\n", written.text)});
  EXPECT_THAT(loaded.diagnostics, IsEmpty()) << written.text;
  for (const char* name : {"", "a b", "if", "1st"}) {
    EXPECT_EQ(GraphToOp(graph, name, *rules).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(GraphToRuleTest, WantsAnOutput) {
  const auto context = std::make_shared<Context>();
  const std::shared_ptr<const RuleSet> rules = LoadTestRules(context);
  GraphBuilder b(context);
  b.Input("x", {DType::kF32, {}});
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(b).Build({}));
  EXPECT_EQ(GraphToOp(graph, "written", *rules).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cleave
