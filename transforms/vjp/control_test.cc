// Loops and branches whose examples part ways: batched and differentiated, they
// are the loop over the examples, with nothing from what an example does not do
// in its values or derivatives, nor failing for it.

#include <cmath>
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
#include "transforms/testing/test_rules.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kFunctions[] = R"(language 1

fn root(x: f64[]) -> f64[] = cond(x > 0) { sqrt(x) } else { 2 * x }

fn logarithm(x: f64[]) -> f64[] = cond(x > 0) { log(x) } else { x }

fn reciprocal(x: f64[]) -> f64[] = cond(x == 0) { x } else { 1 / x }

fn powers(x: f64[], w: f64[]) -> f64[] = cond(x > 1) { w^x } else { w / x }

fn shared(x: f64[], w: f64[2]) -> f64[2] = cond(x > 0) { w / x } else { w * x }

fn both(x: f64[2], y: f64[2]) -> (a: f64[2], b: f64[2])
{
  cond(reduce_all(x > y, axes: [0], keepdims: false)) {
    (a = sqrt(x - y), b = x)
  } else {
    (a = x * y, b = y)
  }
}

fn quotient(n: i64[], m: i64[]) -> i64[] = cond(m != 0) { n // m } else { n }

fn picked(x: f64[3], at: i64[]) -> f64[]
{
  cond(at < 3) { x[at] } else { 0.0 * sum[i](x[i]) }
}

fn iterated(x: f64[], n: i64[]) -> f64[]
{
  cond(n > 0) { while(y = x, k = n) k != 0 max 4 { (y = sin(y), k = k - 1) }.y } else { x }
}

/// The steps divide by what is left, which is 0 at the end.
fn divided(x: f64[], n: i64[]) -> (x: f64[], m: i64[])
{
  let r = while(x = x, k = n, m = 0) k > 0 {
    (x = x / sqrt(convert(k, dtype: f64)), k = k - 1, m = m + 12 // k)
  }
  (x = r.x, m = r.m)
}

/// Each step is infinitely steep at 0, where the loop ends.
fn descended(x: f64[], w: f64[]) -> (x: f64[], y: f64[])
{
  let r = while(x = x, y = 1) x > 0 max 9 { (x = x - 1, y = w * y * sqrt(x)) }
  (x = r.x, y = r.y)
}

fn halved(x: f64[], limit: f64[]) -> f64[] = while(x = x) x > limit max 5 { (x = x / 2) }.x

fn forever(x: f64[]) -> f64[] = cond(x > 0) { while(y = x) y == x { (y = y) }.y } else { -x }

fn scaled(xs: f64[3, 2], k: f64[]) -> (xs: f64[3, 2], sums: f64[3])
{
  map(x in xs) { (xs = exp(k * x), sums = k * sum[i](x[i])) }
}
)";

Tensor F64(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF64, std::move(shape), values);
}

Tensor I64(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return Tensor::FromInts(DType::kI64, std::move(shape), values);
}

// Row `at` along axis 0.
Tensor Row(const Tensor& x, int64_t at) {
  const std::vector<int64_t> shape(x.shape().begin() + 1, x.shape().end());
  Tensor row(x.dtype(), shape);
  for (int64_t i = 0; i < row.size(); ++i) {
    if (IsFloat(x.dtype())) {
      row.SetDouble(i, x.GetDouble(at * row.size() + i));
    } else {
      row.SetInt(i, x.GetInt(at * row.size() + i));
    }
  }
  return row;
}

class ControlTest : public ::testing::Test {
 protected:
  Graph Function(absl::string_view name) {
    absl::StatusOr<Graph> graph = rules_->Function(name);
    EXPECT_THAT(graph, IsOk());
    graph = Expand(*graph, *rules_);
    EXPECT_THAT(graph, IsOk());
    return *std::move(graph);
  }

  std::vector<bool> Inexact(const Graph& graph) {
    std::vector<bool> active;
    for (const NamedValue& input : graph.inputs()) {
      active.push_back(IsFloat(graph.type(input.value).dtype));
    }
    return active;
  }

