#include "transforms/aot/aot_graph.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/replay.h"
#include "transforms/aot/saved_tensors.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave::aot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFunctions[] = R"(language 1
fn sin_cos(x: f64[n]) -> f64[n] = cos(sin(x))
fn mixed(w: f64[3, 2], x: f64[n, 3], i: i64[]) -> (y: f64[n, 2], j: i64[])
{
  (y = softmax(matmul(x, w), axis: -1), j = i + 1)
}
fn smooth(x: f64[4]) -> f64[4] = gelu(x) * softplus(x)
)";

class AotGraphTest : public ::testing::Test {
 protected:
  // Loaded once: the rules do not change.
  AotGraphTest() : rules_(Rules()) {}

  static std::shared_ptr<const RuleSet> Rules() {
    static const auto* rules = new std::shared_ptr<const RuleSet>(LoadTestRules(
        std::make_shared<Context>(), kFunctions, {"core", "aten"}));
    return *rules;
  }

  Graph Function(const std::string& name) {
    const absl::StatusOr<Graph> graph = rules_->Function(name);
    EXPECT_OK(graph);
    return *graph;
  }

  std::shared_ptr<AotGraph> Made(const Graph& graph,
                                 const std::vector<bool>& active,
                                 const std::vector<TensorType>& types,
                                 const AotOptions& options = {},
                                 AotTrace* log = nullptr) {
    const auto trace_rules = MakeTraceRules(options, rules_);
    EXPECT_OK(trace_rules);
    const auto made =
        AotGraph::Make(graph, active, types, InterpretCompiler(rules_), options,
                       *trace_rules, log);
    EXPECT_OK(made);
    return *made;
  }

  // The plain transform, interpreted.
  std::vector<Tensor> PlainVjp(const Graph& graph,
                               const std::vector<bool>& active,
                               const std::vector<Tensor>& inputs) {
    const auto vjp = Vjp(graph, active, *rules_);
    EXPECT_OK(vjp);
    const auto expanded = Expand(vjp->graph, *rules_);
    EXPECT_OK(expanded);
    const auto results = Interpret(*expanded, inputs);
    EXPECT_OK(results);
    return *results;
  }

  std::shared_ptr<const RuleSet> rules_;
};

const Tensor kX = Tensor::FromDoubles(DType::kF64, {4}, {-1.5, 0.25, 1, 2});
const Tensor kDy = Tensor::FromDoubles(DType::kF64, {4}, {1, -2, 0.5, 3});

void ExpectSame(const std::vector<Tensor>& have,
                const std::vector<Tensor>& want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < have.size(); ++i) {
    EXPECT_TRUE(SameValue(have[i], want[i]))
        << i << ": " << have[i].ToString() << "\n"
        << want[i].ToString();
  }
}

TEST_F(AotGraphTest, ForwardAndBackwardAreThoseOfVjp) {
  const Graph graph = Function("sin_cos");
  const auto aot = Made(graph, {true}, {kX.type()});
  const auto result = aot->Run({kX});
  ASSERT_OK(result);
  const auto gradients = aot->Backward(*result, {kDy});
  ASSERT_OK(gradients);
  const std::vector<Tensor> want = PlainVjp(graph, {true}, {kX, kDy});
  ExpectSame({result->outputs[0], (*gradients)[0]}, want);
}

TEST_F(AotGraphTest, TheBackwardIsDifferentiable) {
  const Graph graph = Function("smooth");
  const auto aot = Made(graph, {true}, {kX.type()});
  const auto first = aot->BackwardAsFunction();
  ASSERT_OK(first);
  const auto run = (*first)->Run({kX, kDy});
  ASSERT_OK(run);
  const Tensor v = Tensor::FromDoubles(DType::kF64, {4}, {0.5, 1, -1, 2});
  const auto second = (*first)->Backward(*run, {v});
  ASSERT_OK(second);
  // vjp of vjp by the plain transforms.
  const auto vjp = Vjp(graph, {true}, *rules_);
  ASSERT_OK(vjp);
  std::vector<Tensor> want = PlainVjp(vjp->graph, {true, true},
                                      {kX, kDy, Tensor(DType::kF64, {4}), v});
  ExpectSame(*second, {want[2], want[3]});
  // A third time.
  const auto third = (*first)->BackwardAsFunction();
  ASSERT_OK(third);
  EXPECT_EQ((*third)->function().active.size(), 3);
}

