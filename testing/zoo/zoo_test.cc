// The zoo: derivatives that others had wrong are derived right here, and the
// checker refutes the wrong rules. testing/zoo/outcomes.md has a row per entry;
// `--update` writes it anew.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/files/file.h"
#include "engine/ir/interpreter.h"
#include "engine/lang/ast.h"
#include "engine/lang/parser.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/reference/real.h"
#include "ops/status_macros.h"
#include "testing/check/check.h"
#include "testing/check/samples/float_points.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "testing/zoo/zoo_entry.h"
#include "transforms/derived_rules.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "testing/zoo/";
// Wrong rules are evaluated in another order than where they come from.
constexpr double kWrongUlp = 64;
constexpr int kBits = 256;

const std::vector<ZooEntry>& Zoo() {
  static const auto& entries = *new std::vector<ZooEntry>([] {
    absl::StatusOr<std::vector<ZooEntry>> read =
        ReadZoo(absl::StrCat(kFolder, "zoo.json"));
    CLEAVE_CHECK(read.ok()) << read.status();
    return *std::move(read);
  }());
  return entries;
}

std::shared_ptr<const RuleSet> ShippedRules() {
  static const auto& rules = *new std::shared_ptr<const RuleSet>([] {
    absl::StatusOr<std::vector<NamedSource>> sources = ReadRuleFiles({"rules"});
    CLEAVE_CHECK(sources.ok()) << sources.status();
    for (NamedSource& source : *sources) source.shipped = true;
    const LoadResult loaded =
        LoadRules(*sources, std::make_shared<Context>(), WithTransforms());
    CLEAVE_CHECK(loaded.rules != nullptr)
        << absl::StrJoin(loaded.diagnostics, "\n");
    return loaded.rules;
  }());
  return rules;
}

// The rules of an entry, and the same without their overrides.
struct ZooRules {
  NamedSource planted;
  NamedSource derived;
  bool has_overrides = false;
};

ZooRules ReadRules(const std::string& id) {
  ZooRules rules;
  rules.planted.name = absl::StrCat(kFolder, "rules/", id, ".rules");
  const absl::StatusOr<std::string> text = ReadFile(rules.planted.name);
  EXPECT_OK(text);
  rules.planted.text = text.value_or("");
  ParseResult parsed =
      ParseRules(Source(rules.planted.name, rules.planted.text));
  EXPECT_TRUE(parsed.ok());
  for (RuleFile::Entry& entry : parsed.file.entries) {
    if (!entry.item || entry.item->kind != ItemKind::kOp) continue;
    auto body = std::make_shared<Body>(*entry.item->body);
    std::vector<Statement> kept;
    for (Statement& statement : body->statements) {
      if (statement.kind == StatementKind::kLet ||
          statement.kind == StatementKind::kResult) {
        kept.push_back(std::move(statement));
      } else {
        rules.has_overrides = true;
      }
    }
    body->statements = std::move(kept);
    entry.item->body = std::move(body);
  }
  rules.derived = {rules.planted.name, PrintRuleFile(parsed.file)};
  // Declarations that only the overrides used may stay: generated text may have
  // unused ones.
  rules.derived.generated = true;
  return rules;
}

Graph LastOutput(const Graph& graph) {
  GraphBuilder builder(graph.context());
  std::vector<Value> inputs;
  for (const NamedValue& input : graph.inputs()) {
    inputs.push_back(builder.Input(input.name, graph.type(input.value)));
  }
  const std::vector<Value> values = builder.Inline(graph, inputs);
  return *std::move(builder).Build(
      {{graph.outputs().back().name, values.back()}});
}

// A function of an entry under the entry's transform.
class ZooCall {
 public:
  ZooCall(const ZooEntry& entry, const RuleSet& rules, Graph function)
      : entry_(entry), rules_(rules), function_(std::move(function)) {
    for (const NamedValue& input : function_.inputs()) {
      const DType dtype = function_.type(input.value).dtype;
      inputs_.push_back(entry.inputs.at(input.name).ToTensor(dtype));
      const auto along = entry.along.find(input.name);
      active_.push_back(along != entry.along.end());
      if (active_.back()) {
        directions_.push_back(along->second.ToTensor(dtype));
      }
    }
  }

  struct Result {
    std::string mode;
    Tensor value;
  };