  // f differentiated `orders` times, in all that can be.
  Graph Derivative(Graph graph, int orders) {
    for (int i = 0; i < orders; ++i) {
      absl::StatusOr<JvpResult> jvp = Jvp(graph, Inexact(graph), *rules_);
      EXPECT_THAT(jvp, IsOk()) << PrintGraph(graph);
      if (!jvp.ok()) return Graph();
      EXPECT_THAT(Verify(jvp->graph), IsOk());
      graph = std::move(jvp->graph);
    }
    return graph;
  }

  Graph Batched(const Graph& graph, const std::vector<int>& axes) {
    absl::StatusOr<Graph> batched =
        Vmap(graph, axes, Dim::Variable("batch"),
             std::vector<int>(graph.outputs().size(), 0), *rules_);
    EXPECT_THAT(batched, IsOk()) << PrintGraph(graph);
    if (!batched.ok()) return Graph();
    EXPECT_THAT(Verify(*batched), IsOk());
    return *std::move(batched);
  }

  // vmap and jvp in either order, to second order, against the derivative of
  // each example alone, bit by bit. `axes` is 0 or kNotMapped per input; all
  // tangents are 1 + i / 8.
  void ExpectLoop(absl::string_view name, const std::vector<int>& axes,
                  std::vector<Tensor> inputs) {
    SCOPED_TRACE(std::string(name));
    const Graph function = Function(name);
    int64_t batch = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == 0) batch = inputs[i].shape()[0];
    }
    for (int orders = 0; orders <= 2; ++orders) {
      const Graph one = Derivative(function, orders);
      std::vector<int> all_axes = axes;
      std::vector<Tensor> arguments = inputs;
      for (int order = 0; order < orders; ++order) {
        const size_t count = arguments.size();
        for (size_t i = 0; i < count; ++i) {
          if (!IsFloat(arguments[i].dtype())) continue;
          Tensor tangent(arguments[i].dtype(), arguments[i].shape());
          for (int64_t k = 0; k < tangent.size(); ++k) {
            tangent.SetDouble(k, 1 + static_cast<double>(k) / 8);
          }
          arguments.push_back(std::move(tangent));
          all_axes.push_back(all_axes[i]);
        }
      }
      const Graph graphs[] = {Batched(one, all_axes),
                              Derivative(Batched(function, axes), orders)};
      for (const Graph& graph : graphs) {
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                             Interpret(graph, arguments));
        for (int64_t n = 0; n < batch; ++n) {
          std::vector<Tensor> rows;
          for (size_t i = 0; i < arguments.size(); ++i) {
            rows.push_back(all_axes[i] == 0 ? Row(arguments[i], n)
                                            : arguments[i]);
          }
          ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                               Interpret(one, rows));
          ASSERT_EQ(got.size(), expected.size());
          for (size_t j = 0; j < got.size(); ++j) {
            EXPECT_TRUE(SameValue(Row(got[j], n), expected[j]))
                << "order " << orders << ", example " << n << ", output " << j
                << ": " << Row(got[j], n).ToString() << ", not "
                << expected[j].ToString() << "\n"
                << PrintGraph(graph);
          }
        }
      }
    }
  }

  Graph Reverse(const Graph& graph) {
    absl::StatusOr<VjpResult> vjp = Vjp(graph, Inexact(graph), *rules_);
    EXPECT_THAT(vjp, IsOk()) << PrintGraph(graph);
    if (!vjp.ok()) return Graph();
    EXPECT_THAT(Verify(vjp->graph), IsOk());
    return std::move(vjp->graph);
  }

  // Near, or the same infinity or NaN.
  static void ExpectNear(const Tensor& got, const Tensor& expected) {
    ASSERT_EQ(got.shape(), expected.shape());
    for (int64_t i = 0; i < got.size(); ++i) {
      if (!IsFloat(got.dtype())) {
        EXPECT_EQ(got.GetInt(i), expected.GetInt(i));
        continue;
      }
      const double x = got.GetDouble(i);
      const double y = expected.GetDouble(i);
      const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                        std::fabs(x - y) <= 1e-12 * std::fmax(1, std::fabs(y));
      EXPECT_TRUE(same) << got.ToString() << ", not " << expected.ToString();
    }
  }

  // The same in reverse mode: vjp of vmap, and vmap of vjp, against the vjp of
  // each example; what the examples share has the sum of its cotangents. All
  // cotangents are 1.
  void ExpectLoopInReverse(absl::string_view name, const std::vector<int>& axes,
                           std::vector<Tensor> inputs) {
    SCOPED_TRACE(absl::StrCat(name, " in reverse"));
    const Graph function = Function(name);
    const Graph one = Reverse(function);
    const Graph batched = Batched(function, axes);
    const Graph batched_first = Reverse(batched);
    int64_t batch = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == 0) batch = inputs[i].shape()[0];
    }
    std::vector<int> all_axes = axes;
    for (size_t i = axes.size(); i < one.inputs().size(); ++i) {
      const TensorType& type = one.type(one.inputs()[i].value);
      std::vector<int64_t> shape = {batch};
      for (const Dim& d : type.shape) shape.push_back(*d.Value());
      Tensor cotangent(type.dtype, shape);
      for (int64_t k = 0; k < cotangent.size(); ++k) cotangent.SetDouble(k, 1);
      inputs.push_back(std::move(cotangent));
      all_axes.push_back(0);
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> first,
                         Interpret(batched_first, inputs));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> last,
                         Interpret(Batched(one, all_axes), inputs));
    std::vector<Tensor> sums;
    for (int64_t n = 0; n < batch; ++n) {
      std::vector<Tensor> rows;
      for (size_t i = 0; i < inputs.size(); ++i) {
        rows.push_back(all_axes[i] == 0 ? Row(inputs[i], n) : inputs[i]);
      }
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                           Interpret(one, rows));
      if (sums.empty()) sums = expected;
      size_t active = function.outputs().size();
      for (size_t i = 0; i < axes.size(); ++i) {
        if (!IsFloat(inputs[i].dtype())) continue;
        const size_t at = active++;
        SCOPED_TRACE(absl::StrCat("example ", n, ", input ", i));
        ExpectNear(Row(last[at], n), expected[at]);
        if (axes[i] == 0) {
          ExpectNear(Row(first[at], n), expected[at]);
        } else if (n > 0) {
          for (int64_t k = 0; k < sums[at].size(); ++k) {
            sums[at].SetDouble(
                k, sums[at].GetDouble(k) + expected[at].GetDouble(k));
          }
        }
        if (axes[i] != 0 && n == batch - 1) ExpectNear(first[at], sums[at]);
      }
    }
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kFunctions);
};

