#include "engine/eager/atomic.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

class AtomicTest : public SessionTest {
 protected:
  const SessionStatistics& Statistics() { return session_.statistics(); }
};

Tensor Gelu(const Tensor& x) { return CallOne("gelu", {x}); }

cleave::Tensor Ramp(std::vector<int64_t> shape, double step) {
  cleave::Tensor x(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < x.size(); ++i) x.SetDouble(i, step * (i % 97) - 2);
  return x;
}

TEST_F(AtomicTest, RunsItsOpsAsOneGraph) {
  const Tensor x = Ramp({8, 16}, 0.05);
  const Tensor bias = Ramp({16}, 0.1);
  const auto f = Atomic([&](const Tensor& v) { return Gelu(v + bias) * 2; });
  const Tensor y = f(x);
  EXPECT_EQ(Statistics().ops, 3);
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_EQ(Statistics().kernels_run, 1);
  session_.ResetStatistics();
  const Tensor z = Gelu(x + bias) * 2;
  EXPECT_EQ(Statistics().graphs_run, 3);
  EXPECT_EQ(Statistics().kernels_run, 3);
  ExpectValue(y, z);
  session_.ResetStatistics();
  ExpectValue(f(x), y);
  EXPECT_EQ(Statistics().graphs_compiled, 0);
  EXPECT_EQ(Statistics().cache_hits, 1);
}

TEST_F(AtomicTest, ValuesAreBitByBitThoseOfOpsOneByOne) {
  const Tensor x = Ramp({5, 33}, 0.07);
  const Tensor w = Ramp({33, 9}, 0.031);
  const Tensor b = Ramp({9}, 0.2);
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [&](const Tensor& v) { return v * v + v * 3 - 1; },
      [&](const Tensor& v) {
        return CallOne("tanh", {CallOne("exp", {-v * v}) / 3});
      },
      [&](const Tensor& v) {
        return Gelu(CallOne("matmul", {v, w}) + b);
      },
      [&](const Tensor& v) {
        return CallOne("softmax", {v * 0.3}, {{"axis", 1}}) * v;
      },
      [&](const Tensor& v) {
        return CallMany("layer_norm", 3, {v + 1, std::nullopt, std::nullopt},
                        {{"N", StaticValue::Dims({33})}})[0] *
               2;
      },
      [&](const Tensor& v) {
        const Tensor e = CallOne("exp", {v});
        return e / CallOne("sum", {e},
                           {{"axes", StaticValue::Ints(std::vector<int>{1})},
                            {"keepdims", true}});
      },
      [&](const Tensor& v) {
        Tensor u = v.Clone();
        u[{kAll, {1, kNone, 3}}] *= v[{kAll, {kNone, -1, 3}}];
        return u + CallOne("cumsum", {v}, {{"axis", 1}});
      },
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    SCOPED_TRACE(i);
    const Tensor together = Atomic(functions[i])(x);
    const Tensor apart = functions[i](x);
    ASSERT_OK(together.status());
    ExpectValue(together, apart);
  }
}

TEST_F(AtomicTest, NestedScopesJoinTheOuter) {
  const Tensor x = Ramp({4}, 1);
  const auto inner = Atomic([](const Tensor& v) { return v * 2; });
  const auto outer = Atomic([&](const Tensor& v) {
    const Tensor y = inner(v) + 1;
    EXPECT_TRUE(y.IsPending());
    return inner(y);
  });
  const Tensor y = outer(x);
  EXPECT_FALSE(y.IsPending());
  EXPECT_EQ(Statistics().graphs_run, 1);
  ExpectValue(y, (x * 2 + 1) * 2);
}

TEST_F(AtomicTest, WritesAndAllThatIsAliveComeFromTheOneRun) {
  Tensor x = Floats({3}, {1, 2, 3});
  Tensor kept;
  {
    const AtomicScope scope;
    kept = x * 10;
    x[{{1, kNone}}] += kept[{0}];
    const Tensor dead = kept * kept;
    x *= 2;
  }
  EXPECT_EQ(Statistics().graphs_run, 1);
  ExpectValue(x, Floats({3}, {2, 24, 26}));
  ExpectValue(kept, Floats({3}, {10, 20, 30}));
  EXPECT_EQ(Statistics().graphs_run, 1);
}

