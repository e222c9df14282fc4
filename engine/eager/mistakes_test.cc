// A caller's mistake is a status or an invalid value, and never the end of the
// process; a write that is refused leaves the data as it was.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/eager/atomic.h"
#include "engine/eager/call.h"
#include "engine/eager/core_ops.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/lift.h"
#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

class MistakesTest : public SessionTest {};

TEST_F(MistakesTest, TheFirstMistakeIsTheOneThatIsTold) {
  const Tensor x = Ones(DType::kF32, {2, 3});
  const Tensor z = Matmul(x, x);
  EXPECT_FALSE(z.valid());
  EXPECT_EQ(z.type(), (TensorType{DType::kF32, {}}));
  EXPECT_EQ(z.dtype(), DType::kF32);
  EXPECT_EQ(z.rank(), 0);
  EXPECT_TRUE(z.shape().empty());
  EXPECT_EQ(z.extent(0).status(), z.status());
  EXPECT_EQ(z.Base().status(), z.status());
  const Shape shape = {z.extent(0) * z.extent(1)};
  EXPECT_EQ(z.Reshape(shape).status(), z.status());
  // So too where the extents of what is no tensor meet one that is.
  EXPECT_EQ(x.Reshape(shape).status(), z.status());
  EXPECT_EQ(x.BroadcastTo({z.extent(0), 2, 3}).status(), z.status());
  EXPECT_EQ(x.Slice({0, 0}, {z.extent(0), 1}).status(), z.status());
  EXPECT_EQ((x[{z.extent(0)}]).status(), z.status());
  EXPECT_EQ((x[{{z.extent(0), kNone}}]).status(), z.status());
  EXPECT_EQ(Zeros(DType::kF32, shape).status(), z.status());
  EXPECT_EQ(Arange(z.extent(0)).status(), z.status());
  EXPECT_EQ((x / z.extent(0)).status(), z.status());
  EXPECT_EQ(Tensor(z.extent(1)).status(), z.status());
  EXPECT_THAT(
      std::string(
          CallOne("iota", {}, {{"size", z.extent(0)}}).status().message()),
      ::testing::HasSubstr("the contracted extents differ"));
  DimScope dims;
  EXPECT_EQ(dims.Bind(x, {z.extent(0), 3}), z.status());
  EXPECT_EQ(dims.Set("n", z.extent(0)), z.status());
  EXPECT_EQ(dims.Require(z.extent(0), CompareOp::kEq, 2), z.status());
}

TEST_F(MistakesTest, AxesThatAreNotThereHaveInvalidExtents) {
  const Tensor x = Ones(DType::kF32, {2, 3});
  EXPECT_EQ(x.extent(-1), Dim(3));
  for (const int axis : {2, -3, 9, std::numeric_limits<int>::min()}) {
    EXPECT_THAT(
        x.extent(axis).status(),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("there is no axis")));
  }
  EXPECT_THAT(Tensor(3).extent(0).status(), StatusIs(kInvalid));
  EXPECT_THAT(Tensor(3).Base().status(), StatusIs(kInvalid));
  EXPECT_EQ(Tensor(3).rank(), 0);
  EXPECT_FALSE(Tensor::Invalid(absl::OkStatus()).status().ok());
}