TEST_F(ControlTest, NothingLeaksFromABranchThatIsNotTaken) {
  const Tensor points = F64({5}, {4, 0, -1, 0.25, -INFINITY});
  ExpectLoop("root", {0}, {points});
  ExpectLoop("logarithm", {0}, {points});
  ExpectLoop("reciprocal", {0}, {points});
  ExpectLoop("root", {0}, {F64({2}, {0, -1})});  // none takes it
  ExpectLoop("root", {0}, {F64({0}, {})});
  ExpectLoop("powers", {0, 0}, {F64({3}, {2, 1, 0.5}), F64({3}, {3, -2, 0})});
  ExpectLoop("powers", {0, kNotMapped}, {F64({2}, {2, 0.5}), F64({}, {-3})});
  ExpectLoop("shared", {0, kNotMapped},
             {F64({3}, {2, 0, -1}), F64({2}, {3, 0})});
  ExpectLoop("shared", {0, 0},
             {F64({3}, {2, 0, -1}), F64({3, 2}, {3, 0, 1, 2, 5, 6})});
  ExpectLoop(
      "both", {0, 0},
      {F64({3, 2}, {3, 4, 1, 1, 5, 0}), F64({3, 2}, {1, 2, 1, 5, 4, 4})});
  ExpectLoop("both", {kNotMapped, 0},
             {F64({2}, {3, 4}), F64({3, 2}, {1, 2, 3, 5, 3, 4})});
}