TEST_F(AotGraphTest, ExactDtypesHaveNoCotangents) {
  const Graph graph = Function("mixed");
  const Tensor w = Tensor::FromDoubles(DType::kF64, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor x = Tensor::FromDoubles(DType::kF64, {1, 3}, {0.1, 0.2, -0.3});
  const Tensor i = Tensor::FromInts(DType::kI64, {}, {7});
  const auto aot =
      Made(graph, {true, true, false}, {w.type(), x.type(), i.type()});
  const auto result = aot->Run({w, x, i});
  ASSERT_OK(result);
  EXPECT_EQ(result->outputs[1].GetInt(0), 8);
  const Tensor dy = Tensor::FromDoubles(DType::kF64, {1, 2}, {1, 0});
  const auto gradients = aot->Backward(*result, {dy, std::nullopt});
  ASSERT_OK(gradients);
  const std::vector<Tensor> want =
      PlainVjp(graph, {true, true, false}, {w, x, i, dy});
  ExpectSame(*gradients, {want[2], want[3]});
  // Absent cotangents are zeros.
  const auto none = aot->Backward(*result, {std::nullopt, std::nullopt});
  ASSERT_OK(none);
  ExpectSame(*none, {Tensor(DType::kF64, {3, 2}), Tensor(DType::kF64, {1, 3})});
  EXPECT_THAT(aot->Backward(*result, {dy, i}).status().message(),
              HasSubstr("it has no cotangent"));
  EXPECT_THAT(aot->Backward(*result, {x, std::nullopt}).status().message(),
              HasSubstr("is f64[1, 3], the output f64[1, 2]"));
  EXPECT_THAT(aot->Backward(*result, {dy}).status().message(),
              HasSubstr("1 cotangents for 2 outputs"));
}

TEST_F(AotGraphTest, SymbolicExtentsAreCompiledOnce) {
  const auto aot = Made(Function("sin_cos"), {true}, {kX.type()});
  for (const int64_t n : {0, 1, 7}) {
    const Tensor x(DType::kF64, {n});
    const auto result = aot->Run({x});
    ASSERT_OK(result);
    const auto gradients = aot->Backward(*result, {x});
    ASSERT_OK(gradients);
    EXPECT_EQ((*gradients)[0].shape(), std::vector<int64_t>({n}));
  }
}

TEST_F(AotGraphTest, CompilersAreAskedForTheirHalves) {
  std::vector<std::string> seen;
  const auto spy = [&](const std::string& name) -> GraphCompiler {
    return [&seen, name, next = InterpretCompiler(rules_)](
               const Graph& graph, const ExampleInputs& examples) {
      seen.push_back(absl::StrCat(name, " ", HalfName(examples.half), " ",
                                  examples.types.size()));
      return next(graph, examples);
    };
  };
  const Graph graph = Function("sin_cos");
  AotOptions options;
  const auto make = [&](bool active) {
    const auto rules = MakeTraceRules(options, rules_);
    EXPECT_OK(AotGraph::Make(graph, {active}, {kX.type()}, spy("fw"), options,
                             *rules, nullptr));
  };
  make(true);
  make(false);
  options.bw_compiler = spy("bw");
  options.inference_compiler = spy("inference");
  make(true);
  make(false);
  EXPECT_THAT(seen,
              ::testing::ElementsAre("fw forward 1", "fw backward 3",
                                     "fw inference 1", "fw forward 1",
                                     "bw backward 3", "inference inference 1"));
}

TEST_F(AotGraphTest, InferenceHasNoBackward) {
  const auto aot = Made(Function("sin_cos"), {false}, {kX.type()});
  const auto result = aot->Run({kX});
  ASSERT_OK(result);
  EXPECT_TRUE(result->saved.empty());
  EXPECT_THAT(aot->Backward(*result, {kDy}).status().message(),
              HasSubstr("there is no backward"));
}

TEST_F(AotGraphTest, CompilersOfThisFolderAgree) {
  const Graph graph = Function("smooth");
  std::ostringstream printed;
  const std::string folder = ::testing::TempDir() + "/aot_dump";
  std::filesystem::remove_all(folder);
  auto report = std::make_shared<RunReport>();
  HalideCompilerOptions halide;
  halide.report = report;
  const std::vector<GraphCompiler> compilers = {
      NopCompiler(rules_), InterpretCompiler(rules_),
      HalideCompiler(rules_, halide),
      PrintCompiler(&printed, InterpretCompiler(rules_)),
      DumpCompiler(folder, InterpretCompiler(rules_), /*picture=*/false)};
  const std::vector<Tensor> want = PlainVjp(graph, {true}, {kX, kDy});
  for (const GraphCompiler& compiler : compilers) {
    const auto rules = MakeTraceRules({}, rules_);
    const auto aot = AotGraph::Make(graph, {true}, {kX.type()}, compiler, {},
                                    *rules, nullptr);
    ASSERT_OK(aot);
    const auto result = (*aot)->Run({kX});
    ASSERT_OK(result);
    const auto gradients = (*aot)->Backward(*result, {kDy});
    ASSERT_OK(gradients);
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(result->outputs[0].GetDouble(i), want[0].GetDouble(i), 1e-14);
      EXPECT_NEAR((*gradients)[0].GetDouble(i), want[1].GetDouble(i), 1e-14);
    }
  }
  EXPECT_FALSE(report->steps.empty());
  // Calls are still calls in what compilers see.
  EXPECT_THAT(printed.str(), HasSubstr("// forward\ngraph (%x: f64[4])"));
  EXPECT_THAT(printed.str(), HasSubstr("gelu(%x"));
  EXPECT_THAT(printed.str(), HasSubstr("// backward\ngraph (%saved.0"));
  const auto text = ReadFile(folder + "/forward.txt");
  ASSERT_OK(text);
  EXPECT_OK(ParseGraph(*text, rules_->context()));
  EXPECT_OK(ReadFile(folder + "/backward.json"));
  EXPECT_OK(ReadFile(folder + "/backward.dot"));
}

