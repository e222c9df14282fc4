// Host kernels and C++ decompositions under transforms and an AotFunction.

#include "engine/ir/host_kernel.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vmap/vmap.h"

namespace cleave::aot {
namespace {

using functional::CallOne;
using functional::TraceScope;
using ::testing::HasSubstr;

// Softmax along its axis, in double precision; notes the axes of its calls.
HostFunction SoftmaxKernel(std::vector<int64_t>* axes) {
  return [axes](const HostCall& call)
             -> absl::StatusOr<std::vector<cleave::Tensor>> {
    const cleave::Tensor& x = call.inputs[0];
    const StaticValue* given = call.attributes.Find("axis");
    const int64_t axis =
        given == nullptr ? x.rank() - 1 : call.attributes.GetInt("axis");
    axes->push_back(axis);
    int64_t inner = 1;
    for (int d = static_cast<int>(axis) + 1; d < x.rank(); ++d) {
      inner *= x.shape()[d];
    }
    const int64_t n = x.shape()[axis];
    cleave::Tensor y(x.dtype(), x.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
      if (i / inner % n != 0) continue;
      double sum = 0;
      for (int64_t k = 0; k < n; ++k)
        sum += std::exp(x.GetDouble(i + k * inner));
      for (int64_t k = 0; k < n; ++k) {
        y.SetDouble(i + k * inner, std::exp(x.GetDouble(i + k * inner)) / sum);
      }
    }
    return std::vector<cleave::Tensor>{y};
  };
}

KernelCache& TestCache() {
  static auto* const cache = new KernelCache(KernelCacheOptions{});
  return *cache;
}

class HostKernelTest : public AotFunctionTesting {
 protected:
  HostKernelTest() { kernels_.Set("softmax", SoftmaxKernel(&axes_)); }

  // sin(softmax(x, axis: 0)) of f64[m, n].
  static Graph Function() {
    TraceScope trace(rules());
    const functional::Tensor x = trace.Input(
        "x", {DType::kF64, {Dim::Variable("m"), Dim::Variable("n")}});
    const functional::Tensor y = Sin(CallOne("softmax", {x}, {{"axis", 0}}));
    const absl::StatusOr<Value> node = trace.Read(y);
    EXPECT_OK(node);
    const absl::StatusOr<Graph> graph = std::move(trace).Finish({{"y", *node}});
    EXPECT_OK(graph);
    return *graph;
  }

  absl::StatusOr<Graph> Expanded(const Graph& graph) const {
    ExpandOptions options;
    options.preserve = kernels_.Ops();
    return Expand(graph, *rules(), options);
  }

  // The graph by the host's kernels agrees with that by the rules alone, when
  // it is interpreted and when it is compiled.
  void ExpectAgreement(const Graph& graph,
                       const std::vector<cleave::Tensor>& inputs) {
    ASSERT_OK_AND_ASSIGN(const Graph primitives, Expand(graph, *rules()));
    ASSERT_OK_AND_ASSIGN(const auto want, Interpret(primitives, inputs));
    ASSERT_OK_AND_ASSIGN(const Graph expanded, Expanded(graph));
    ASSERT_OK_AND_ASSIGN(const auto interpreted,
                         Interpret(expanded, inputs, {{}, kernels_}));
    const size_t calls = axes_.size();
    EXPECT_GT(calls, 0);
    CompileOptions options;
    options.cache = &TestCache();
    options.host_kernels = kernels_;
    ASSERT_OK_AND_ASSIGN(
        const Kernel kernel,
        Compile(Simplify(expanded, *rules()), *rules(), options));
    EXPECT_GT(kernel.host_groups(), 0);
    ASSERT_OK_AND_ASSIGN(const auto compiled, kernel.Run(inputs));
    EXPECT_EQ(axes_.size(), 2 * calls);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(interpreted[i].shape(), want[i].shape());
      ASSERT_EQ(compiled[i].shape(), want[i].shape());
      for (int64_t k = 0; k < want[i].size(); ++k) {
        EXPECT_NEAR(interpreted[i].GetDouble(k), want[i].GetDouble(k), 1e-12);
        EXPECT_NEAR(compiled[i].GetDouble(k), want[i].GetDouble(k), 1e-12);
      }
    }
  }

  static cleave::Tensor Numbers(std::vector<int64_t> shape) {
    cleave::Tensor x(DType::kF64, std::move(shape));
    for (int64_t i = 0; i < x.size(); ++i) {
      x.SetDouble(i, std::sin(static_cast<double>(i)));
    }
    return x;
  }

