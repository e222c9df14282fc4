#include "testing/check/reference/derivative.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/reference/ties.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

Graph Parsed(absl::string_view text) {
  const absl::StatusOr<Graph> graph =
      ParseGraph(text, std::make_shared<Context>());
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? *graph : Graph();
}

Tensor F64(const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF64, {static_cast<int64_t>(values.size())},
                             values);
}

// The slopes of the only result by the first operand, "none" where there is
// none.
std::vector<std::string> SlopesOf(const Graph& graph,
                                  const std::vector<Tensor>& inputs,
                                  bool fine) {
  const RealFunction function = [&](const std::vector<RealTensor>& at,
                                    int bits) {
    return InterpretReal(graph, at, bits);
  };
  std::vector<std::optional<Tensor>> directions(inputs.size());
  directions[0] = F64(std::vector<double>(inputs[0].size(), 1));
  const auto slopes = fine ? FineSlopesAlong(function, inputs, directions, true)
                           : SlopesAlong(function, inputs, directions, true);
  EXPECT_THAT(slopes, IsOk());
  std::vector<std::string> texts;
  if (!slopes.ok()) return texts;
  for (const std::optional<Real>& slope : slopes->values[0]) {
    texts.push_back(slope ? slope->ToString(6) : "none");
  }
  return texts;
}

constexpr char kSquare[] = R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = mul(%x, %x)
  return y = %1
})";

TEST(Slopes, OfASmoothFunction) {
  for (bool fine : {false, true}) {
    EXPECT_THAT(SlopesOf(Parsed(kSquare), {F64({3, -0.5, 1e100})}, fine),
                testing::ElementsAre("6", "-1", "2e+100"));
  }
}

TEST(Slopes, NoneAtAKink) {
  const Graph graph = Parsed(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = abs(%x)
  return y = %1
})");
  for (bool fine : {false, true}) {
    EXPECT_THAT(SlopesOf(graph, {F64({0, 1, -2})}, fine),
                testing::ElementsAre("none", "1", "-1"));
  }
}

// sign jumps by 1 on both sides of 0: one step alone takes that for a slope.
TEST(Slopes, FineOnesSeeAnOddJump) {
  const Graph graph = Parsed(R"(
graph (%x: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = sign(%x)
  return y = %1
})");
  EXPECT_THAT(SlopesOf(graph, {F64({0, 1})}, false),
              testing::ElementsAre("1.26765e+30", "0"));
  EXPECT_THAT(SlopesOf(graph, {F64({0, 1})}, true),
              testing::ElementsAre("none", "0"));
}

TEST(Steep, WhereNoSideHasASlope) {
  const auto steep = [](const std::string& of, std::vector<double> x) {
    const Graph graph = Parsed("graph (%x: f64[n]) -> (y: f64[n]) {\n" +
                               std::string("  %1: f64[n] = ") + of +
                               "(%x)\n  return y = %1\n}");
    const Tensor ones = F64(std::vector<double>(x.size(), 1));
    const auto result =
        SteepAlong([&](const std::vector<RealTensor>& at,
                       int bits) { return InterpretReal(graph, at, bits); },
                   {F64(x)}, {ones});
    EXPECT_THAT(result, IsOk());
    return result.ok() ? (*result)[0] : std::vector<bool>();
  };
  EXPECT_THAT(steep("cbrt", {0, 1}), testing::ElementsAre(true, false));
  EXPECT_THAT(steep("asin", {0, 1}), testing::ElementsAre(false, true));
  EXPECT_THAT(steep("acosh", {1, 2}), testing::ElementsAre(true, false));
  EXPECT_THAT(steep("abs", {0, 1}), testing::ElementsAre(false, false));
  EXPECT_THAT(steep("sign", {0, 1}), testing::ElementsAre(true, false));
}

// The quotient is 2^118: coarse steps cross many whole numbers.
TEST(Slopes, FineOnesStayBetweenJumps) {
  const Graph graph = Parsed(R"(
graph (%x: f64[n], %a: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = div(%a, %x)
  %2: f64[n] = floor(%1)
  return y = %2
})");
  const std::vector<Tensor> inputs = {F64({-1.96e-18}), F64({7e17})};
  EXPECT_THAT(SlopesOf(graph, inputs, true), testing::ElementsAre("0"));
  EXPECT_THAT(SlopesOf(graph, inputs, false),
              testing::Not(testing::ElementsAre("0")));
}

TEST(Ties, OfMaxAndMin) {
  const Graph graph = Parsed(R"(
graph (%x: f64[n], %lo: f64[n], %hi: f64[n]) -> (y: f64[n]) {
  %1: f64[n] = max(%x, %lo)
  %2: f64[n] = min(%1, %hi)
  return y = %2
})");
  EXPECT_THAT(HasTie(graph, {F64({1, 2}), F64({0, 0}), F64({3, 3})}),
              IsOkAndHolds(false));
  EXPECT_THAT(HasTie(graph, {F64({1, 0}), F64({0, 0}), F64({3, 3})}),
              IsOkAndHolds(true));
  EXPECT_THAT(HasTie(graph, {F64({1, 2}), F64({3, 0}), F64({3, 3})}),
              IsOkAndHolds(true));
  EXPECT_THAT(HasTie(Parsed(kSquare), {F64({0})}), IsOkAndHolds(false));
}

}  // namespace
}  // namespace cleave
