// `override` items hold in the rule set that loads them, and nowhere else: the
// base and its extension are used in turns, each with what it derived before.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/report/coverage.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The overrides are wrong on purpose, so that they show.
constexpr char kRules[] = R"(language 1

op square(x: T[S..]) -> T[S..]
  where T: float
  = x * x

/// Calls `square` inside its body.
op composite(x: T[S..]) -> T[S..]
  where T: float
  = 1 + 2 * square(x)

op along(x: T[S..], t: T[S..]) -> T[S..]
  where T: float
  = jvp square(x)(t)

op against(x: T[S..], t: T[S..]) -> T[S..]
  where T: float
  = vjp square(x)(t).x
)";

std::string Override(const std::string& lines) {
  return absl::StrCat("language 1\n\noverride square\n{\n", lines, "}\n");
}

struct Rules {
  explicit Rules(std::shared_ptr<const RuleSet> r) : set(std::move(r)) {}
  std::shared_ptr<const RuleSet> set;
};

using Transform = std::function<absl::StatusOr<Graph>(const Graph&, Rules&)>;

absl::StatusOr<Graph> Itself(const Graph& graph, Rules&) { return graph; }

absl::StatusOr<Graph> Batch(const Graph& graph, Rules& rules) {
  return Vmap(graph, std::vector<int>(graph.inputs().size(), 0), Dim(1),
              std::vector<int>(graph.outputs().size(), 0), *rules.set);
}

absl::StatusOr<Graph> Forward(const Graph& graph, Rules& rules) {
  std::vector<bool> active(graph.inputs().size());
  active[0] = true;
  auto jvp = Jvp(graph, active, *rules.set);
  if (!jvp.ok()) return jvp.status();
  return std::move(jvp->graph);
}

absl::StatusOr<Graph> Reverse(const Graph& graph, Rules& rules) {
  std::vector<bool> active(graph.inputs().size());
  active[0] = true;
  auto vjp = Vjp(graph, active, *rules.set);
  if (!vjp.ok()) return vjp.status();
  return std::move(vjp->graph);
}

class OverrideTest : public ::testing::Test {
 protected:
  std::shared_ptr<const RuleSet> Extend(
      const std::shared_ptr<const RuleSet>& rules, const std::string& text) {
    const LoadResult loaded = ExtendRules(rules, {"user.rules", text});
    EXPECT_THAT(loaded.diagnostics, ElementsAre());
    CLEAVE_CHECK(loaded.rules != nullptr);
    return loaded.rules;
  }

  // Transforms of op(x), the innermost first, at x = 3 and 1 for all other
  // inputs: all outputs.
  std::vector<double> Run(Rules& rules, absl::string_view op,
                          const std::vector<Transform>& transforms) {
    GraphBuilder builder(context_);
    const TensorType type{DType::kF64, {Dim(2)}};
    std::vector<Argument> arguments = {{"", builder.Input("x", type)}};
    if (op == "along" || op == "against") {
      arguments.push_back({"", builder.Input("t", type)});
    }
    auto results = rules.set->Call(builder, op, arguments, Attributes());
    CLEAVE_CHECK(results.ok()) << results.status().message();
    absl::StatusOr<Graph> graph =
        *std::move(builder).Build({{"y", *(*results)[0]}});
    for (const Transform& transform : transforms) {
      graph = transform(*graph, rules);
      CLEAVE_CHECK(graph.ok()) << graph.status().message();
    }
    graph = Expand(*graph, *rules.set);
    CLEAVE_CHECK(graph.ok()) << graph.status().message();
    std::vector<Tensor> inputs;
    for (const NamedValue& input : graph->inputs()) {
      Tensor tensor(DType::kF64, ConstantShape(graph->type(input.value)));
      for (int64_t i = 0; i < tensor.size(); ++i) {
        tensor.SetDouble(i, inputs.empty() ? 3 : 1);
      }
      inputs.push_back(std::move(tensor));
    }
    const auto outputs = Interpret(*graph, inputs);
    CLEAVE_CHECK(outputs.ok()) << outputs.status().message();
    std::vector<double> firsts;
    for (const Tensor& output : *outputs) {
      firsts.push_back(output.GetDouble(0));
    }
    return firsts;
  }