TEST_F(MistakesTest, ConcreteTensorsAndNumbersThatAreMistakesStayThem) {
  const Tensor wrong = cleave::Tensor(DType::kF32, {-1});
  EXPECT_THAT(wrong.status(), StatusIs(kInvalid, HasSubstr("negative")));
  const Tensor count = cleave::Tensor::FromDoubles(DType::kF32, {2}, {1});
  EXPECT_THAT((count + 1).status(), StatusIs(kInvalid, HasSubstr("1 values")));
  const Tensor x = Ones(DType::kF32, {2});
  EXPECT_THAT(LeakyRelu(x, Number("abc")).status(),
              StatusIs(kInvalid, HasSubstr("abc")));
  EXPECT_FALSE(LeakyRelu(x, Number(nullptr)).valid());
  EXPECT_FALSE(
      LeakyRelu(x, Number(std::numeric_limits<uint64_t>::max())).valid());
  EXPECT_THAT((x + Tensor(Dim("3x"))).status(),
              StatusIs(kInvalid, HasSubstr("3x")));
  // The greatest number of 64 bits is no index from the end.
  EXPECT_THAT(x[{std::numeric_limits<uint64_t>::max()}].status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(MistakesTest, PrimitivesWithoutTheirOperandsAreMistakes) {
  for (const char* op : {"nonzero", "neg", "add", "select", "reduce_sum"}) {
    EXPECT_FALSE(CallOne(op, {}).valid()) << op;
  }
}

// Shapes that views may have, and no tensor.
TEST_F(MistakesTest, HugeViewsAreRefusedWhereTheyAreRead) {
  const int64_t huge = int64_t{1} << 40;
  const Tensor wide = Ones(DType::kI64, {1}).BroadcastTo({huge, huge});
  const Tensor x = Ones(DType::kF32, {2});
  EXPECT_FALSE(x[{wide}].valid());
  EXPECT_FALSE((wide + 1).valid());
  EXPECT_FALSE(wide.Concrete().ok());
  EXPECT_FALSE(wide.Reshape({-1}).valid());
}

TEST_F(MistakesTest, ScopesMayEndInAnyOrder) {
  Session other(SharedRules(), Options());
  const Tensor x = Ones(DType::kF32, {2});
  auto outer = std::make_unique<SessionScope>(other);
  auto inner = std::make_unique<SessionScope>(session_);
  EXPECT_EQ(CurrentSession(), &session_);
  outer.reset();
  EXPECT_EQ(CurrentSession(), &session_);
  EXPECT_TRUE((x + 1).valid());
  inner.reset();
  EXPECT_EQ(CurrentSession(), &session_);  // that of the test

  auto n = std::make_unique<DimScope>();
  auto m = std::make_unique<DimScope>();
  ASSERT_OK(n->Set("n", 2));
  ASSERT_OK(m->Set("m", 3));
  n.reset();
  EXPECT_THAT(EvaluateDim(Dim("m")), IsOkAndHolds(3));
  EXPECT_FALSE(EvaluateDim(Dim("n")).ok());
  EXPECT_THAT(m->Set("3x", 1), StatusIs(kInvalid));

  auto a = std::make_unique<TraceScope>(SharedRules());
  const Tensor of_a = a->Input("x", {DType::kF32, {2}});
  auto b = std::make_unique<TraceScope>(SharedRules());
  a.reset();
  EXPECT_TRUE(InTrace());
  const Tensor of_b = b->Input("x", {DType::kF32, {2}});
  EXPECT_TRUE((of_b + 1).valid());
  EXPECT_THAT((of_a + 1).status(), StatusIs(kPrecondition));
  b.reset();
  EXPECT_FALSE(InTrace());
  EXPECT_THAT((of_b + 1).status(), StatusIs(kPrecondition));
  EXPECT_TRUE((x + 1).valid());
}

TEST_F(MistakesTest, ScopesMayEndOnAnotherThread) {
  auto scope = std::make_unique<SessionScope>(session_);
  auto dims = std::make_unique<DimScope>();
  auto trace = std::make_unique<TraceScope>(SharedRules());
  std::thread([&] {
    EXPECT_EQ(CurrentSession(), nullptr);
    trace.reset();
    dims.reset();
    scope.reset();
  }).join();
  EXPECT_FALSE(InTrace());
  EXPECT_TRUE((Ones(DType::kF32, {2}) + 1).valid());
}

TEST_F(MistakesTest, ASessionMayEndBeforeItsScopeAndItsTensors) {
  auto session = std::make_unique<Session>(SharedRules(), Options());
  const SessionScope scope(*session);
  Tensor x = Ones(DType::kF32, {2});
  ASSERT_OK(session->SetEagerMode(EagerMode::kLazy));
  Tensor waits = x + 1;
  auto atomic = std::make_unique<AtomicScope>();
  session.reset();
  EXPECT_EQ(CurrentSession(), nullptr);
  EXPECT_THAT((x + 1).status(),
              StatusIs(kPrecondition, HasSubstr("has ended")));
  EXPECT_THAT(waits.Concrete(), StatusIs(kPrecondition));
  EXPECT_THAT(waits.Assign(1), StatusIs(kPrecondition));
  x += 1;
  EXPECT_THAT(x.write_status(), StatusIs(kPrecondition));
  atomic.reset();
  EXPECT_TRUE(x.Concrete().ok());
  Session no_rules(nullptr);
  const SessionScope without(no_rules);
  EXPECT_THAT((x + 1).status(), StatusIs(kPrecondition));
}

TEST_F(MistakesTest, TracesRefuseWhatIsNotTheirs) {
  TraceScope none(std::shared_ptr<const RuleSet>(nullptr));
  EXPECT_THAT(none.status(), StatusIs(kInvalid));
  TraceScope trace(SharedRules());
  EXPECT_FALSE(trace.Input("x", {DType::kF32, {Dim("3x")}}).valid());
  EXPECT_FALSE(trace.Input("x", {DType::kF32, {-2}}).valid());
  EXPECT_FALSE(trace.Wrap(Value{12345}).valid());
  EXPECT_FALSE(trace.Wrap(Value()).valid());
  EXPECT_FALSE(trace.builder().Add(Primitive::kNeg, {}, {Value{777}}).ok());
  TraceScope clean(SharedRules());
  clean.Input("x", {DType::kF32, {2}});
  EXPECT_THAT(std::move(clean).Finish({{"y", Value{99}}}),
              StatusIs(kInvalid, HasSubstr("the output y")));
  // It takes nodes that nobody reads.
  clean.builder().Input("z", {DType::kF32, {2}});
  EXPECT_FALSE(clean.Input("z", {DType::kF32, {2}}).valid());
  EXPECT_FALSE(clean.Wrap(Value{0}).valid());
}

TEST_F(MistakesTest, LiftedFunctionsThatMisbehaveAreMistakes) {
  const Tensor x = Ones(DType::kF32, {2});
  TracedValue kept;
  const auto keep = Lift([&](const TracedValue& v) {
    kept = v;
    return v + 1;
  });
  EXPECT_TRUE(keep(x).valid());
  // A value that outlives its trace.
  EXPECT_EQ(kept.type().rank(), 0);
  kept.builder().Input("x", {DType::kF32, {2}});
  EXPECT_FALSE(Lift([&](const TracedValue& v) { return v + kept; })(x).valid());
  EXPECT_FALSE(
      Lift([](const TracedValue&) { return TracedValue(); })(x).valid());
  EXPECT_FALSE(
      Lift([](const TracedValue& v) { return trace::Wrap(v, Value{4321}); })(x)
          .valid());
  EXPECT_EQ(TracedValue().type().rank(), 0);
  EXPECT_EQ(TracedValue(3).type().rank(), 0);
  EXPECT_FALSE(CallTraced(nullptr, {x}).ok());
  EXPECT_TRUE((x + 1).valid());
}

// ---- writes that are refused

TEST_F(MistakesTest, ARefusedInPlaceOperatorWritesNothing) {
  Tensor w = Floats({3}, {1, 2, 3});
  const Tensor same = w;
  const Tensor view = w[{{0, 2}}];
  ASSERT_OK(session_.Run());
  w += Floats({2}, {1, 2});
  EXPECT_THAT(w.write_status(), StatusIs(kInvalid));
  w -= cleave::Tensor::FromDoubles(DType::kF64, {3}, {1, 2, 3});
  EXPECT_THAT(w.write_status(), StatusIs(kInvalid, HasSubstr("by Convert")));
  w *= Matmul(w, w.Reshape({1, 1, 3}));
  EXPECT_FALSE(w.write_status().ok());
  w[{{0, 2}}] += w;
  w.BroadcastTo({2, 3}) += 1;
  EXPECT_TRUE(w.valid());
  EXPECT_EQ(w.version(), 0u);
  ExpectValue(w, Floats({3}, {1, 2, 3}));
  ExpectValue(same, Floats({3}, {1, 2, 3}));
  ExpectValue(view, Floats({2}, {1, 2}));
  // The session tells the first of them, once.
  EXPECT_THAT(session_.Run(), StatusIs(kInvalid));
  EXPECT_OK(session_.Run());
  w += 1;
  EXPECT_OK(w.write_status());
  EXPECT_OK(w[{0}].write_status());
  ExpectValue(view, Floats({2}, {2, 3}));
  EXPECT_OK(session_.Run());
}

// One that is refused when it runs: an index that values decide.
TEST_F(MistakesTest, AWriteThatFailsWhenItRunsWritesNothing) {
  Tensor w = Floats({3}, {1, 2, 3});
  const Tensor view = w[{0}];
  w += w[{Ints({3}, {0, 1, 7})}];
  ExpectValue(w, Floats({3}, {1, 2, 3}));
  {
    const AtomicScope scope;
    w += w[{Ints({3}, {0, 1, 7})}];
    EXPECT_TRUE(w.IsPending());
  }
  ExpectValue(w, Floats({3}, {1, 2, 3}));
  ExpectValue(view, Floats({}, {1}));
  EXPECT_TRUE(w.valid());
}

TEST_F(MistakesTest, WhatDoesNotDependOnAnOpThatFailsHasItsValue) {
  Tensor w = Floats({3}, {1, 2, 3});
  Tensor v = Floats({2}, {10, 20});
  const Tensor head = w[{{0, 2}}];
  Tensor bad, later, fine;
  AtomicScope scope;
  w += 1;
  fine = w * 2;
  bad = v[{Ints({1}, {5})}];
  later = bad + fine[{0}];
  v *= 3;
  v += bad;  // depends on it: v keeps what it was before
  const absl::Status ended = scope.End();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kOutOfRange));
  ExpectValue(w, Floats({3}, {2, 3, 4}));
  ExpectValue(head, Floats({2}, {2, 3}));
  ExpectValue(fine, Floats({3}, {4, 6, 8}));
  ExpectValue(v, Floats({2}, {30, 60}));
  EXPECT_THAT(bad.status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(later.status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_OK(session_.Run());
  w += 1;
  ExpectValue(w, Floats({3}, {3, 4, 5}));
}

TEST_F(MistakesTest, ARefusedWriteWithinAnAtomicScopeIsToldAtItsEnd) {
  Tensor w = Floats({3}, {1, 2, 3});
  AtomicScope scope;
  const Tensor y = w * 2;
  w += Floats({2}, {1, 2});
  EXPECT_THAT(scope.End(), StatusIs(kInvalid));
  ExpectValue(w, Floats({3}, {1, 2, 3}));
  ExpectValue(y, Floats({3}, {2, 4, 6}));
  EXPECT_OK(session_.Run());
}

TEST_F(MistakesTest, ACapturedTensorThatATraceMayNotWriteKeepsItsValue) {
  Tensor mean = Floats({2}, {1, 2});
  {
    TraceScope trace(SharedRules());
    const Tensor x = trace.Input("x", {DType::kF32, {4, 2}});
    const Tensor y = x - mean;
    mean *= 0.9;
    mean += Mean(x, std::vector<Dim>{0}) * 0.1;
    EXPECT_THAT(mean.write_status(),
                StatusIs(kPrecondition, HasSubstr("from outside of a trace")));
    EXPECT_THAT(trace.status(), StatusIs(kPrecondition));
    ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y));
    EXPECT_FALSE(std::move(trace).Finish({{"y", out}}).ok());
  }
  EXPECT_TRUE(mean.valid());
  ExpectValue(mean, Floats({2}, {1, 2}));
  mean += 1;
  EXPECT_OK(mean.write_status());
  ExpectValue(mean, Floats({2}, {2, 3}));
}

TEST_F(MistakesTest, ARefusedWriteUnderATraceLeavesTheTracedValue) {
  TraceScope trace(SharedRules());
  Tensor x = trace.Input("x", {DType::kF32, {3}});
  x += 1;
  const uint64_t version = x.version();
  x += trace.Input("y", {DType::kF32, {2}});
  EXPECT_FALSE(x.write_status().ok());
  EXPECT_TRUE(x.valid());
  EXPECT_EQ(x.version(), version);
  EXPECT_TRUE(trace.Read(x).ok());
  EXPECT_THAT(trace.status(), StatusIs(kInvalid));
}

}  // namespace
}  // namespace cleave::functional
