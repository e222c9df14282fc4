#include "engine/eager/trace_scope.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/eager/call.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

cleave::Tensor Floats(std::vector<int64_t> shape, std::vector<double> values) {
  return cleave::Tensor::FromDoubles(DType::kF32, std::move(shape), values);
}

class TraceScopeTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
};

TEST_F(TraceScopeTest, RecordsWhatAFunctionDoes) {
  TraceScope trace(context_);
  const Tensor x = trace.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Tensor y = 2 * x + 0.5;
  EXPECT_TRUE(y.IsTraced());
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"y", out}}));
  ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                       Interpret(graph, {Floats({2}, {1, 3})}));
  EXPECT_TRUE(SameValue(results[0], Floats({2}, {2.5, 6.5})));
}

TEST_F(TraceScopeTest, WritesThroughViewsAreSeenByAllOfTheStorage) {
  TraceScope trace(context_);
  Tensor x = trace.Input("x", {DType::kF32, {2, 3}});
  const Tensor before = x + 0;
  Tensor row = x[{1}];
  const Tensor flat = x.Reshape({6});
  row += 10;
  ASSERT_OK(x[{kAll, 0}].Assign(-1));
  EXPECT_TRUE(trace.IsMutated(x));
  EXPECT_TRUE(trace.IsMutated(row));
  EXPECT_TRUE(x.SharesStorage(flat));
  EXPECT_EQ(x.version(), 2);

  std::vector<NamedValue> outputs;
  for (const Tensor& tensor : {before, x, row, flat}) {
    ASSERT_OK_AND_ASSIGN(const Value value, trace.Read(tensor));
    outputs.push_back({"y" + std::to_string(outputs.size()), value});
  }
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish(std::move(outputs)));
  ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                       Interpret(graph, {Floats({2, 3}, {1, 2, 3, 4, 5, 6})}));
  EXPECT_TRUE(SameValue(results[0], Floats({2, 3}, {1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(SameValue(results[1], Floats({2, 3}, {-1, 2, 3, -1, 15, 16})));
  EXPECT_TRUE(SameValue(results[2], Floats({3}, {-1, 15, 16})));
  EXPECT_TRUE(SameValue(results[3], Floats({6}, {-1, 2, 3, -1, 15, 16})));
}

TEST_F(TraceScopeTest, TellsStorageAndViewOfATensor) {
  TraceScope trace(context_);
  const Tensor x = trace.Input("x", {DType::kF32, {4, 3}});
  const Tensor y = trace.Input("y", {DType::kF32, {4, 3}});
  const Tensor view = x.Transpose()[{{1, 3}}];
  EXPECT_EQ(view.storage_id(), x.storage_id());
  EXPECT_NE(view.storage_id(), y.storage_id());
  EXPECT_TRUE(view.IsView());
  EXPECT_FALSE(x.IsView());
  EXPECT_EQ(view.view(),
            *View(x.type()).Transpose({1, 0})->Slice({1, 0}, {2, 4}));
  EXPECT_TRUE(trace.Owns(view));
  EXPECT_FALSE(trace.IsMutated(x));
  // A view seen again from its base.
  EXPECT_EQ(view.Base().WithView(view.view()).type(), view.type());
}

TEST_F(TraceScopeTest, ConcreteTensorsAreCaptured) {
  const Tensor weight = Floats({3}, {1, 2, 3});
  const Tensor reversed = weight[{{kNone, kNone, -1}}];
  TraceScope trace(context_);
  const Tensor x = trace.Input("x", {DType::kF32, {3}});
  const Tensor y = x * weight + reversed;  // one storage, captured once
  ASSERT_EQ(trace.captured().size(), 1u);
  EXPECT_EQ(trace.captured()[0].tensor.storage_id(), weight.storage_id());
  EXPECT_TRUE(trace.IsCaptured(weight));
  EXPECT_FALSE(trace.IsCaptured(x));
  EXPECT_TRUE(trace.Owns(weight));
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"y", out}}));
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.inputs()[1].name, "captured0");
  ASSERT_OK_AND_ASSIGN(
      const std::vector<cleave::Tensor> results,
      Interpret(graph, {Floats({3}, {1, 1, 1}), Floats({3}, {1, 2, 3})}));
  EXPECT_TRUE(SameValue(results[0], Floats({3}, {4, 4, 4})));
}

