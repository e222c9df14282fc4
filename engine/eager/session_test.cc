#include "engine/eager/session.h"

#include <memory>
#include <string>

#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

class SessionModeTest : public SessionTest {
 protected:
  const SessionStatistics& Statistics() { return session_.statistics(); }
};

TEST_F(SessionModeTest, ASecondCallOfTheSameOpAndTypesCompilesNothing) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(CallOne("softmax", {x}, {{"axis", 1}}).valid());
  EXPECT_EQ(Statistics().ops, 1);
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_EQ(Statistics().graphs_compiled, 1);
  EXPECT_EQ(Statistics().cache_hits, 0);
  EXPECT_GE(Statistics().kernels_run, 1);
  EXPECT_EQ(Statistics().reference_kernels_run, 0);
  EXPECT_GE(Statistics().fused_ops, 4);
  EXPECT_GT(Statistics().bytes_read, 0);
  EXPECT_GT(Statistics().bytes_written, 0);
  const KernelCacheStats before = TestKernelCache().stats();

  ASSERT_TRUE(CallOne("softmax", {x * 2}, {{"axis", 1}}).valid());
  const Tensor other =
      CallOne("softmax", {Floats({2, 3}, {0, 0, 0, 1, 1, 1})}, {{"axis", 1}});
  EXPECT_EQ(Statistics().graphs_compiled, 2);  // softmax once, and `*`
  EXPECT_EQ(Statistics().cache_hits, 2);
  EXPECT_EQ(TestKernelCache().stats().compiled, before.compiled + 1);

  // Another extent: a kernel of its own, whose code is there already.
  ASSERT_TRUE(CallOne("softmax", {Floats({2, 5}, std::vector<double>(10))},
                      {{"axis", 1}})
                  .valid());
  EXPECT_EQ(Statistics().graphs_compiled, 3);
  EXPECT_EQ(TestKernelCache().stats().compiled, before.compiled + 1);
  // Another attribute: another kernel.
  ASSERT_TRUE(CallOne("softmax", {x}, {{"axis", 0}}).valid());
  EXPECT_EQ(Statistics().graphs_compiled, 4);
}

// The second update of a kind goes without a graph: it writes what the first
// wrote, and what shares the storage sees it.
TEST_F(SessionModeTest, UpdatesInPlaceAreFoundAgain) {
  Tensor x = Floats({3}, {1, 2, 3});
  const Tensor y = Floats({3}, {10, 20, 30});
  const Tensor part = x[{Index(1, 3)}];
  const Tensor same = x;
  for (int round = 1; round <= 3; ++round) {
    x += y;
    ASSERT_OK(x.write_status());
    EXPECT_EQ(x.version(), static_cast<uint64_t>(round));
  }
  ExpectValue(x, Floats({3}, {31, 62, 93}));
  ExpectValue(part, Floats({2}, {62, 93}));
  EXPECT_EQ(Statistics().graphs_compiled, 1);
  EXPECT_EQ(Statistics().ops, 3);
  // An update of one storage with itself, and another op.
  for (int round = 0; round < 2; ++round) x += same;
  ExpectValue(x, Floats({3}, {124, 248, 372}));
  for (int round = 0; round < 2; ++round) x -= y;
  ExpectValue(same, Floats({3}, {104, 208, 312}));
  ExpectValue(y, Floats({3}, {10, 20, 30}));
  EXPECT_EQ(Statistics().graphs_compiled, 3);
  // The op itself writes nothing.
  ExpectValue(x + y, Floats({3}, {114, 228, 342}));
  ExpectValue(x + y, Floats({3}, {114, 228, 342}));
  ExpectValue(x, Floats({3}, {104, 208, 312}));
  // A number, a view and another shape are updates of other kinds.
  x += 1;
  ExpectValue(x, Floats({3}, {105, 209, 313}));
  x += Floats({1}, {5});
  ExpectValue(x, Floats({3}, {110, 214, 318}));
  x += cleave::Tensor(DType::kF64, {3});
  EXPECT_FALSE(x.write_status().ok());
  x += y;
  ASSERT_OK(x.write_status());
  ExpectValue(x, Floats({3}, {120, 234, 348}));
  EXPECT_FALSE(session_.Run().ok());  // the update of another dtype
}

