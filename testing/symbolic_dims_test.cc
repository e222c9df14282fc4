// Functions traced at symbolic extents, transformed and compiled once, run at
// all extents: what each gives is what the function traced at those extents
// gives, 0 and 1 included.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "engine/rewrite/expand.h"
#include "engine/runtime/kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/status_macros.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kFunctions[] = R"(language 1

fn softmaxed(x: f64[B, n]) -> f64[B, n] = softmax(x, axis: 1)

fn normalized(x: f64[B, n], w: f64[n]) -> f64[B, n] = layer_norm(x, w, N: [n]).y

fn activated(x: f64[B, n], w: f64[n, n + 1]) -> f64[B, n + 1] = gelu(x @ w)

fn attended(q: f64[B, n], k: f64[2 * B, n], v: f64[2 * B, n]) -> f64[B, n]
  = reshape(scaled_dot_product_attention(reshape(q, shape: [1, B, n]),
      reshape(k, shape: [1, 2 * B, n]), reshape(v, shape: [1, 2 * B, n])), shape: [B, n])

fn multiplied(x: f64[B, n]) -> f64[B, n] = cumprod(x, axis: 0)

fn moved(x: f64[B, n]) -> f64[n, B + 2]
{
  y[i, j < B + 2] = x[j - 1, n - 1 - i] ?? 0
}

fn spread(x: f64[B, n]) -> f64[B * n] = reshape(x, shape: [B * n])

fn scattered(x: f64[B, n], at: i64[B]) -> f64[n + 1, n]
{
  y[b < n + 1, j] = sum[i if at[i] == b](x[i, j])
}

fn paired(x: f64[n], w: f64[m]) -> f64[n] = x * w

fn recurrent(x: f64[B, n], h: f64[n]) -> f64[B, n]
{
  let r = scan(h = h) over t in x { (h = tanh(h + t), y = h * t) }
  r.y
}

fn summed_up(x: f64[B, n]) -> (total: f64[], top: f64[B + 1])
  = (total = sum[i, j](x[i, j] * x[i, j]),
      top[i < B + 1] = sum[j](x[i, j] ?? 1))

/// An assertion on an extent, checked at each run.
op even(x: T[n]) -> T[n]
  where T: float
  error shape "n must be even" if n % 2 != 0
  = x * x

fn asserted(x: f64[n]) -> f64[n] = even(x)

/// An extent of another name, checked at each run.
fn renamed(x: f64[n], w: f64[m, 2]) -> f64[m, 2] = reshape(x, shape: [m, 2]) * w
)";

std::vector<bool> Active(const Graph& graph) {
  std::vector<bool> active;
  for (const NamedValue& input : graph.inputs()) {
    active.push_back(IsFloat(graph.type(input.value).dtype));
  }
  return active;
}

absl::StatusOr<Graph> Transformed(const Graph& graph,
                                  const std::string& transforms,
                                  const RuleSet& rules) {
  Graph result = graph;
  for (const char transform : transforms) {
    if (transform == 'j') {
      CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp,
                              Jvp(result, Active(result), rules));
      result = std::move(jvp.graph);
    } else if (transform == 'v') {
      CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp,
                              Vjp(result, Active(result), rules));
      result = std::move(vjp.graph);
    } else {
      CLEAVE_ASSIGN_OR_RETURN(
          result, Vmap(result, std::vector<int>(result.inputs().size(), 0),
                       Dim::Variable(FreshBatch(result)),
                       std::vector<int>(result.outputs().size(), 0), rules));
    }
  }
  return Expand(result, rules);
}

// Some numbers, none of them special.
Tensor Draw(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
  Tensor tensor(type.dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(
        i, IsFloat(type.dtype) ? std::sin(1.7 * i + shape.size()) : i % 3);
  }
  return tensor;
}

class SymbolicDimsTest : public ::testing::Test {
 protected:
  // At extents `values`, by the interpreter: the graph transformed at symbolic
  // extents, bound, against the one that was transformed at these.
  void ExpectSame(const std::string& name, const std::string& transforms) {
    SCOPED_TRACE(absl::StrCat(name, " ", transforms));
    ASSERT_OK_AND_ASSIGN(const Graph traced, rules_->Function(name));
    ASSERT_OK_AND_ASSIGN(const Graph symbolic,
                         Transformed(traced, transforms, *rules_));
    ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(symbolic, *rules_));
    for (const int64_t rows : {0, 1, 2, 5}) {
      for (const int64_t columns : {0, 1, 3, 8}) {
        SCOPED_TRACE(absl::StrCat(rows, " x ", columns));
        const DimSubstitution values = {
            {"B", Dim(rows)}, {"n", Dim(columns)}, {"batch", Dim(2)}};
        ASSERT_OK_AND_ASSIGN(
            const Graph concrete,
            Transformed(*SubstituteDims(traced, values), transforms, *rules_));
        const Graph bound = *SubstituteDims(symbolic, values);
        std::vector<Tensor> inputs;
        for (const NamedValue& input : bound.inputs()) {
          inputs.push_back(Draw(bound.type(input.value)));
        }
        // A batch of its own in the one traced at numbers, of the same extent.
        const Graph wanted = *SubstituteDims(concrete, values);
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                             Interpret(wanted, inputs));
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> interpreted,
                             Interpret(symbolic, inputs));
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> compiled,
                             kernel.Run(inputs));
        ExpectNear(want, interpreted);
        ExpectNear(want, compiled);
      }
    }
  }

  static void ExpectNear(const std::vector<Tensor>& want,
                         const std::vector<Tensor>& got) {
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i].shape(), got[i].shape());
      double largest = 1;
      for (int64_t k = 0; k < want[i].size(); ++k) {
        const double value = std::fabs(want[i].GetDouble(k));
        if (std::isfinite(value)) largest = std::max(largest, value);
      }
      for (int64_t k = 0; k < want[i].size(); ++k) {
        EXPECT_THAT(got[i].GetDouble(k),
                    ::testing::NanSensitiveDoubleNear(want[i].GetDouble(k),
                                                      1e-11 * largest))
            << i << " at " << k;
      }
    }
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ =
      LoadTestRules(context_, kFunctions, {"core", "numerics"});
};