TEST_F(TraceScopeTest, CapturedTensorsCannotBeWritten) {
  Tensor weight = Floats({3}, {1, 2, 3});
  TraceScope trace(context_);
  const absl::Status assigned = weight.Assign(0);
  EXPECT_THAT(assigned, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("from outside of a trace")));
  weight[{0}] += 1;
  EXPECT_THAT(trace.status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(weight.valid());  // it is as it was
  EXPECT_TRUE(SameValue(*weight.Concrete(), Floats({3}, {1, 2, 3})));
  EXPECT_THAT(std::move(trace).Finish({}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TraceScopeTest, TracedTensorsAreOfNoUseOutside) {
  Tensor y;
  {
    TraceScope trace(context_);
    y = trace.Input("x", {DType::kF32, {3}}) + 1;
    EXPECT_THAT(y.Concrete(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("has a type and no value")));
    EXPECT_EQ(y.ToString(), "traced f32[3]");
  }
  EXPECT_THAT(y.Item(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("outside of it")));
  TraceScope other(context_);
  const Tensor z = y + 1;
  EXPECT_THAT(z.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("outside of it")));
  EXPECT_THAT(y.Assign(1), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TraceScopeTest, NestedTracesCaptureTheOuterOnes) {
  TraceScope outer(context_);
  Tensor x = outer.Input("x", {DType::kF32, {2}});
  const Tensor doubled = x * 2;
  absl::StatusOr<Graph> graph;
  std::vector<Tensor> captured;
  {
    TraceScope inner(context_);
    const Tensor z = inner.Input("z", {DType::kF32, {2}});
    const Tensor sum = z + doubled[{{kNone, kNone, -1}}];
    EXPECT_THAT(x.Assign(0), StatusIs(absl::StatusCode::kFailedPrecondition));
    ASSERT_OK_AND_ASSIGN(const Value out, inner.Read(sum));
    for (const TraceScope::Captured& c : inner.captured()) {
      captured.push_back(c.tensor);
    }
    // The write that failed is remembered, though nobody looked at it.
    EXPECT_FALSE(inner.status().ok());
    EXPECT_FALSE(std::move(inner).Finish({{"y", out}}).ok());
  }
  ASSERT_EQ(captured.size(), 1u);
  EXPECT_EQ(captured[0].storage_id(), doubled.storage_id());
  ASSERT_OK(outer.status());
  // The outer trace goes on, with what the inner one captured.
  ASSERT_OK_AND_ASSIGN(const Value out, outer.Read(captured[0] + x));
  ASSERT_OK_AND_ASSIGN(graph, std::move(outer).Finish({{"y", out}}));
  ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                       Interpret(*graph, {Floats({2}, {1, 3})}));
  EXPECT_TRUE(SameValue(results[0], Floats({2}, {3, 9})));
}

TEST_F(TraceScopeTest, NamesOfInputsAreDistinct) {
  TraceScope trace(context_);
  const Tensor x = trace.Input("captured0", {DType::kF32, {2}});
  const Tensor weight = Floats({2}, {1, 2});
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(x + weight));
  EXPECT_EQ(trace.builder().graph().inputs()[1].name, "captured0_");
  EXPECT_TRUE(trace.Wrap(out).IsTraced());
  EXPECT_THAT(trace.Input("captured0", {DType::kF32, {2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(trace.status().ok());
}

TEST_F(TraceScopeTest, TheFirstMistakeIsKept) {
  TraceScope trace(context_);
  const Tensor x = trace.Input("x", {DType::kF32, {2}});
  const Tensor i = trace.Input("i", {DType::kI64, {2}});
  const Tensor wrong = x + i;
  EXPECT_FALSE(wrong.valid());
  const Tensor later = (wrong * 2)[{0}].Reshape({1});
  EXPECT_EQ(later.status(), wrong.status());
  EXPECT_EQ(trace.status(), wrong.status());
  EXPECT_THAT(trace.Read(later), StatusIs(wrong.status().code()));
}

TEST_F(TraceScopeTest, NothingGoesToAFinishedTrace) {
  TraceScope trace(context_);
  const Tensor x = trace.Input("x", {DType::kF32, {2}});
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(x));
  ASSERT_OK(std::move(trace).Finish({{"y", out}}));
  EXPECT_THAT((x + 1).status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("finished")));
  EXPECT_THAT(Zeros(DType::kF32, {2}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace cleave::functional
