#include "engine/eager/dim_scope.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

const Dim n = Dim::Variable("n");
const Dim m = Dim::Variable("m");

class DimScopeTest : public SessionTest {};

TEST_F(DimScopeTest, BindsWhatShapesDetermine) {
  DimScope scope;
  const Tensor x = Zeros(DType::kF32, {3, 4});
  const Tensor y = Zeros(DType::kF32, {9});
  ASSERT_OK(scope.Bind(x, {n, n + 1}));
  ASSERT_OK(scope.Bind(y, {n + 2 * m}, "y"));
  EXPECT_THAT(EvaluateDim(n * m), IsOkAndHolds(9));
  // A variable that has a value is checked.
  EXPECT_THAT(scope.Bind(y, {n * 2}, "y"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "axis 0 of y is 9, but must be 2*n, which is 6"));
  EXPECT_THAT(scope.Bind(x, {n}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "x has the shape [3, 4], but is declared [n]"));
  EXPECT_THAT(scope.Set("n", 5), StatusIs(absl::StatusCode::kInvalidArgument,
                                          "n is 5, but was 3 before"));
  EXPECT_THAT(scope.Set("k", -1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(DimScopeTest, SeveralTensorsAreMatchedAtOnce) {
  const Dim k = Dim::Variable("k");
  DimScope scope;
  // The first is determined by the others alone.
  ASSERT_OK(scope.BindAll({Zeros(DType::kF32, {12}), Zeros(DType::kF32, {3}),
                           Zeros(DType::kF32, {2})},
                          {{k * n * m}, {n}, {m}}));
  EXPECT_THAT(EvaluateDim(k), IsOkAndHolds(2));
  DimScope inner;
  EXPECT_THAT(inner.BindAll({Zeros(DType::kF32, {2, 2})}, {{m, m - 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("axis 1 of argument 0")));
  EXPECT_THAT(inner.BindAll({}, {{m}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(DimScopeTest, AFailedBindingBindsNothing) {
  DimScope scope;
  EXPECT_FALSE(scope.Bind(Zeros(DType::kF32, {3, 5}), {n, n + 1}).ok());
  EXPECT_THAT(ResolveDim(n), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(DimScopeTest, ScopesNestAndEnd) {
  DimScope outer;
  ASSERT_OK(outer.Set("n", 3));
  {
    DimScope inner;
    ASSERT_OK(inner.Set("n", 5));
    ASSERT_OK(inner.Set("m", 7));
    EXPECT_THAT(EvaluateDim(n + m), IsOkAndHolds(12));
  }
  EXPECT_THAT(EvaluateDim(n), IsOkAndHolds(3));
  EXPECT_THAT(EvaluateDim(n + m),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "`m + n` needs a value for m, which no DimScope binds"));
}

TEST_F(DimScopeTest, UnboundVariablesAreMistakesInEagerCode) {
  const Tensor x = Zeros(DType::kF32, {3, 4});
  for (const Tensor& y :
       {x.Reshape({n, 4}), x[{n}], x[{{0, n}}], x.BroadcastTo({n, 3, 4}),
        x.Slice({0, 0}, {n, 4}), Zeros(DType::kF32, {n}), Arange(n), x + n,
        CallOne("topk", {x}, {{"k", n}})}) {
    EXPECT_THAT(y.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("needs a value for n")));
  }
}

TEST_F(DimScopeTest, RequireNamesExpressionsAndValues) {
  DimScope scope;
  ASSERT_OK(scope.Set("n", 3));
  EXPECT_OK(scope.Require(2 * n, CompareOp::kGe, 6));
  EXPECT_THAT(scope.Require(2 * n, CompareOp::kGt, n + 3),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "2*n > n + 3 is required, but 2*n = 6 and n + 3 = 6"));
  EXPECT_FALSE(scope.Require(m, CompareOp::kEq, 0).ok());
  // Under a trace, what cannot be decided becomes a guard.
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF32, {m}});
  ASSERT_OK(scope.Require(m, CompareOp::kGe, n));
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(x));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"y", out}}));
  EXPECT_FALSE(Interpret(graph, {cleave::Tensor(DType::kF32, {2})}).ok());
  EXPECT_TRUE(Interpret(graph, {cleave::Tensor(DType::kF32, {3})}).ok());
}

TEST_F(DimScopeTest, VariablesAreBoundToExtentsOfATrace) {
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF32, {2 * m, 3}});
  DimScope scope;
  ASSERT_OK(scope.Bind(x, {n, Dim::Variable("k")}));
  EXPECT_THAT(ResolveDim(n + 1), IsOkAndHolds(2 * m + 1));
  EXPECT_EQ((x[{{0, n - 1}}].extent(0)), 2 * m - 1);
  EXPECT_THAT(EvaluateDim(n), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(scope.Bind(x, {n + 1, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("axis 0 of the tensor is 2*m, but must be "
                                 "n + 1 = 2*m + 1")));
}

// One expression in C++ and in rule text.
struct Expression {
  Dim dim;
  const char* rule;
};

// `Dim("x") + 1` means the same in eager code, in a trace that runs later, in a
// trace that is symbolic, and in a rule file.
TEST_F(DimScopeTest, OneMeaningInEagerCodeInTracesAndInRules) {
  const std::vector<Expression> expressions = {
      {n + 1, "n + 1"},
      {n * m - n, "n * m - n"},
      {Dim::FloorDiv(n + m, 2), "(n + m) // 2"},
      {Dim::Mod(7 * n + 3, m + 1), "(7 * n + 3) % (m + 1)"},
      {Dim::Max(n, m) + Dim::Min(n, 3), "max(n, m) + min(n, 3)"},
      {Dim::FloorDiv(-n - 1, 3), "(-n - 1) // 3"},
  };
  std::string text = "language 1\n";
  for (size_t i = 0; i < expressions.size(); ++i) {
    absl::StrAppend(&text, "\nop size", i, "(x: T[n, m]) -> T[n, m]\n",
                    "  where T: float\n  = x + (", expressions[i].rule, ")\n");
  }
  LoadResult loaded =
      ExtendRules(SharedRules(), NamedSource{"sizes.rules", text});
  ASSERT_NE(loaded.rules, nullptr) << loaded.diagnostics[0];
  Session session(loaded.rules, Options());
  const SessionScope session_scope(session);

  for (size_t i = 0; i < expressions.size(); ++i) {
    const Dim& dim = expressions[i].dim;
    SCOPED_TRACE(dim.ToString());
    // The same C++ function eagerly and under a trace.
    const auto function = [&](const Tensor& x) -> Tensor {
      DimScope scope;
      const absl::Status bound = scope.Bind(x, {n, m});
      return bound.ok() ? x + Tensor(dim) : Tensor::Invalid(bound);
    };
    absl::StatusOr<Graph> graph;
    {
      TraceScope trace(loaded.rules);
      const Tensor x = trace.Input(
          "x", {DType::kF32, {Dim::Variable("a"), Dim::Variable("b")}});
      ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(function(x)));
      graph = std::move(trace).Finish({{"y", out}});
    }
    ASSERT_OK(graph);
    ASSERT_OK_AND_ASSIGN(graph, Expand(*graph, *loaded.rules));
    for (const auto& [at_n, at_m] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 2}, {5, 9}}) {
      const cleave::Tensor x(DType::kF32, {at_n, at_m});
      ASSERT_OK_AND_ASSIGN(const int64_t value,
                           dim.Evaluate({{"n", at_n}, {"m", at_m}}));
      const Tensor expected =
          Full(DType::kF32, {at_n, at_m}, static_cast<double>(value));
      ExpectValue(function(x), expected);
      ExpectValue(CallOne(absl::StrCat("size", i), {x}), expected);
      ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                           Interpret(*graph, {x}));
      ExpectValue(results[0], expected);
    }
  }
}

