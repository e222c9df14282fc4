// The results of a host's compiler are checked against its graph.

#include "transforms/aot/checked_graph.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"

namespace cleave::aot {
namespace {

using ::testing::HasSubstr;

// The error for `results` as the results of the graph on `inputs`.
std::string Verdict(const std::string& text, const std::vector<Tensor>& inputs,
                    std::vector<Tensor> results, Half half = Half::kInference) {
  const absl::StatusOr<Graph> graph =
      ParseGraph(text, std::make_shared<Context>());
  EXPECT_OK(graph);
  const absl::StatusOr<CheckedGraph> checked = CheckedGraph::Make(
      *graph, half, [&](absl::Span<const Tensor>) { return results; });
  EXPECT_OK(checked);
  const auto run = (*checked)(inputs);
  return run.ok() ? "OK" : std::string(run.status().message());
}

TEST(CheckedGraph, RefusesOtherTypesThanTheGraphHas) {
  const std::string graph =
      "graph (%x: f32[4, 5]) -> (y: f32[4, 5]) {\n"
      "  %1: f32[4, 5] = neg(%x)\n  return y = %1\n}\n";
  const std::vector<Tensor> x = {Tensor(DType::kF32, {4, 5})};
  EXPECT_EQ(Verdict(graph, x, {Tensor(DType::kF32, {4, 5})}), "OK");
  EXPECT_EQ(Verdict(graph, x, {Tensor(DType::kI64, {77})}, Half::kForward),
            "the compiled forward graph gives output `y` as i64[77], not "
            "f32[4, 5]");
  EXPECT_EQ(Verdict(graph, x, {Tensor(DType::kF64, {4, 5})}),
            "the compiled inference graph gives output `y` as f64[4, 5], not "
            "f32[4, 5]");
  EXPECT_EQ(Verdict(graph, x, {Tensor(DType::kF32, {5, 4})}, Half::kBackward),
            "the compiled backward graph gives output `y` as f32[5, 4], not "
            "f32[4, 5]");
  EXPECT_EQ(Verdict(graph, x, {Tensor(DType::kF32, {20})}),
            "the compiled inference graph gives output `y` as f32[20], not "
            "f32[4, 5]");
  EXPECT_EQ(Verdict(graph, x, {}),
            "the compiled inference graph gives 0 tensors, not 1");
  const absl::StatusOr<Tensor> null =
      Tensor::FromMemory(DType::kF32, {4, 5}, nullptr);
  if (null.ok()) {
    EXPECT_EQ(Verdict(graph, x, {*null}),
              "the compiled inference graph gives output `y` as f32[4, 5] "
              "without its data");
  }
}

TEST(CheckedGraph, EvaluatesSymbolicExtents) {
  const std::string graph =
      "graph (%x: f32[n, 3], %y: f32[2*n]) -> (a: f32[3, n], b: f32[2*n]) {\n"
      "  %1: f32[3, n] = transpose(%x, axes: [1, 0])\n"
      "  %2: f32[2*n] = neg(%y)\n"
      "  return a = %1, b = %2\n}\n";
  const std::vector<Tensor> in = {Tensor(DType::kF32, {4, 3}),
                                  Tensor(DType::kF32, {8})};
  EXPECT_EQ(Verdict(graph, in,
                    {Tensor(DType::kF32, {3, 4}), Tensor(DType::kF32, {8})}),
            "OK");
  EXPECT_EQ(Verdict(graph, in,
                    {Tensor(DType::kF32, {3, 5}), Tensor(DType::kF32, {8})}),
            "the compiled inference graph gives output `a` as f32[3, 5], not "
            "f32[3, 4] (f32[3, n])");
  EXPECT_EQ(Verdict(graph, in,
                    {Tensor(DType::kF32, {3, 4}), Tensor(DType::kF32, {10})}),
            "the compiled inference graph gives output `b` as f32[10], not "
            "f32[8] (f32[2*n])");
}

TEST(CheckedGraph, SolvesForExtentsThatNoInputHasAlone) {
  const std::string graph =
      "graph (%x: f32[2*n]) -> (y: f32[n]) {\n"
      "  %1: f32[n] = slice(%x, start: [0], size: [n], stride: [2])\n"
      "  return y = %1\n}\n";
  const std::vector<Tensor> in = {Tensor(DType::kF32, {8})};
  EXPECT_EQ(Verdict(graph, in, {Tensor(DType::kF32, {4})}), "OK");
  EXPECT_EQ(Verdict(graph, in, {Tensor(DType::kF32, {8})}),
            "the compiled inference graph gives output `y` as f32[8], not "
            "f32[4] (f32[n])");
}

class CheckedResultsTest : public AotFunctionTesting {};

// Interprets, and gives `wrong` for each result of one half.
GraphCompiler Spoiling(Half half, Tensor wrong,
                       const std::shared_ptr<const RuleSet>& rules) {
  return [half, wrong, next = InterpretCompiler(rules)](
             const Graph& graph,
             const ExampleInputs& examples) -> absl::StatusOr<CompiledGraph> {
    CLEAVE_ASSIGN_OR_RETURN(CompiledGraph run, next(graph, examples));
    if (examples.half != half) return run;
    return CompiledGraph(
        [count = graph.outputs().size(), wrong](absl::Span<const Tensor>) {
          return std::vector<Tensor>(count, wrong);
        });
  };
}

TEST_F(CheckedResultsTest, OfEachHalf) {
  const auto sin = [](functional::Tensor x) { return Sin(x); };
  const Tensor wrong(DType::kI64, {77});
  for (const bool dynamic : {false, true}) {
    AotOptions options;
    options.dynamic = dynamic;
    const auto forward = AotFunction::Make(
        sin, Spoiling(Half::kForward, wrong, rules()), rules(), options);
    ASSERT_OK(forward);
    EXPECT_THAT((*forward)(Iota(3)).status().message(),
                HasSubstr("the compiled forward graph gives output"));
    ASSERT_OK(forward->Inference(Iota(3)));
    const auto inference = AotFunction::Make(
        sin, Spoiling(Half::kInference, wrong, rules()), rules(), options);
    ASSERT_OK(inference);
    EXPECT_THAT(inference->Inference(Iota(3)).status().message(),
                HasSubstr("as i64[77], not f64[3]"));
    const auto backward = AotFunction::Make(
        sin, Spoiling(Half::kBackward, wrong, rules()), rules(), options);
    ASSERT_OK(backward);
    const auto y = (*backward)(Iota(3));
    ASSERT_OK(y);
    EXPECT_THAT(y->backward(Iota(3)).status().message(),
                HasSubstr("the compiled backward graph gives output"));
  }
}

TEST_F(CheckedResultsTest, OfCompilersThatGiveNothing) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x) { return Sin(x); },
      [](const Graph&, const ExampleInputs&) -> absl::StatusOr<CompiledGraph> {
        return CompiledGraph();
      },
      rules());
  ASSERT_OK(f);
  EXPECT_THAT((*f)(Iota(3)).status().message(),
              HasSubstr("the compiler of the forward graph gives no function"));
}

TEST_F(CheckedResultsTest, OfOffloadHooks) {
  AotOptions options;
  options.partition_fn =
      [](const JointGraph& joint) -> absl::StatusOr<Partition> {
    CLEAVE_ASSIGN_OR_RETURN(Partition partition, DefaultPartition(joint));
    partition.offloaded = {0};
    return partition;
  };
  options.offload.store = [](const Tensor&) {
    return std::make_shared<const int>(0);
  };
  options.offload.load = [](const std::shared_ptr<const void>&) {
    return Tensor(DType::kI64, {77});
  };
  const auto f = AotFunction::Make([](functional::Tensor x) { return Sin(x); },
                                   Interpreting(), rules(), options);
  ASSERT_OK(f);
  const auto y = (*f)(Iota(3));
  ASSERT_OK(y);
  EXPECT_THAT(y->backward(Iota(3)).status().message(),
              HasSubstr("loads residual 0 as i64[77], not f64[3]"));
}

}  // namespace
}  // namespace cleave::aot