TEST_F(ControlTest, NothingFailsForABranchThatIsNotTaken) {
  ExpectLoop("quotient", {0, 0}, {I64({3}, {7, 8, 9}), I64({3}, {2, 0, 3})});
  ExpectLoop("quotient", {kNotMapped, 0}, {I64({}, {7}), I64({2}, {0, 0})});
  ExpectLoop("picked", {0, 0},
             {F64({2, 3}, {1, 2, 3, 4, 5, 6}), I64({2}, {2, 3})});
  ExpectLoop("picked", {kNotMapped, 0},
             {F64({3}, {1, 2, 3}), I64({2}, {3, 4})});
  // -1 would take more steps than the loop may.
  ExpectLoop("iterated", {0, 0}, {F64({3}, {1, 2, 3}), I64({3}, {4, -1, 1})});
  // Would not end.
  ExpectLoop("forever", {0}, {F64({2}, {-1, -2})});
}

TEST_F(ControlTest, FinishedExamplesKeepTheirCarries) {
  ExpectLoop("divided", {0, 0}, {F64({3}, {1, 2, 3}), I64({3}, {3, 0, 1})});
  ExpectLoop("divided", {0, kNotMapped}, {F64({2}, {1, 2}), I64({}, {2})});
  ExpectLoop("divided", {kNotMapped, 0}, {F64({}, {2}), I64({3}, {-1, 4, 0})});
  ExpectLoop("divided", {0, 0}, {F64({0}, {}), I64({0}, {})});
  ExpectLoop("descended", {0, kNotMapped},
             {F64({4}, {3, 0, 1, 2}), F64({}, {2})});
  ExpectLoop("descended", {0, 0},
             {F64({4}, {3.5, 0, 1.5, 2.5}), F64({4}, {2, 3, 4, 5})});
  ExpectLoop("halved", {0, 0}, {F64({3}, {8, 1, 3}), F64({3}, {1, 1, 1})});
  ExpectLoop("halved", {kNotMapped, 0}, {F64({}, {8}), F64({2}, {1, 4})});
}

// Each of the two batches parts ways.
TEST_F(ControlTest, NestedBatches) {
  const std::pair<const char*, std::vector<Tensor>> cases[] = {
      {"root", {F64({2, 3}, {4, 0, -1, 0, -2, -3})}},
      {"quotient", {I64({2, 2}, {7, 8, 9, 10}), I64({2, 2}, {2, 0, 0, 0})}},
      {"divided", {F64({2, 2}, {1, 2, 3, 4}), I64({2, 2}, {2, 1, 0, 0})}}};
  for (const auto& [name, inputs] : cases) {
    SCOPED_TRACE(name);
    const Graph one = Function(name);
    const std::vector<int> axes(inputs.size(), 0);
    const Graph once = Batched(one, axes);
    absl::StatusOr<Graph> twice =
        Vmap(once, axes, Dim::Variable("outer"),
             std::vector<int>(once.outputs().size(), 0), *rules_);
    ASSERT_THAT(twice, IsOk());
    ASSERT_THAT(Verify(*twice), IsOk());
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Interpret(*twice, inputs));
    for (int64_t n = 0; n < inputs[0].shape()[0]; ++n) {
      for (int64_t m = 0; m < inputs[0].shape()[1]; ++m) {
        std::vector<Tensor> rows;
        for (const Tensor& input : inputs)
          rows.push_back(Row(Row(input, n), m));
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                             Interpret(one, rows));
        for (size_t j = 0; j < got.size(); ++j) {
          EXPECT_TRUE(SameValue(Row(Row(got[j], n), m), expected[j]))
              << n << ", " << m << ": " << Row(Row(got[j], n), m).ToString()
              << ", not " << expected[j].ToString();
        }
      }
    }
  }
}