TEST_F(AtomicTest, AValueAskedForWithinRunsEarlyAndIsCounted) {
  const Tensor x = Floats({3}, {1, 2, 3});
  Tensor y;
  {
    const AtomicScope scope;
    y = x + 1;
    EXPECT_THAT(y[{0}].Item(), IsOkAndHolds(2));
    y = y * 3;
  }
  EXPECT_EQ(Statistics().early_runs, 1);
  EXPECT_EQ(Statistics().graphs_run, 2);
  ExpectValue(y, Floats({3}, {6, 9, 12}));
  // So does a result whose size depends on values.
  {
    const AtomicScope scope;
    const auto unique = Call("unique", {Ints({3}, {2, 1, 2})});
    ASSERT_OK(unique);
    EXPECT_EQ((*unique)[0]->shape(), Shape{2});
  }
  EXPECT_EQ(Statistics().early_runs, 2);
}

TEST_F(AtomicTest, AnErrorIsThatOfTheScopeAndOfItsTensors) {
  Tensor x = Floats({3}, {1, 2, 3});
  Tensor y, z;
  AtomicScope scope;
  y = x[{Tensor(Ints({1}, {3}))}];
  z = x + 1;
  EXPECT_THAT(scope.End(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(y.status(), StatusIs(absl::StatusCode::kOutOfRange));
  // It does not depend on what failed.
  ExpectValue(z, Floats({3}, {2, 3, 4}));
  EXPECT_TRUE(x.valid());
}

std::string TraceOf(const std::function<Tensor(const Tensor&)>& f) {
  TraceScope trace(SharedRules());
  Tensor x = trace.Input("x", {DType::kF32, {Dim::Variable("n"), 4}});
  const Tensor y = f(x);
  std::vector<NamedValue> outputs = {{"y", *trace.Read(y)}};
  if (trace.IsMutated(x)) outputs.push_back({"x", *trace.Read(x)});
  return PrintGraph(*std::move(trace).Finish(std::move(outputs)));
}

TEST_F(AtomicTest, HasNoEffectUnderATrace) {
  const auto f = [](const Tensor& x) {
    Tensor y = x[{{1, kNone}}];
    y += 1;
    return Gelu(x) * 2;
  };
  const std::string plain = TraceOf(f);
  EXPECT_EQ(TraceOf(Atomic(f)), plain);
  EXPECT_EQ(TraceOf([&](const Tensor& x) {
              const AtomicScope scope;
              return Atomic(f)(x);
            }),
            plain);
  EXPECT_THAT(plain, testing::HasSubstr("gelu"));
  EXPECT_EQ(Statistics().graphs_run, 0);
}

TEST_F(AtomicTest, HasNoEffectInLazyMode) {
  ASSERT_OK(SetEagerMode(EagerMode::kLazy));
  const Tensor x = Floats({3}, {1, 2, 3});
  const Tensor before = x * 2;
  const Tensor y = Atomic([](const Tensor& v) { return v + 1; })(before);
  EXPECT_TRUE(y.IsPending());
  EXPECT_EQ(Statistics().graphs_run, 0);
  ExpectValue(y, Floats({3}, {3, 5, 7}));
  EXPECT_EQ(Statistics().graphs_run, 1);
  EXPECT_EQ(Statistics().early_runs, 0);
}

// It is the function itself: called once, with the very arguments, and what it
// returns is passed on; so it neither lifts nor transforms it.
TEST_F(AtomicTest, HasNoOtherMeaning) {
  int calls = 0;
  const auto f = Atomic([&calls](Tensor& x, int times, std::string* text) {
    ++calls;
    *text = "called";
    x += times;
    return std::make_pair(x, times);
  });
  Tensor x = Floats({2}, {1, 2});
  std::string text;
  const std::pair<Tensor, int> result = f(x, 3, &text);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(text, "called");
  EXPECT_EQ(result.second, 3);
  EXPECT_TRUE(result.first.SharesStorage(x));
  ExpectValue(x, Floats({2}, {4, 5}));
  // A function of graph values does not become one of tensors.
  const auto g = Atomic([](const std::vector<int>& v) { return v.size(); });
  EXPECT_EQ(g(std::vector<int>{1, 2}), 2u);
  static_assert(!std::is_invocable_v<decltype(g), Tensor>);
}

TEST(AtomicWithoutSession, DoesNothing) {
  AtomicScope scope;
  const Tensor x = Floats({2}, {1, 2});
  EXPECT_THAT((x + 1).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(scope.End());
}

}  // namespace
}  // namespace cleave::functional