  static std::vector<int64_t> ConstantShape(const TensorType& type) {
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
    return shape;
  }

  struct Case {
    const char* op;
    std::vector<Transform> transforms;
    std::vector<double> base;
    std::vector<double> overridden;
  };

  // Both rule sets in turns, so that each meets what the other derived.
  void ExpectInTurns(const std::string& lines, const std::vector<Case>& cases) {
    Rules base(LoadTestRules(context_, kRules));
    Rules first(Extend(base.set, Override(lines)));
    for (int turn = 0; turn < 2; ++turn) {
      // An extension that is made late finds a base that derived all.
      Rules late(Extend(base.set, Override(lines)));
      for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(absl::StrCat("turn ", turn, ", case ", i));
        const Case& c = cases[i];
        EXPECT_THAT(Run(base, c.op, c.transforms),
                    Pointwise(::testing::DoubleEq(), c.base));
        EXPECT_THAT(Run(first, c.op, c.transforms),
                    Pointwise(::testing::DoubleEq(), c.overridden));
        EXPECT_THAT(Run(late, c.op, c.transforms),
                    Pointwise(::testing::DoubleEq(), c.overridden));
      }
    }
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
};

TEST_F(OverrideTest, OfJvpHoldsWhereItIsLoadedAlone) {
  ExpectInTurns("  jvp x = 100 * dx\n",
                {{"square", {Itself}, {9}, {9}},
                 {"square", {Forward}, {9, 6}, {9, 100}},
                 {"square", {Reverse}, {9, 6}, {9, 100}},
                 {"square", {Batch}, {9}, {9}},
                 {"square", {Forward, Batch}, {9, 6}, {9, 100}},
                 {"square", {Batch, Forward}, {9, 6}, {9, 100}},
                 {"square", {Batch, Reverse}, {9, 6}, {9, 100}},
                 {"square", {Reverse, Batch}, {9, 6}, {9, 100}},
                 {"composite", {Forward}, {19, 12}, {19, 200}},
                 {"composite", {Reverse}, {19, 12}, {19, 200}},
                 {"composite", {Batch, Forward, Batch}, {19, 12}, {19, 200}},
                 {"composite", {Batch, Reverse}, {19, 12}, {19, 200}},
                 {"along", {Itself}, {6}, {100}},
                 {"along", {Batch}, {6}, {100}},
                 {"against", {Itself}, {6}, {100}},
                 {"against", {Batch}, {6}, {100}}});
}

TEST_F(OverrideTest, OfVjpHoldsWhereItIsLoadedAlone) {
  ExpectInTurns("  vjp (dy) = (x = 100 * dy)\n",
                {{"square", {Forward}, {9, 6}, {9, 6}},
                 {"square", {Reverse}, {9, 6}, {9, 100}},
                 {"square", {Batch, Reverse}, {9, 6}, {9, 100}},
                 {"square", {Reverse, Batch}, {9, 6}, {9, 100}},
                 {"composite", {Forward}, {19, 12}, {19, 12}},
                 {"composite", {Reverse}, {19, 12}, {19, 200}},
                 {"composite", {Batch, Reverse}, {19, 12}, {19, 200}},
                 {"against", {Itself}, {6}, {100}}});
}

TEST_F(OverrideTest, OfVmapHoldsWhereItIsLoadedAlone) {
  ExpectInTurns("  vmap (x) = 100 * x\n",
                {{"square", {Itself}, {9}, {9}},
                 {"square", {Batch}, {9}, {300}},
                 {"square", {Forward}, {9, 6}, {9, 6}},
                 {"square", {Batch, Forward}, {9, 6}, {300, 100}},
                 // A batch of `composite` stays a call of it.
                 {"composite", {Itself}, {19}, {19}},
                 {"composite", {Batch}, {19}, {19}},
                 {"composite", {Batch, Reverse}, {19, 12}, {19, 12}}});
}

// Derivatives follow the body that is in force.
TEST_F(OverrideTest, OfTheBodyHoldsWhereItIsLoadedAlone) {
  ExpectInTurns("  let c = 100\n  c * x\n",
                {{"square", {Itself}, {9}, {300}},
                 {"square", {Batch}, {9}, {300}},
                 {"square", {Forward}, {9, 6}, {300, 100}},
                 {"square", {Reverse}, {9, 6}, {300, 100}},
                 {"composite", {Itself}, {19}, {601}},
                 {"composite", {Batch, Forward}, {19, 12}, {601, 200}},
                 {"composite", {Reverse, Batch}, {19, 12}, {601, 200}},
                 {"along", {Itself}, {6}, {100}},
                 {"against", {Batch}, {6}, {100}}});
}

