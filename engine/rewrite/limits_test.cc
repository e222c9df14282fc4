// The work that rules cause is bounded. Loading and expanding rules whose
// bodies grow without end give an error that names the limit and the way there,
// also on the small stack of a thread.

#include <pthread.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void OnSmallStack(const std::function<void()>& function) {
  constexpr size_t kBytes = 512 << 10;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* f) -> void* {
                  (*static_cast<const std::function<void()>*>(f))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&function)),
            0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

LoadResult Load(const std::string& items) {
  return LoadRules({{"a.rules", absl::StrCat("language 1\n\n", items), false}},
                   std::make_shared<Context>());
}

// The first diagnostic of loading; "" if there is none.
std::string Refused(const std::string& items) {
  std::string first;
  OnSmallStack([&] {
    const LoadResult loaded = Load(items);
    if (!loaded.diagnostics.empty()) first = loaded.diagnostics[0];
  });
  return first;
}

// `fn f` in primitives.
absl::StatusOr<Graph> Expanded(const std::string& items,
                               const Limits& limits = {}) {
  absl::StatusOr<Graph> expanded = absl::UnknownError("");
  OnSmallStack([&] {
    const BudgetScope scope(limits);
    const LoadResult loaded = Load(items);
    if (loaded.rules == nullptr) {
      expanded = absl::InvalidArgumentError(loaded.diagnostics[0]);
      return;
    }
    const absl::StatusOr<Graph> graph = loaded.rules->Function("f");
    expanded = graph.ok() ? Expand(*graph, *loaded.rules) : graph.status();
  });
  return expanded;
}

std::string Op(const std::string& name, const std::string& body,
               const std::string& inputs = "x: f32[n]") {
  return absl::StrCat("op ", name, "(", inputs, ") -> f32[n]\n  = ", body,
                      "\n\n");
}

std::string F(const std::string& body) {
  return absl::StrCat("fn f(x: f32[n]) -> f32[n]\n  = ", body, "\n");
}

TEST(Limits, DefsThatDouble) {
  std::string defs;
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&defs, "def e", i, "(x) = e", i + 1, "(e", i + 1,
                    "(x))\n\n");
  }
  absl::StrAppend(&defs, "def e40(x) = x * x + 1\n\n");
  EXPECT_THAT(
      Refused(defs + F("e0(x)")),
      AllOf(HasSubstr("a.rules:"),
            HasSubstr("more than 2000000 expressions of rules in `f` -> `e0` "
                      "-> `e1` -> `e2` -> .. ("),
            HasSubstr("Limits::expressions (--max-expressions)"),
            HasSubstr("[limit]"), HasSubstr("^")));
}

TEST(Limits, OpsThatDouble) {
  std::string ops = Op("e40", "x * x + 1");
  for (int i = 0; i < 40; ++i) {
    ops +=
        Op(absl::StrCat("e", i), absl::StrCat("e", i + 1, "(e", i + 1, "(x))"));
  }
  EXPECT_THAT(Expanded(ops + F("e0(x)")),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("more than 4000000 nodes in `e0`"),
                             HasSubstr("Limits::nodes (--max-nodes)"))));
}

TEST(Limits, OpsThatCallTwoOpsWithOtherAttributes) {
  std::string ops = Op("e40", "x * k", "x: f32[n], *, k: int = 0");
  for (int i = 0; i < 40; ++i) {
    ops += Op(absl::StrCat("e", i),
              absl::StrCat("e", i + 1, "(x, k: 2 * k) + e", i + 1,
                           "(x, k: 2 * k + 1)"),
              "x: f32[n], *, k: int = 0");
  }
  Limits limits;
  limits.bodies = 500;
  EXPECT_THAT(Expanded(ops + F("e0(x)"), limits),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 500 compiled bodies in `e0` -> ")));
}

TEST(Limits, FoldsWithinFolds) {
  EXPECT_THAT(
      Refused(F("fold(p = x, c in 0..4000) { fold(q = p, d in 0..4000) "
                "{ q * p + q } }")),
      AllOf(HasSubstr("more than 2000000 expressions"), HasSubstr("[limit]")));
}

TEST(Limits, LongChainsAreNoLimit) {
  // A chain of terms, deeper than a stack that grows by recursion has room for.
  EXPECT_OK(Expanded(F("fold(p = x, c in 0..4000) { p * p + p }")));
  // A chain of ops.
  std::string ops = Op("e1000", "x * x");
  for (int i = 0; i < 1000; ++i) {
    ops += Op(absl::StrCat("e", i), absl::StrCat("e", i + 1, "(x)"));
  }
  ASSERT_OK_AND_ASSIGN(const Graph graph, Expanded(ops + F("e0(x)")));
  EXPECT_EQ(graph.size(), 2);
  Limits limits;
  limits.depth = 500;
  EXPECT_THAT(Expanded(ops + F("e0(x)"), limits),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 500 levels of depth in `e0`")));
}

TEST(Limits, ElementsThatNest) {
  EXPECT_THAT(
      Refused("fn f(x: f32[n]) -> f32[n]\n{\n  y[i] = fold(p = x[i], c in "
              "0..4000) { p * x[i] + p }\n}\n"),
      HasSubstr("the expression of an element nests more than 400 deep"));
  EXPECT_OK(
      Expanded("fn f(x: f32[n]) -> f32[n]\n{\n  y[i] = fold(p = x[i], c "
               "in 0..150) { p * x[i] + p }\n}\n"));
}

TEST(Limits, DefsWithinDefs) {
  std::string defs = "def e99(x) = x\n\n";
  const std::string open(90, '(');
  std::string close;
  for (int i = 0; i < 90; ++i) close += " + 1)";
  for (int i = 0; i < 99; ++i) {
    absl::StrAppend(&defs, "def e", i, "(x) = ", open, "e", i + 1, "(x)", close,
                    "\n\n");
  }
  EXPECT_OK(Expanded(defs + F("e0(x)")));
}

TEST(Limits, CyclesOfAnyLength) {
  std::string defs;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    absl::StrAppend(&defs, "def e", i, "(x) = e", (i + 1) % kCount, "(x)\n\n");
  }
  EXPECT_THAT(Refused(defs),
              AllOf(HasSubstr("a def must not call itself: `e0` -> `e1` -> "),
                    HasSubstr(".. (19992 more) -> `e0`")));
}

// A body that exceeded a limit in one call is not kept as failed: the next call
// may have larger limits.
TEST(Limits, FailuresOfOneCallAreItsOwn) {
  const LoadResult loaded =
      Load(Op("g", "x + 1") + Op("h", "g(x)") + F("h(x)"));
  ASSERT_NE(loaded.rules, nullptr);
  ASSERT_OK_AND_ASSIGN(const Graph graph, loaded.rules->Function("f"));
  {
    Limits limits;
    limits.bodies = 1;
    const BudgetScope scope(limits);
    EXPECT_THAT(Expand(graph, *loaded.rules),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_OK(Expand(graph, *loaded.rules));
}

}  // namespace
}  // namespace cleave