TEST_F(SessionModeTest, TheHostComputesWhatItHasKernelsFor) {
  SessionOptions options;
  options.cache = &TestKernelCache();
  int64_t calls = 0;
  options.host_kernels.Set(
      "softmax",
      [&](const HostCall& call) -> absl::StatusOr<std::vector<cleave::Tensor>> {
        ++calls;
        return std::vector<cleave::Tensor>{call.inputs[0]};
      });
  Session session(SharedRules(), options);
  SessionScope scope(session);
  const Tensor x = Floats({3}, {1, 2, 3});
  ExpectValue(CallOne("softmax", {x * 2}, {{"axis", 0}}),
              Floats({3}, {2, 4, 6}));
  ExpectValue(CallOne("softmax", {x}, {{"axis", 0}}), x);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(session.statistics().host_kernels_run, 2);
  EXPECT_THAT(session.statistics().ToString(), HasSubstr("2 of the host"));
  EXPECT_EQ(session.last_report().steps[0].kind, "host");
  // In an op that calls it, too, and where ops accumulate.
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  ExpectValue(CallOne("softmax", {x}, {{"axis", 0}}) + 1,
              Floats({3}, {2, 3, 4}));
  EXPECT_EQ(calls, 3);
  ASSERT_OK(SetEagerMode(EagerMode::kImmediate));
}

TEST_F(SessionModeTest, SoWhereTheSizeOfAResultDependsOnValues) {
  for (const int64_t last : {2, 3}) {
    const auto unique = Call("unique", {Ints({3}, {3, 1, last})});
    ASSERT_OK(unique);
    ExpectValue(*(*unique)[0],
                last == 2 ? Ints({3}, {1, 2, 3}) : Ints({2}, {1, 3}));
    const Tensor places = CallOne("nonzero", {Ints({3}, {0, 1, last - 2})});
    ExpectValue(places, last == 2 ? Ints({1, 1}, {1}) : Ints({2, 1}, {1, 2}));
  }
  EXPECT_EQ(Statistics().graphs_compiled, 2);
  EXPECT_EQ(Statistics().cache_hits, 2);
}

TEST_F(SessionModeTest, ReadsOfViewsFuseIntoTheOpThatReads) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = x.Transpose()[{{kNone, kNone, -1}, 1}] + 1;
  ExpectValue(y, Floats({3}, {7, 6, 5}));
  EXPECT_EQ(Statistics().ops, 1);
  EXPECT_EQ(Statistics().kernels_run, 1);
}

TEST_F(SessionModeTest, LazyModeWaitsUntilAValueIsAskedFor) {
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  const Tensor x = Floats({3}, {1, 2, 3});
  Tensor y = x * 2;
  const Tensor z = y + 1;
  { const Tensor dead = z * z; }  // nothing computes it
  y += 10;
  EXPECT_TRUE(y.IsPending());
  EXPECT_TRUE(z.IsPending());
  EXPECT_EQ(Statistics().graphs_run, 0);
  EXPECT_THAT(z[{2}].Item(), IsOkAndHolds(7));
  // All that was alive has its value from that one run.
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_FALSE(y.IsPending());
  ExpectValue(y, Floats({3}, {12, 14, 16}));
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_EQ(Statistics().early_runs, 0);

  const Tensor w = y - 1;
  ASSERT_OK(SetEagerMode(EagerMode::kImmediate));  // runs what waits
  EXPECT_FALSE(w.IsPending());
}

TEST_F(SessionModeTest, WhatATensorThatIsGoneReadIsNoInput) {
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  const Tensor x = Floats({3}, {1, 2, 3});
  { const Tensor dead = Floats({100}, std::vector<double>(100)) * 2; }
  const Tensor y = x * 2;
  ASSERT_OK(session_.Run());
  EXPECT_EQ(Statistics().graphs_compiled, 1);
  // The same structure with nothing dead around it.
  const Tensor z = Floats({3}, {4, 5, 6}) * 2;
  ASSERT_OK(session_.Run());
  EXPECT_EQ(Statistics().graphs_compiled, 1);
  EXPECT_EQ(Statistics().cache_hits, 1);
  ExpectValue(z, Floats({3}, {8, 10, 12}));
}