TEST_F(AotGraphTest, DecompositionsAreOfThisTraceAlone) {
  const Graph graph = Function("smooth");
  const auto forward = [&](const AotOptions& options) {
    return PrintGraph(Made(graph, {false}, {kX.type()}, options)
                          ->function()
                          .partition.forward);
  };
  AotOptions options;
  EXPECT_THAT(forward(options), HasSubstr("gelu("));
  options.decompositions = *GetDecompositions({"gelu"}, *rules_);
  EXPECT_THAT(forward(options), Not(HasSubstr("gelu(")));
  EXPECT_THAT(forward(options), HasSubstr("softplus("));
  options.decompositions.preserve = {"gelu"};
  EXPECT_THAT(forward(options), HasSubstr("gelu("));
  options = {};
  options.decompositions.by_op["softplus"] = RuleText{R"(language 1
op rough_softplus(x: T[S..]) -> T[S..]
  where T: float
{
  y = log(1 + exp(x))
}
)"};
  EXPECT_THAT(forward(options), HasSubstr("log("));
  // The gradient is that of what is computed.
  const auto aot = Made(graph, {true}, {kX.type()}, options);
  EXPECT_THAT(PrintGraph(aot->function().joint.graph),
              Not(HasSubstr("log1p(")));
  options.expand = true;
  EXPECT_THAT(forward(options), Not(HasSubstr("gelu(")));
  EXPECT_THAT(forward({}), HasSubstr("softplus("));
}