// An expression counts from the front, eagerly and in a trace.
TEST_F(DimScopeTest, AnIndexDoesNotChangeItsMeaningWithItsSign) {
  DimScope scope;
  ASSERT_OK(scope.Set("n", 0));
  const Tensor x = Arange(5);
  EXPECT_THAT(x[{n - 1}].status(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("the index n - 1 is -1")));
  EXPECT_THAT((x[{{0, n - 1}}]).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
  ExpectValue((x[{{n, n + 2}}]), Ints({2}, {0, 1}));
  TraceScope trace(SharedRules());
  const Tensor y = trace.Input("y", {DType::kF32, {m}});
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y[{{0, m - 2}}]));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"z", out}}));
  EXPECT_FALSE(Interpret(graph, {cleave::Tensor(DType::kF32, {1})}).ok());
  ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                       Interpret(graph, {cleave::Tensor(DType::kF32, {5})}));
  EXPECT_EQ(results[0].shape(), std::vector<int64_t>{3});
}

// In shapes, slice bounds and attributes, too.
TEST_F(DimScopeTest, ResolvesWhereverADimIsTaken) {
  DimScope scope;
  const Tensor x =
      cleave::Tensor::FromDoubles(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_OK(scope.Bind(x, {n, n + 1}));
  EXPECT_EQ(x.Reshape({n * (n + 1)}).shape(), Shape{6});
  ExpectValue(x[{n - 1, {0, n}}], Floats({2}, {4, 5}));
  EXPECT_EQ(x.BroadcastTo({2 * n, n, 3}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(Zeros(DType::kF32, {n, m - m}).shape(), (Shape{2, 0}));
  ExpectValue(Arange(n + 1), Ints({3}, {0, 1, 2}));
  ExpectValue(Full(DType::kF32, {}, Tensor(n + 1)), Floats({}, {3}));
  const auto top = Call("topk", {x}, {{"k", n}, {"axis", 1}});
  ASSERT_OK(top);
  ExpectValue(*(*top)[0], Floats({2, 2}, {3, 2, 6, 5}));
}

}  // namespace
}  // namespace cleave::functional