  std::vector<int64_t> axes_;
  HostKernels kernels_;
};

TEST_F(HostKernelTest, ComputesAKeptCallUnderVmapAlongItsMovedAxis) {
  ASSERT_OK_AND_ASSIGN(
      const Graph batched,
      Vmap(Function(), {0}, Dim::Variable("B"), {0}, *rules()));
  EXPECT_THAT(PrintGraph(batched), HasSubstr("softmax("));
  ExpectAgreement(batched, {Numbers({2, 3, 4})});
  for (const int64_t axis : axes_) EXPECT_EQ(axis, 1);
}

TEST_F(HostKernelTest, ComputesTheOpUnderNestedTransforms) {
  ASSERT_OK_AND_ASSIGN(const JvpResult jvp, Jvp(Function(), {true}, *rules()));
  ExpectAgreement(jvp.graph, {Numbers({3, 4}), Numbers({3, 4})});
  axes_.clear();
  ASSERT_OK_AND_ASSIGN(
      const Graph batched,
      Vmap(jvp.graph, {0, 0}, Dim::Variable("B"),
           std::vector<int>(jvp.graph.outputs().size(), 0), *rules()));
  ExpectAgreement(batched, {Numbers({2, 3, 4}), Numbers({2, 3, 4})});
}

TEST_F(HostKernelTest, RunsInEveryCompilerOfAnAotFunction) {
  const auto fn = [](functional::Tensor x) {
    return Sin(CallOne("softmax", {x}, {{"axis", 0}}));
  };
  HalideCompilerOptions halide;
  halide.compile.cache = &TestCache();
  halide.compile.host_kernels = kernels_;
  ASSERT_OK_AND_ASSIGN(const AotFunction by_rules,
                       AotFunction::Make(fn, Interpreting(), rules()));
  ASSERT_OK_AND_ASSIGN(const AotResult want, by_rules(Matrix(3, 2)));
  ASSERT_OK_AND_ASSIGN(const AotResult want_dx, want.backward(Matrix(3, 2)));
  for (const bool expand : {false, true}) {
    for (const GraphCompiler& compiler :
         {NopCompiler(rules(), kernels_), InterpretCompiler(rules(), kernels_),
          HalideCompiler(rules(), halide)}) {
      axes_.clear();
      AotOptions options;
      options.expand = expand;
      if (expand) options.decompositions.preserve = kernels_.Ops();
      ASSERT_OK_AND_ASSIGN(const AotFunction aot,
                           AotFunction::Make(fn, compiler, rules(), options));
      ASSERT_OK_AND_ASSIGN(const AotResult y, aot(Matrix(3, 2)));
      EXPECT_GT(axes_.size(), 0);
      ASSERT_OK_AND_ASSIGN(const AotResult dx, y.backward(Matrix(3, 2)));
      for (const auto& [have, wanted] :
           {std::pair(&y, &want), std::pair(&dx, &want_dx)}) {
        ASSERT_OK_AND_ASSIGN(const auto a, Leaf(have->outputs).Concrete());
        ASSERT_OK_AND_ASSIGN(const auto b, Leaf(wanted->outputs).Concrete());
        for (int64_t i = 0; i < 6; ++i) {
          EXPECT_NEAR(a.GetDouble(i), b.GetDouble(i), 1e-12);
        }
      }
    }
  }
}

TEST_F(HostKernelTest, NamesTheOpWhoseResultIsWrong) {
  HostKernels wrong;
  wrong.Set(
      "softmax",
      [](const HostCall& call) -> absl::StatusOr<std::vector<cleave::Tensor>> {
        return std::vector<cleave::Tensor>{
            cleave::Tensor(DType::kF32, call.inputs[0].shape())};
      });
  ASSERT_OK_AND_ASSIGN(
      const AotFunction aot,
      AotFunction::Make(
          [](functional::Tensor x) { return CallOne("softmax", {x}); },
          InterpretCompiler(rules(), wrong), rules()));
  EXPECT_THAT(aot(Iota(3)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the host kernel of `softmax` gave f32[3] for "
                                 "result 0, which is f64[3]")));
}

// x * x in the place of a sine, and its derivative in that of the cosine.
TEST_F(HostKernelTest, AFunctionDecomposesAndIsDifferentiated) {
  AotOptions options;
  options.decompositions.by_op.emplace(
      "gelu", BodyFunction([](GraphBuilder& b, absl::Span<const Value> x,
                              const Attributes&) {
        return absl::StatusOr<std::vector<Value>>(
            {b.Apply(Primitive::kMul, {x[0], x[0]})});
      }));
  ASSERT_OK_AND_ASSIGN(
      const AotFunction aot,
      AotFunction::Make(
          [](functional::Tensor x) { return CallOne("gelu", {x}); },
          Interpreting(), rules(), options));
  ASSERT_OK_AND_ASSIGN(const AotResult y, aot(Vector({1, 2, 3})));
  ExpectEqual(Leaf(y.outputs), Vector({1, 4, 9}));
  ASSERT_OK_AND_ASSIGN(const AotResult dx, y.backward(Vector({1, 1, 1})));
  ExpectEqual(Leaf(dx.outputs), Vector({2, 4, 6}));

  options.decompositions.by_op["gelu"] = BodyFunction();
  EXPECT_THAT(AotFunction::Make(
                  [](functional::Tensor x) { return CallOne("gelu", {x}); },
                  Interpreting(), rules(), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the function that decomposes `gelu`")));
}

}  // namespace
}  // namespace cleave::aot
