#include "testing/check/reference/work.h"

#include <memory>
#include <string>

#include "absl/strings/substitute.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

// A state of `m` elements, to which the rows of x[n, m] are added in turn.
double WorkOfLoop(int n, int m) {
  const std::string text = absl::Substitute(
      R"(graph (%s: f32[$1], %x: f32[$0, $1]) -> (s: f32[$1]) {
  %1: f32[$1] = scan(%s, %x, body: graph (%c: f32[$1], %r: f32[$1]) -> (c: f32[$1]) {
    %1: f32[$1] = add(%c, %r)
    %2: f32[$1] = sin(%1)
    return c = %2
  }, carries: 1, consts: 0, length: $0, reverse: false)
  return s = %1
})",
      n, m);
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? WorkOf(*graph) : 0;
}

// The state alone is computed anew at each step: a loop of many steps over a
// large state is dear, however small each of both is.
TEST(Work, GrowsWithTheStepsAndTheStateOfALoop) {
  const double once = WorkOfLoop(1, 100);
  EXPECT_GT(WorkOfLoop(1000, 100), 500 * once);
  EXPECT_GT(WorkOfLoop(1, 10000), 50 * once);
  EXPECT_GT(WorkOfLoop(1000, 10000), 50000 * once);
}

}  // namespace
}  // namespace cleave