  // One result for each way to the value.
  absl::StatusOr<std::vector<Result>> Results() const {
    std::vector<Result> results;
    const auto add = [&](const char* mode,
                         absl::StatusOr<Tensor> value) -> absl::Status {
      if (!value.ok()) return value.status();
      results.push_back({mode, *std::move(value)});
      return absl::OkStatus();
    };
    switch (entry_.transform) {
      case ZooTransform::kValue:
        CLEAVE_RETURN_IF_ERROR(add("value", Run(function_, {})));
        break;
      case ZooTransform::kSlope:
        CLEAVE_RETURN_IF_ERROR(add("jvp", Along(function_, active_)));
        CLEAVE_RETURN_IF_ERROR(add("vjp", Against(function_, active_, true)));
        break;
      case ZooTransform::kJvp:
        CLEAVE_RETURN_IF_ERROR(add("jvp", Along(function_, active_)));
        break;
      case ZooTransform::kVjp:
        CLEAVE_RETURN_IF_ERROR(add("vjp", Against(function_, active_, false)));
        break;
      case ZooTransform::kSecond: {
        CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp,
                                Jvp(function_, active_, rules_));
        CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp,
                                Vjp(function_, active_, rules_));
        const Graph push = LastOutput(jvp.graph);
        const Graph pull = LastOutput(vjp.graph);
        std::vector<bool> primals = active_;
        primals.push_back(false);
        CLEAVE_RETURN_IF_ERROR(
            add("jvp of jvp", Along(push, primals, directions_)));
        CLEAVE_RETURN_IF_ERROR(
            add("vjp of jvp", Against(push, primals, true, directions_)));
        const Tensor one = Ones(pull.type(pull.inputs().back().value));
        CLEAVE_RETURN_IF_ERROR(
            add("jvp of vjp", Weighted(Along(pull, primals, {one}))));
        CLEAVE_RETURN_IF_ERROR(add(
            "vjp of vjp", Against(pull, primals, true, {one}, directions_)));
        break;
      }
      case ZooTransform::kVmap: {
        std::vector<int> axes;
        Dim batch(0);
        for (size_t k = 0; k < inputs_.size(); ++k) {
          const auto axis = entry_.in_axes.find(function_.inputs()[k].name);
          axes.push_back(axis == entry_.in_axes.end() ? kNotMapped
                                                      : axis->second);
          if (axes.back() >= 0) batch = Dim(inputs_[k].shape()[axes.back()]);
        }
        CLEAVE_ASSIGN_OR_RETURN(const Graph batched,
                                Vmap(function_, axes, batch, {0}, rules_));
        CLEAVE_RETURN_IF_ERROR(add("vmap", Run(batched, {})));
        break;
      }
    }
    return results;
  }

 private:
  static Tensor Ones(const TensorType& type) {
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
    Tensor ones(type.dtype, shape);
    for (int64_t i = 0; i < ones.size(); ++i) ones.SetDouble(i, 1);
    return ones;
  }

  absl::StatusOr<std::vector<Tensor>> RunAll(
      const Graph& graph, const std::vector<Tensor>& more) const {
    CLEAVE_ASSIGN_OR_RETURN(const Graph expanded, Expand(graph, rules_));
    std::vector<Tensor> inputs = inputs_;
    inputs.insert(inputs.end(), more.begin(), more.end());
    return Interpret(expanded, inputs);
  }

  // The last output.
  absl::StatusOr<Tensor> Run(const Graph& graph,
                             const std::vector<Tensor>& more) const {
    CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, RunAll(graph, more));
    return std::move(outputs.back());
  }

  // The derivative of the last output along the directions, the inputs behind
  // those of the entry being `more`.
  absl::StatusOr<Tensor> Along(const Graph& graph,
                               const std::vector<bool>& active,
                               std::vector<Tensor> more = {}) const {
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(graph, active, rules_));
    more.insert(more.end(), directions_.begin(), directions_.end());
    return Run(jvp.graph, more);
  }

  // The cotangents of the active inputs, for `cotangent`, by default ones;
  // weighted and added where `weighted`.
  absl::StatusOr<Tensor> Against(const Graph& graph,
                                 const std::vector<bool>& active, bool weighted,
                                 std::vector<Tensor> more = {},
                                 std::vector<Tensor> cotangent = {}) const {
    CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(graph, active, rules_));
    if (cotangent.empty()) {
      cotangent = {Ones(graph.type(graph.outputs().back().value))};
    }
    more.insert(more.end(), cotangent.begin(), cotangent.end());
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                            RunAll(vjp.graph, more));
    const std::vector<Tensor> cotangents(outputs.end() - directions_.size(),
                                         outputs.end());
    return weighted ? Weighted(cotangents) : cotangents.back();
  }

  absl::StatusOr<Tensor> Weighted(absl::StatusOr<Tensor> cotangent) const {
    if (!cotangent.ok()) return cotangent.status();
    return Weighted(std::vector<Tensor>{*cotangent});
  }

  // The cotangents times the directions, added: element by element, or all
  // elements where the right value is a scalar.
  Tensor Weighted(const std::vector<Tensor>& cotangents) const {
    Tensor sum(cotangents[0].dtype(), entry_.right.shape);
    for (int64_t i = 0; i < cotangents[0].size(); ++i) {
      const int64_t at = sum.rank() == 0 ? 0 : i;
      for (size_t k = 0; k < cotangents.size(); ++k) {
        const double weight = directions_[k].GetDouble(i);
        if (weight == 0) continue;
        sum.SetDouble(at,
                      sum.GetDouble(at) + weight * cotangents[k].GetDouble(i));
      }
    }
    return sum;
  }

  const ZooEntry& entry_;
  const RuleSet& rules_;
  const Graph function_;
  std::vector<Tensor> inputs_;
  std::vector<bool> active_;
  std::vector<Tensor> directions_;
};

