#include "testing/check/reference/conjuncts.h"

#include <string>
#include <vector>

#include "engine/lang/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;

// The conjuncts of `domain CONDITION`, printed.
std::vector<std::string> ConjunctsOf(const std::string& condition) {
  const Source source("f.rules",
                      "language 1\n\nop f(a: f32[n], b: f32[n]) -> "
                      "f32[n]\n  domain " +
                          condition + "\n  = a\n");
  const ParseResult parsed = ParseRules(source);
  EXPECT_TRUE(parsed.ok());
  std::vector<std::string> conjuncts;
  for (const ExprPtr& conjunct : IndependentConjuncts(
           parsed.file.entries.at(0).item->domains.at(0).condition)) {
    conjuncts.push_back(PrintExpr(*conjunct));
  }
  return conjuncts;
}

TEST(IndependentConjuncts, AreTheSidesOfAnds) {
  EXPECT_THAT(ConjunctsOf("abs(a) < 4 and (exp(b) > 1 and a > b)"),
              ElementsAre("abs(a) < 4", "exp(b) > 1", "a > b"));
  EXPECT_THAT(ConjunctsOf("abs(a) < 4 or a > b"),
              ElementsAre("abs(a) < 4 or a > b"));
}

TEST(IndependentConjuncts, KeepEqualCallsTogether) {
  EXPECT_THAT(ConjunctsOf("exp(a) < 4 and abs(b) > 1 and exp(a) > 2"),
              ElementsAre("abs(b) > 1", "exp(a) < 4 and exp(a) > 2"));
  EXPECT_THAT(ConjunctsOf("reduce_all(a > 1, axes: [len(a)]) and "
                          "reduce_all(b > 1, axes: [len(a)])"),
              ElementsAre("reduce_all(a > 1, axes: [len(a)])",
                          "reduce_all(b > 1, axes: [len(a)])"));
  // The last one holds the others together.
  EXPECT_THAT(ConjunctsOf("exp(a) < 4 and abs(b) > 1 and exp(a) > abs(b)"),
              ElementsAre("exp(a) < 4 and (abs(b) > 1 and exp(a) > abs(b))"));
}

TEST(IndependentConjuncts, KeepWhatMakesNoCallTogether) {
  EXPECT_THAT(ConjunctsOf("a > 1 and exp(a) < 4 and b < 3"),
              ElementsAre("exp(a) < 4", "a > 1 and b < 3"));
}

}  // namespace
}  // namespace cleave