// An op's own lines stay, and see the op's own values.
TEST_F(OverrideTest, OneLineIsReplacedAndNoOther) {
  const std::string op = R"(
op scaled(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  let c = 3
  c * x * w
  jvp x = c * dx
  jvp w = y * dw
}
)";
  Rules base(LoadTestRules(context_, kRules + op));
  Rules extended(Extend(base.set, R"(language 1

override scaled
{
  let c = 7
  5 * x + w
  jvp w (t) = c * t
}
)"));
  const auto at = [&](Rules& rules) {
    GraphBuilder builder(context_);
    const TensorType type{DType::kF64, {}};
    const Value x = builder.Input("x", type);
    const Value w = builder.Input("w", type);
    auto y =
        rules.set->Call(builder, "scaled", {{"", x}, {"", w}}, Attributes());
    CLEAVE_CHECK(y.ok()) << y.status().message();
    const Graph graph = *std::move(builder).Build({{"y", *(*y)[0]}});
    auto jvp = Jvp(graph, {true, true}, *rules.set);
    CLEAVE_CHECK(jvp.ok()) << jvp.status().message();
    auto primitives = Expand(jvp->graph, *rules.set);
    CLEAVE_CHECK(primitives.ok()) << primitives.status().message();
    std::vector<Tensor> inputs;
    for (const double value : {2.0, 3.0, 10.0, 1000.0}) {
      inputs.emplace_back(DType::kF64, std::vector<int64_t>());
      inputs.back().SetDouble(0, value);
    }
    auto outputs = Interpret(*primitives, inputs);
    CLEAVE_CHECK(outputs.ok()) << outputs.status().message();
    return std::vector<double>{(*outputs)[0].GetDouble(0),
                               (*outputs)[1].GetDouble(0)};
  };
  EXPECT_THAT(at(base), ElementsAre(18, 3 * 10 + 18 * 1000));
  EXPECT_THAT(at(extended), ElementsAre(13, 3 * 10 + 7 * 1000));
  EXPECT_THAT(at(base), ElementsAre(18, 3 * 10 + 18 * 1000));
}

TEST_F(OverrideTest, CoverageSaysWhere) {
  Rules base(LoadTestRules(context_, kRules));
  Rules extended(Extend(base.set, Override("  jvp x = 2 * x * dx\n"
                                           "  vmap (x) = x * x\n")));
  ASSERT_OK_AND_ASSIGN(OpCoverage coverage,
                       TransformCoverage(*extended.set, "square"));
  EXPECT_EQ(coverage.jvp.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(coverage.jvp.why, "user.rules:5");
  EXPECT_EQ(coverage.vmap.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(coverage.vmap.why, "user.rules:6");
  EXPECT_EQ(coverage.vjp.kind, Coverage::Kind::kDerived);
  ASSERT_OK_AND_ASSIGN(coverage, TransformCoverage(*base.set, "square"));
  EXPECT_EQ(coverage.jvp.kind, Coverage::Kind::kDerived);
}

TEST_F(OverrideTest, ProvenanceIsTheLineOfTheOverride) {
  Rules extended(Extend(LoadTestRules(context_, kRules),
                        Override("  let c = 3\n  c * x\n")));
  GraphBuilder builder(context_);
  const Value x = builder.Input("x", {DType::kF64, {Dim(2)}});
  ASSERT_OK_AND_ASSIGN(const auto results,
                       extended.set->Call(builder, "composite", {{"", x}}, {}));
  const Graph call = *std::move(builder).Build({{"y", *results[0]}});
  ASSERT_OK_AND_ASSIGN(const Graph graph, Expand(call, *extended.set));
  bool found = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const ProvenanceId provenance = graph.node(Value{id}).provenance;
    if (provenance == 0) continue;
    const Provenance& place = context_->provenance(provenance);
    if (place.rule != "square") continue;
    found = true;
    EXPECT_EQ(place.file, "user.rules");
    EXPECT_EQ(place.line, 6);
  }
  EXPECT_TRUE(found) << PrintGraph(graph);
}

// Files are loaded in any order; what overrides is extended as any other.
TEST_F(OverrideTest, StandsInAnyFile) {
  const std::string lines = Override("  jvp x = 100 * dx\n");
  const LoadResult loaded =
      LoadRules({{"user.rules", lines}, {"op.rules", kRules}}, context_,
                WithTransforms());
  ASSERT_THAT(loaded.diagnostics, ElementsAre());
  Rules more(Extend(loaded.rules,
                    "language 1\n\nop other(x: T[S..]) -> T[S..]\n"
                    "  where T: float\n  = square(square(x))\n"));
  EXPECT_THAT(Run(more, "other", {Forward}), ElementsAre(81, 10000));
}

constexpr char kHostOps[] = R"(language 1

op host(x: f64[n]) -> f64[n]

op lined(x: f64[n], w: f64[n]) -> f64[n]
{
  jvp x = 2 * dx
  vjp (dy) = (x = 2 * dy)
  vmap (x, w@_) = x * w
}

op caller(x: f64[n]) -> f64[n]
  = 2 * host(x)
)";