// Expects what `function` of the rules gives to be `want`, by every way to it
// or by the first.
enum class Ways { kAll, kFirst };
void ExpectValue(const ZooEntry& entry, const RuleSet& rules,
                 const std::string& function, const ZooTensor& want, double ulp,
                 Ways ways) {
  absl::StatusOr<Graph> graph = rules.Function(function);
  ASSERT_OK(graph);
  auto results = ZooCall(entry, rules, *std::move(graph)).Results();
  ASSERT_OK(results);
  if (ways == Ways::kFirst) results->resize(1);
  for (const ZooCall::Result& result : *results) {
    const Tensor& got = result.value;
    ASSERT_EQ(got.shape(), want.shape) << result.mode;
    for (int64_t i = 0; i < got.size(); ++i) {
      const double expected = want.values[i];
      const std::string where = absl::StrCat(function, " by ", result.mode,
                                             " at ", i, ": ", got.ToString());
      if (!IsFloat(got.dtype())) {
        EXPECT_EQ(got.GetInt(i), expected) << where;
      } else {
        EXPECT_LE(
            UlpError(Real(expected, kBits), got.GetDouble(i), got.dtype()), ulp)
            << where << " in place of " << expected;
      }
    }
  }
}

CheckReport Check(std::shared_ptr<const RuleSet> rules, Layer layer) {
  CheckOptions options;
  options.ops = "zoo_*";
  options.layers = {layer};
  options.dtypes = {DType::kF32, DType::kF64};
  const absl::StatusOr<CheckReport> report =
      CheckRules(std::move(rules), options);
  EXPECT_OK(report);
  return report.value_or(CheckReport());
}

void ExpectAgrees(const CheckReport& report) {
  EXPECT_EQ(report.Count(VerdictKind::kDisagrees), 0) << report.ToString();
  EXPECT_EQ(report.Count(VerdictKind::kInconclusive), 0) << report.ToString();
  EXPECT_GT(report.Count(VerdictKind::kAgrees), 0) << report.ToString();
}

Layer LayerOf(const ZooEntry& entry) {
  if (const auto layer = FindLayer(entry.layer)) return *layer;
  ADD_FAILURE() << "no layer `" << entry.layer << "`";
  return Layer::kTransforms;
}

// Each test has the number of an entry.
class ZooTest : public testing::TestWithParam<size_t> {
 protected:
  const ZooEntry& entry() const { return Zoo()[GetParam()]; }
};

TEST_P(ZooTest, IsDerivedRight) {
  const ZooEntry& entry = this->entry();
  const ZooRules rules = ReadRules(entry.id);
  const LoadResult loaded =
      ExtendRules(ShippedRules(),
                  entry.right_error.empty() ? rules.derived : rules.planted);
  if (!entry.right_error.empty()) {
    ASSERT_EQ(loaded.diagnostics.size(), 1u);
    EXPECT_THAT(loaded.diagnostics[0], HasSubstr(entry.right_error));
    return;
  }
  ASSERT_NE(loaded.rules, nullptr) << absl::StrJoin(loaded.diagnostics, "\n");
  ExpectValue(entry, *loaded.rules, "right", entry.right, entry.ulp,
              Ways::kAll);
}