TEST_F(AotGraphTest, BadDecompositionsAreRefused) {
  const auto message = [&](const std::string& op, Decomposition rule) {
    AotOptions options;
    options.decompositions.by_op[op] = std::move(rule);
    const auto rules = MakeTraceRules(options, rules_);
    if (!rules.ok()) return std::string(rules.status().message());
    return std::string(ReplaceOps(Function("smooth"), (*rules)->decompositions)
                           .status()
                           .message());
  };
  EXPECT_THAT(message("gelou", OwnBody()), HasSubstr("no op that the rules"));
  EXPECT_THAT(message("exp", OwnBody()), HasSubstr("a primitive"));
  EXPECT_THAT(message("gelu", RuleName{"nothing"}), HasSubstr("`nothing` is"));
  EXPECT_THAT(message("gelu", RuleName{"huber_loss"}),
              HasSubstr("`huber_loss` cannot take the place of `gelu`"));
  EXPECT_THAT(message("gelu", RuleText{"language 1\nop ("}), HasSubstr("op"));
  EXPECT_THAT(message("gelu", RuleText{"language 1\n"}),
              HasSubstr("declares no op"));
}

TEST_F(AotGraphTest, CoreAtenIsWhatIsLeft) {
  EXPECT_EQ(CoreAtenOps().size(), 189);
  EXPECT_TRUE(std::is_sorted(CoreAtenOps().begin(), CoreAtenOps().end()));
  const Decompositions core = CoreAtenDecompositions(*rules_);
  EXPECT_EQ(core.by_op.count("aten.gelu"), 0);
  EXPECT_EQ(core.by_op.count("aten.silu"), 1);
}

TEST_F(AotGraphTest, LogsAreReadAndReplayed) {
  AotLog log;
  AotTrace& trace = log.traces.emplace_back();
  const Graph graph = Function("smooth");
  trace.why = "first call";
  PhaseClock(&trace).Phase("trace", &graph);
  AotOptions options;
  options.decompositions = *GetDecompositions({"gelu"}, *rules_);
  Made(graph, {true}, {kX.type()}, options, &trace);
  std::vector<std::string> names;
  for (const AotPhase& phase : trace.phases) names.push_back(phase.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("trace", "replace", "joint", "decompose",
                                     "partition", "forward", "backward",
                                     "compile forward", "compile backward"));
  const auto read = AotLog::FromJson(log.ToJson());
  ASSERT_OK(read);
  EXPECT_EQ(read->ToJson(), log.ToJson());
  const auto report = Replay(*read, rules_);
  ASSERT_OK(report);
  EXPECT_TRUE(report->same) << report->ToString();
  // A phase that tells something else is found.
  AotLog other = log;
  AotPhase& joint = other.traces[0].phases[2];
  joint.graph = absl::StrCat(joint.graph, "// more\n");
  const auto differs = Replay(other, rules_);
  ASSERT_OK(differs);
  EXPECT_FALSE(differs->same);
  EXPECT_THAT(differs->ToString(), HasSubstr("differs"));
  EXPECT_THAT(AotLog::FromJson("{}").status().message(),
              HasSubstr("not a log"));
  EXPECT_THAT(AotLog::FromJson("[1").status().message(),
              HasSubstr("not a log"));
}

TEST_F(AotGraphTest, SavedTensorsAreListedWithBytes) {
  const auto aot = Made(Function("sin_cos"), {true}, {kX.type()});
  const auto text = PrintSavedTensors(aot->function().partition);
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("saved for the backward: "));
  EXPECT_THAT(*text, HasSubstr("f64[n]"));
  EXPECT_THAT(*text, HasSubstr("8*n"));
}

}  // namespace
}  // namespace cleave::aot