TEST_F(ControlTest, NothingLeaksInReverse) {
  const Tensor points = F64({5}, {4, 0, -1, 0.25, -INFINITY});
  ExpectLoopInReverse("root", {0}, {points});
  ExpectLoopInReverse("logarithm", {0}, {points});
  ExpectLoopInReverse("reciprocal", {0}, {points});
  ExpectLoopInReverse("root", {0}, {F64({2}, {0, -1})});
  ExpectLoopInReverse("root", {0}, {F64({0}, {})});
  ExpectLoopInReverse("powers", {0, 0},
                      {F64({3}, {2, 1, 0.5}), F64({3}, {3, -2, 0})});
  ExpectLoopInReverse("powers", {0, kNotMapped},
                      {F64({2}, {2, 0.5}), F64({}, {-3})});
  ExpectLoopInReverse("shared", {0, kNotMapped},
                      {F64({3}, {2, 0, -1}), F64({2}, {3, 0})});
  // No example takes the branch that divides by x.
  ExpectLoopInReverse("shared", {0, kNotMapped},
                      {F64({2}, {0, -1}), F64({2}, {3, 0})});
  ExpectLoopInReverse(
      "both", {0, 0},
      {F64({3, 2}, {3, 4, 1, 1, 5, 0}), F64({3, 2}, {1, 2, 1, 5, 4, 4})});
  ExpectLoopInReverse("both", {kNotMapped, 0},
                      {F64({2}, {3, 4}), F64({3, 2}, {1, 2, 3, 5, 3, 4})});
  ExpectLoopInReverse("picked", {0, 0},
                      {F64({2, 3}, {1, 2, 3, 4, 5, 6}), I64({2}, {2, 3})});
  ExpectLoopInReverse("picked", {kNotMapped, 0},
                      {F64({3}, {1, 2, 3}), I64({2}, {3, 4})});
  ExpectLoopInReverse("iterated", {0, 0},
                      {F64({3}, {1, 2, 3}), I64({3}, {4, -1, 1})});
}

TEST_F(ControlTest, ALoopWithABoundInReverse) {
  ExpectLoopInReverse("descended", {0, kNotMapped},
                      {F64({4}, {3.5, 0, 1.5, 2.5}), F64({}, {2})});
  ExpectLoopInReverse("descended", {0, 0},
                      {F64({4}, {3.5, 0, 1.5, 2.5}), F64({4}, {2, 3, 4, 5})});
  ExpectLoopInReverse("halved", {0, 0},
                      {F64({3}, {8, 1, 3}), F64({3}, {1, 1, 1})});
  ExpectLoopInReverse("halved", {kNotMapped, 0},
                      {F64({}, {8}), F64({2}, {1, 4})});
  ExpectLoopInReverse(
      "scaled", {0, kNotMapped},
      {F64({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), F64({}, {0.5})});
  const Graph reverse = Reverse(Function("halved"));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(reverse, {F64({}, {8}), F64({}, {1.5}), F64({}, {1})}));
  EXPECT_EQ(results[1].ToString(), F64({}, {0.125}).ToString());
  EXPECT_THAT(Interpret(reverse, {F64({}, {64}), F64({}, {1}), F64({}, {1})}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("`while`")));
}

TEST_F(ControlTest, ALoopWithoutABoundHasNoReverse) {
  const Graph function = Function("divided");
  EXPECT_THAT(Vjp(function, Inexact(function), *rules_),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("impossible: unbounded loop in reverse")));
}

TEST_F(ControlTest, ABoundHoldsForEachExample) {
  const Graph batched = Batched(Function("halved"), {0, 0});
  EXPECT_THAT(Interpret(batched, {F64({2}, {32, 2}), F64({2}, {1, 1})}),
              IsOk());
  EXPECT_THAT(
      Interpret(batched, {F64({2}, {1, 33}), F64({2}, {1, 1})}),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("after 5 steps")));
}

TEST_F(ControlTest, AMapIsAScanThatCarriesNothing) {
  const Graph function = Function("scaled");
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      Interpret(function, {F64({3, 2}, {0, 1, 0, 0, -1, 0}), F64({}, {0})}));
  EXPECT_EQ(results[0].ToString(), F64({3, 2}, {1, 1, 1, 1, 1, 1}).ToString());
  ExpectLoop(
      "scaled", {0, kNotMapped},
      {F64({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), F64({}, {0.5})});
  ExpectLoop("scaled", {kNotMapped, 0},
             {F64({3, 2}, {0, 1, 2, 3, 4, 5}), F64({2}, {0.5, -1})});
  int scans = 0;
  for (uint32_t id = 0; id < function.size(); ++id) {
    if (function.node(Value{id}).op != ToOpId(Primitive::kScan)) continue;
    ++scans;
    EXPECT_EQ(function.attributes(Value{id}).GetInt("carries"), 0);
  }
  EXPECT_EQ(scans, 1);
}

}  // namespace
}  // namespace cleave