class HostOpTest : public OverrideTest {
 protected:
  Rules rules_{LoadTestRules(context_, kHostOps)};
};

TEST_F(HostOpTest, HasTheTransformsThatItsLinesGive) {
  ASSERT_OK_AND_ASSIGN(const OpCoverage none,
                       TransformCoverage(*rules_.set, "host"));
  for (const Coverage& coverage : {none.vmap, none.jvp, none.vjp}) {
    EXPECT_EQ(coverage.kind, Coverage::Kind::kImpossible);
    EXPECT_EQ(coverage.why, "no decomposition");
  }
  ASSERT_OK_AND_ASSIGN(const OpCoverage caller,
                       TransformCoverage(*rules_.set, "caller"));
  EXPECT_EQ(caller.jvp.kind, Coverage::Kind::kImpossible);
  ASSERT_OK_AND_ASSIGN(const OpCoverage lined,
                       TransformCoverage(*rules_.set, "lined"));
  EXPECT_EQ(lined.jvp.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(lined.vjp.kind, Coverage::Kind::kGiven);
  EXPECT_EQ(lined.vjp.why, "extra.rules:8");
}

TEST_F(HostOpTest, AnOverrideGivesTransforms) {
  Rules extended(Extend(rules_.set,
                        "language 1\n\noverride host\n{\n"
                        "  jvp x = dx * y\n  vmap (x) = 3 * x\n}\n"));
  ASSERT_OK_AND_ASSIGN(const OpCoverage given,
                       TransformCoverage(*extended.set, "host"));
  EXPECT_EQ(given.jvp.why, "user.rules:5");
  EXPECT_EQ(given.vmap.why, "user.rules:6");
  EXPECT_EQ(given.vjp.kind, Coverage::Kind::kDerived) << given.vjp.why;
  ASSERT_OK_AND_ASSIGN(const OpCoverage caller,
                       TransformCoverage(*extended.set, "caller"));
  EXPECT_EQ(caller.jvp.kind, Coverage::Kind::kDerived) << caller.jvp.why;
  // A body makes it an op like others.
  Rules bodied(Extend(rules_.set, "language 1\n\noverride host = x * x\n"));
  EXPECT_THAT(Run(bodied, "caller", {Forward}), ElementsAre(18, 12));
}

TEST_F(HostOpTest, StaysACallThatNothingElseRuns) {
  GraphBuilder builder(context_);
  const Value x = builder.Input("x", {DType::kF64, {Dim(2)}});
  ASSERT_OK_AND_ASSIGN(const auto results,
                       rules_.set->Call(builder, "caller", {{"", x}}, {}));
  const Graph call = *std::move(builder).Build({{"y", *results[0]}});
  ASSERT_OK_AND_ASSIGN(const Graph graph, Expand(call, *rules_.set));
  EXPECT_THAT(PrintGraph(graph), HasSubstr("host("));
  const auto run =
      Interpret(graph, {Tensor(DType::kF64, std::vector<int64_t>{2})});
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("`host`"));
}

}  // namespace
}  // namespace cleave
