// Transforms of functions that call an AotFunction are those of the function
// itself, and a backward can be differentiated.

#include <string>
#include <vector>

#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave::aot {
namespace {

using functional::CallOne;
using functional::TraceScope;

functional::Tensor Smooth(functional::Tensor x) {
  return CallOne("gelu", {x}) * Sin(x);
}

class AotTransformsTest : public AotFunctionTesting {
 protected:
  AotTransformsTest()
      : aot_(*AotFunction::Make(Smooth, Interpreting(), rules())) {}

  // The graph of a function of tensors f64[n] ..
  template <typename Fn>
  static Graph Traced(int inputs, const Fn& fn) {
    TraceScope trace(rules());
    std::vector<functional::Tensor> x;
    for (int i = 0; i < inputs; ++i) {
      x.push_back(trace.Input(absl::StrCat("x", i),
                              {DType::kF64, {Dim::Variable("n")}}));
    }
    const absl::StatusOr<functional::Tensor> y = fn(x);
    EXPECT_OK(y);
    const absl::StatusOr<Value> node = trace.Read(*y);
    EXPECT_OK(node);
    const absl::StatusOr<Graph> graph = std::move(trace).Finish({{"y", *node}});
    EXPECT_OK(graph);
    return *graph;
  }

  Graph Plain() const {
    return Traced(
        1,
        [](const std::vector<functional::Tensor>& x)
            -> absl::StatusOr<functional::Tensor> { return Smooth(x[0]); });
  }
  Graph ThroughAot() const {
    return Traced(1,
                  [this](const std::vector<functional::Tensor>& x)
                      -> absl::StatusOr<functional::Tensor> {
                    CLEAVE_ASSIGN_OR_RETURN(const AotResult y, aot_(x[0]));
                    return Leaf(y.outputs);
                  });
  }

  // The cotangent by the backward of a call, and by the plain transform.
  Graph Backward() const {
    return Traced(2,
                  [this](const std::vector<functional::Tensor>& x)
                      -> absl::StatusOr<functional::Tensor> {
                    CLEAVE_ASSIGN_OR_RETURN(const AotResult y, aot_(x[0]));
                    CLEAVE_ASSIGN_OR_RETURN(const AotResult dx,
                                            y.backward(x[1]));
                    return Leaf(dx.outputs);
                  });
  }

  static std::vector<cleave::Tensor> Run(
      const Graph& graph, const std::vector<cleave::Tensor>& inputs) {
    const absl::StatusOr<Graph> expanded = Expand(graph, *rules());
    EXPECT_OK(expanded);
    const auto outputs = Interpret(*expanded, inputs);
    EXPECT_OK(outputs);
    return *outputs;
  }

  AotFunction aot_;
};

cleave::Tensor Numbers(const std::vector<double>& values) {
  return *Vector(values).Concrete();
}

TEST_F(AotTransformsTest, ACallUnderATraceIsTheFunctionsNodes) {
  EXPECT_EQ(PrintGraph(ThroughAot()), PrintGraph(Plain()));
}

TEST_F(AotTransformsTest, JvpOfAnAotFunctionIsThatOfTheFunction) {
  const auto have = Jvp(ThroughAot(), {true}, *rules());
  const auto want = Jvp(Plain(), {true}, *rules());
  ASSERT_OK(have);
  ASSERT_OK(want);
  EXPECT_EQ(PrintGraph(have->graph), PrintGraph(want->graph));
}

TEST_F(AotTransformsTest, VmapOfAnAotFunctionIsThatOfTheFunction) {
  const Dim batch = Dim::Variable("B");
  const auto have = Vmap(ThroughAot(), {0}, batch, {0}, *rules());
  const auto want = Vmap(Plain(), {0}, batch, {0}, *rules());
  ASSERT_OK(have);
  ASSERT_OK(want);
  EXPECT_EQ(PrintGraph(*have), PrintGraph(*want));
}

TEST_F(AotTransformsTest, ABackwardUnderATraceIsThatOfVjp) {
  const cleave::Tensor x = Numbers({-1, 0.5, 3});
  const cleave::Tensor dy = Numbers({1, 2, -1});
  const auto vjp = Vjp(Plain(), {true}, *rules());
  ASSERT_OK(vjp);
  EXPECT_TRUE(
      SameValue(Run(Backward(), {x, dy})[0], Run(vjp->graph, {x, dy})[1]));
  // jvp and vmap of it: forward over reverse, per-example gradients.
  EXPECT_OK(Jvp(Backward(), {true, true}, *rules()));
  EXPECT_OK(Vmap(Backward(), {0, 0}, Dim::Variable("B"), {0}, *rules()));
}

TEST_F(AotTransformsTest, BackwardsAreDifferentiableToAnyOrder) {
  const std::vector<double> at = {-1, 0.5, 3};
  const std::vector<double> dy = {1, 2, -1};
  const std::vector<double> v = {0.5, -1, 2};
  const auto y = aot_(Vector(at));
  ASSERT_OK(y);
  const auto dx = y->backward(Vector(dy));
  ASSERT_OK(dx);
  const auto second = dx->backward(Vector(v));
  ASSERT_OK(second);
  // (x, dy), in the structure of the backward's arguments.
  const std::vector<functional::Tensor>& have =
      functional::Flatten(second->outputs);
  ASSERT_EQ(have.size(), 2);
  const Graph backward = Backward();
  const auto twice = Vjp(backward, {true, true}, *rules());
  ASSERT_OK(twice);
  const auto want = Run(twice->graph, {Numbers(at), Numbers(dy), Numbers(v)});
  for (int i = 0; i < 2; ++i) {
    const auto value = have[i].Concrete();
    ASSERT_OK(value);
    for (int64_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(value->GetDouble(k), want[i + 1].GetDouble(k), 1e-12);
    }
  }
  // A third time: the cotangents of ((x, dy), v).
  const auto third =
      second->backward(Tree::Tuple({Vector({1, 1, 1}), functional::Tensor()}));
  ASSERT_OK(third);
  EXPECT_EQ(functional::Flatten(third->outputs).size(), 3);
  const auto thrice = Vjp(twice->graph, {true, true, true}, *rules());
  ASSERT_OK(thrice);
  const cleave::Tensor zero(DType::kF64, {3});
  const auto want_third = Run(
      thrice->graph,
      {Numbers(at), Numbers(dy), Numbers(v), zero, Numbers({1, 1, 1}), zero});
  const auto dx3 = functional::Flatten(third->outputs)[0].Concrete();
  ASSERT_OK(dx3);
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(dx3->GetDouble(k), want_third[3].GetDouble(k), 1e-11);
  }
}

TEST_F(AotTransformsTest, AnAotFunctionMayCallAnother) {
  const auto outer = AotFunction::Make(
      [this](functional::Tensor x) -> absl::StatusOr<functional::Tensor> {
        CLEAVE_ASSIGN_OR_RETURN(const AotResult y, aot_(x));
        CLEAVE_ASSIGN_OR_RETURN(const AotResult dx,
                                y.backward(Leaf(y.outputs)));
        return Leaf(dx.outputs) + x;
      },
      Interpreting(), rules());
  ASSERT_OK(outer);
  const auto y = (*outer)(Vector({1, 2}));
  ASSERT_OK(y);
  EXPECT_OK(y->backward(Vector({1, 1})));
}

}  // namespace
}  // namespace cleave::aot