TEST_F(SessionModeTest, AnErrorOfARunIsCarriedByWhatWaited) {
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  const Tensor x = Floats({3}, {1, 2, 3});
  const Tensor bad = x[{Tensor(Ints({1}, {7}))}];
  const Tensor good = x + 1;
  // It does not depend on what fails.
  ExpectValue(good, Floats({3}, {2, 3, 4}));
  EXPECT_THAT(bad.status(), StatusIs(absl::StatusCode::kOutOfRange));
  ExpectValue(x, Floats({3}, {1, 2, 3}));
  // The session goes on.
  ExpectValue(x + 1, Floats({3}, {2, 3, 4}));
}

TEST_F(SessionModeTest, AFailedWriteLeavesTheValue) {
  Tensor x = Floats({3}, {1, 2, 3});
  const Tensor index = Ints({1}, {7});
  EXPECT_THAT(x.Assign(x[{index}]), StatusIs(absl::StatusCode::kOutOfRange));
  ExpectValue(x, Floats({3}, {1, 2, 3}));
}

TEST_F(SessionModeTest, TheMostRecentlyUsedGraphsAreKept) {
  SessionOptions options = Options();
  options.max_graphs = 2;
  Session small(SharedRules(), options);
  const SessionScope scope(small);
  const Tensor x = Floats({3}, {1, 2, 3});
  ASSERT_TRUE((x + 1).valid());
  ASSERT_TRUE((x * 2).valid());
  ASSERT_TRUE((x + 1).valid());
  ASSERT_TRUE((x - 3).valid());  // in place of x * 2
  EXPECT_EQ(small.cached_graphs(), 2);
  EXPECT_EQ(small.statistics().graphs_compiled, 3);
  ASSERT_TRUE((x + 1).valid());
  EXPECT_EQ(small.statistics().graphs_compiled, 3);
  ASSERT_TRUE((x * 2).valid());
  EXPECT_EQ(small.statistics().graphs_compiled, 4);
}

TEST_F(SessionModeTest, SessionsNestAndTensorsGoBetweenThem) {
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  const Tensor x = Floats({2}, {1, 2}) * 2;
  Tensor y;
  {
    Session inner(SharedRules(), Options());
    const SessionScope scope(inner);
    EXPECT_EQ(CurrentSession(), &inner);
    y = x + 1;  // runs the other session's graph first
    EXPECT_FALSE(x.IsPending());
    ExpectValue(y, Floats({2}, {3, 5}));
    EXPECT_EQ(inner.statistics().graphs_run, 1);
  }
  EXPECT_EQ(CurrentSession(), &session_);
  EXPECT_EQ(Statistics().graphs_run, 1);
  ExpectValue(y * 2, Floats({2}, {6, 10}));
}

TEST(Session, TensorsThatWaitEndWithIt) {
  Tensor y;
  {
    SessionOptions options;
    options.mode = EagerMode::kLazy;
    Session session(SharedRules(), options);
    const SessionScope scope(session);
    y = Tensor(Floats({2}, {1, 2})) * 2;
  }
  EXPECT_THAT(y.Concrete(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("has ended")));
  EXPECT_THAT(SetEagerMode(EagerMode::kLazy),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SessionModeTest, StatisticsArePrintedAndReset) {
  ASSERT_TRUE((Tensor(Floats({2}, {1, 2})) + 1).valid());
  EXPECT_THAT(Statistics().ToString(), HasSubstr("1 ops in 1 graphs"));
  EXPECT_THAT(session_.last_report().ToString(), HasSubstr("add"));
  session_.ResetStatistics();
  EXPECT_EQ(Statistics().ops, 0);
}

}  // namespace
}  // namespace cleave::functional