TEST_F(SymbolicDimsTest, OneTraceServesAllExtents) {
  for (const char* name :
       {"softmaxed", "normalized", "activated", "attended", "multiplied",
        "moved", "spread", "scattered", "recurrent", "summed_up"}) {
    for (const char* transforms : {"", "j", "v", "b", "bv", "vb", "vj"}) {
      ExpectSame(name, transforms);
    }
  }
}

TEST_F(SymbolicDimsTest, ExtentsAreAssertedAtEachRun) {
  for (const char* transforms : {"", "j", "v", "b"}) {
    SCOPED_TRACE(transforms);
    ASSERT_OK_AND_ASSIGN(const Graph traced, rules_->Function("asserted"));
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         Transformed(traced, transforms, *rules_));
    ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(graph, *rules_));
    for (const int64_t n : {0, 1, 2, 3}) {
      const Graph bound =
          *SubstituteDims(graph, {{"n", Dim(n)}, {"batch", Dim(3)}});
      std::vector<Tensor> inputs;
      for (const NamedValue& input : bound.inputs()) {
        inputs.push_back(Draw(bound.type(input.value)));
      }
      for (const absl::Status& status :
           {Interpret(graph, inputs).status(), kernel.Run(inputs).status()}) {
        if (n % 2 == 0) {
          EXPECT_THAT(status, IsOk());
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
          EXPECT_THAT(status.message(), HasSubstr("n must be even"));
        }
      }
    }
  }
}

TEST_F(SymbolicDimsTest, ExtentsAreRebound) {
  ASSERT_OK_AND_ASSIGN(const Graph traced, rules_->Function("renamed"));
  ASSERT_OK_AND_ASSIGN(const Graph graph, Transformed(traced, "v", *rules_));
  ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(graph, *rules_));
  const auto run = [&](int64_t n, int64_t m) {
    const Tensor x(DType::kF64, {n});
    const Tensor w(DType::kF64, {m, 2});
    return std::vector<absl::Status>{Interpret(graph, {x, w, w}).status(),
                                     kernel.Run({x, w, w}).status()};
  };
  for (const absl::Status& status : run(6, 3)) EXPECT_THAT(status, IsOk());
  for (const absl::Status& status : run(6, 2)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

// Extents of two names that must agree: what is spread from one to the other is
// not summed in reverse.
TEST_F(SymbolicDimsTest, ExtentsThatAgreeAreOne) {
  ASSERT_OK_AND_ASSIGN(const Graph traced, rules_->Function("paired"));
  ASSERT_OK_AND_ASSIGN(const Graph graph, Transformed(traced, "v", *rules_));
  for (const int64_t n : {0, 1, 3}) {
    const Tensor x = Draw({DType::kF64, {Dim(n)}});
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                         Interpret(graph, {x, x, x}));
    Tensor square(DType::kF64, {n});
    for (int64_t i = 0; i < n; ++i) {
      square.SetDouble(i, x.GetDouble(i) * x.GetDouble(i));
    }
    ExpectNear({square, square, square}, outputs);
  }
}

// A batch that no input has for an axis is known to the caller alone.
TEST_F(SymbolicDimsTest, WhatNoInputDeterminesIsAnError) {
  GraphBuilder builder(context_);
  const Value key = builder.Input("key", {DType::kKey, {}});
  const Value drawn = builder.Apply(
      Primitive::kRandomUniform, {key},
      {{"shape", StaticValue::Dims({Dim(2)})}, {"dtype", DType::kF64}});
  const Graph graph = *std::move(builder).Build({{"y", drawn}});
  Tensor seed(DType::kKey, {});
  ASSERT_OK_AND_ASSIGN(const Graph open,
                       Vmap(graph, {kSplit}, Dim::Variable("B"), {0}, *rules_));
  const absl::Status status = Interpret(open, {seed}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("B"));
  ASSERT_OK_AND_ASSIGN(const Graph fixed,
                       Vmap(graph, {kSplit}, Dim(3), {0}, *rules_));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> drawn_three,
                       Interpret(fixed, {seed}));
  EXPECT_EQ(drawn_three[0].shape(), (std::vector<int64_t>{3, 2}));
}

}  // namespace
}  // namespace cleave