// The rules that are planted give the wrong values by the transform that they
// override, so they are those of the entry; the checker says of them what the
// entry says, and finds nothing wrong with the ops that they are planted in.
TEST_P(ZooTest, PlantedRuleIsJudged) {
  const ZooEntry& entry = this->entry();
  const ZooRules rules = ReadRules(entry.id);
  if (entry.verdict == ZooVerdict::kNotStated) {
    EXPECT_FALSE(rules.has_overrides);
    return;
  }
  const LoadResult planted = ExtendRules(ShippedRules(), rules.planted);
  const LoadResult derived = ExtendRules(ShippedRules(), rules.derived);
  ASSERT_NE(derived.rules, nullptr) << absl::StrJoin(derived.diagnostics, "\n");
  const Layer layer = entry.layer.empty() ? Layer::kTransforms : LayerOf(entry);
  if (rules.has_overrides) ExpectAgrees(Check(derived.rules, layer));
  if (entry.verdict == ZooVerdict::kRefused) {
    ASSERT_EQ(planted.diagnostics.size(), 1u);
    EXPECT_THAT(planted.diagnostics[0], HasSubstr(entry.why));
    return;
  }
  ASSERT_NE(planted.rules, nullptr) << absl::StrJoin(planted.diagnostics, "\n");
  ExpectValue(entry, *planted.rules, "planted", entry.wrong[0], kWrongUlp,
              Ways::kFirst);
  const CheckReport report = Check(planted.rules, layer);
  if (entry.verdict == ZooVerdict::kAccepted) {
    ExpectAgrees(report);
    return;
  }
  EXPECT_EQ(report.Count(VerdictKind::kInconclusive), 0) << report.ToString();
  EXPECT_GT(report.Count(VerdictKind::kDisagrees), 0) << report.ToString();
  if (layer == Layer::kExamples) {
    ExpectAgrees(Check(planted.rules, Layer::kTransforms));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ZooTest, testing::Range(size_t{0}, Zoo().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return Zoo()[info.param].id;
                         });

std::string DescribeDerived(const ZooEntry& entry) {
  if (!entry.right_error.empty()) {
    return absl::StrCat("refused, as it must be: ", entry.right_error);
  }
  static const auto& ways = *new std::map<ZooTransform, const char*>{
      {ZooTransform::kValue, "value"},
      {ZooTransform::kSlope, "jvp and vjp"},
      {ZooTransform::kJvp, "jvp"},
      {ZooTransform::kVjp, "vjp"},
      {ZooTransform::kSecond, "all four nestings"},
      {ZooTransform::kVmap, "vmap"}};
  const std::string within =
      entry.ulp == 0 ? "exact" : absl::StrCat("within ", entry.ulp, " ulp");
  return absl::StrCat(entry.convention.empty() ? "right" : "another convention",
                      ": ", ways.at(entry.transform), ", ", within,
                      entry.convention.empty() ? "" : ": ", entry.convention);
}

std::string DescribePlanted(const ZooEntry& entry) {
  switch (entry.verdict) {
    case ZooVerdict::kRefuted:
      return entry.layer == "examples"
                 ? absl::StrCat("refuted by an example; not by L5: ", entry.why)
                 : absl::StrCat("refuted by ", entry.layer);
    case ZooVerdict::kRefused:
      return absl::StrCat("not loaded: ", entry.why);
    case ZooVerdict::kAccepted:
      return absl::StrCat("accepted: ", entry.why);
    case ZooVerdict::kNotStated:
      return absl::StrCat("not stated: ", entry.why);
  }
  return "";
}

// The findings of the tests above: each claim of a row is one that they made.
TEST(Zoo, Outcomes) {
  std::string table = absl::StrCat(
      "# The zoo: outcomes\n\n",
      "Derivative and batching rules that other projects had wrong, at the ",
      "inputs that showed it: what\nis derived here, and what becomes of the ",
      "wrong rule as an override. Written by `zoo_test --update`\nfrom ",
      "[zoo.json](zoo.json); the rules are in [rules/](rules).\n\n",
      "| Entry | Project | Thread | Kind | Derived | The wrong rule |\n",
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const ZooEntry& entry : Zoo()) {
    absl::StrAppend(&table, "| ", entry.id, " | ", entry.project, " | ",
                    entry.issue, " | ", entry.kind, " | ",
                    DescribeDerived(entry), " | ", DescribePlanted(entry),
                    " |\n");
  }
  TestGeneratedFile(absl::StrCat(kFolder, "outcomes.md"), table);
}

}  // namespace
}  // namespace cleave
