#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "testing/golden_file.h"

namespace cleave {
namespace {

TEST(Check, Diagnostics) {
  std::string all;
  TestGoldenFile("engine/rules/testdata/fail_check.golden",
                 [&](absl::string_view input) {
                   const LoadResult loaded =
                       LoadRules({{"in.rules", std::string(input), false}},
                                 std::make_shared<Context>());
                   EXPECT_EQ(loaded.rules, nullptr);
                   std::string text;
                   for (const std::string& d : loaded.diagnostics) text += d;
                   all += text;
                   return text;
                 });
  // Every kind that a rule's meaning can give; those of its text are reached
  // where it is parsed.
  for (const char* kind :
       {"duplicate", "unknown-name", "unknown-op", "unknown-attribute",
        "unused", "cycle", "argument", "type", "shape", "index", "static",
        "unreachable", "impossible", "dead-override", "not-linear",
        "not-smaller", "recursive", "placement", "limit"}) {
    EXPECT_TRUE(absl::StrContains(all, absl::StrCat("[", kind, "]")))
        << "no case reaches " << kind;
  }
}

TEST(Check, ExtensionsSeeTheirBase) {
  auto context = std::make_shared<Context>();
  const LoadResult base =
      LoadRules({{"base.rules",
                  "language 1\n\nop twice(x: T[S..]) -> T[S..]\n"
                  "  where T: float\n  = 2 * x\n",
                  false}},
                context);
  ASSERT_TRUE(base.diagnostics.empty()) << base.diagnostics[0];
  const LoadResult extended = ExtendRules(
      base.rules, {"more.rules",
                   "language 1\n\nop fourfold(x: T[S..]) -> T[S..]\n"
                   "  where T: float\n  = twice(twice(x))\n",
                   false});
  ASSERT_TRUE(extended.diagnostics.empty()) << extended.diagnostics[0];
  EXPECT_NE(extended.rules->Find("fourfold"), nullptr);
  EXPECT_EQ(base.rules->Find("fourfold"), nullptr);
  const LoadResult again =
      ExtendRules(base.rules, {"again.rules",
                               "language 1\n\nop twice(x: T[S..]) -> T[S..]\n"
                               "  where T: float\n  = x + x\n",
                               false});
  EXPECT_EQ(again.diagnostics.size(), 1);
}

// A caller's numbers can be any: what exceeds 64 bits is an error of the call.
TEST(Check, CallsWhoseSizesExceed64Bits) {
  auto context = std::make_shared<Context>();
  const LoadResult loaded =
      LoadRules({{"in.rules",
                  "language 1\n\n"
                  "op square(x: T[S..], *, k: int) -> T[S..]\n"
                  "  where T: float\n  let n = k * k\n  = x + n\n\n"
                  "op opposite(x: T[S..], *, k: int) -> T[S..]\n"
                  "  where T: float\n  let n = -k\n  = x + n\n\n"
                  "op next(x: T[S..], *, k: int) -> T[S..]\n"
                  "  where T: float\n  let n = k + 1\n  = x + n\n",
                  false}},
                context);
  ASSERT_TRUE(loaded.diagnostics.empty()) << loaded.diagnostics[0];
  const std::pair<const char*, int64_t> calls[] = {
      {"square", int64_t{1} << 62},
      {"opposite", std::numeric_limits<int64_t>::min()},
      {"next", std::numeric_limits<int64_t>::max()}};
  for (const auto& [op, k] : calls) {
    GraphBuilder builder(context);
    const Value x = builder.Input("x", {DType::kF32, {Dim(2)}});
    Attributes attributes;
    attributes.Set("k", StaticValue(k));
    const auto results =
        loaded.rules->Call(builder, op, {{"x", x}}, attributes);
    EXPECT_THAT(std::string(results.status().message()),
                testing::HasSubstr("exceeds 64 bits"))
        << op;
  }
}

}  // namespace
}  // namespace cleave
