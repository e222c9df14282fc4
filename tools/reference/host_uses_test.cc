// Which ops of hosts stand for an op of the core.

#include "tools/reference/host_uses.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kText[] = R"(language 1

op twice(x: T[S..]) -> T[S..]
  where T: real
  = x + x

op thrice(x: T[S..]) -> T[S..]
  where T: real
  = twice(x) + x

def half(x) = thrice(x) / 6

aten twice(Tensor self) -> Tensor = twice(self)

aten both(Tensor self) -> Tensor = twice(self) + thrice(self)

onnx Half@28(X: T) -> (Y: T) = half(X)
)";

TEST(HostUses, TellsNamesFromCallers) {
  const std::vector<NamedSource> sources = {{"test.rules", kText}};
  const HostUses uses(sources);
  ASSERT_NE(uses.Of("twice"), nullptr);
  EXPECT_THAT(uses.Of("twice")->names, ElementsAre("aten.twice"));
  EXPECT_THAT(uses.Of("twice")->callers, ElementsAre("aten.both"));
  // By a def. An op counts for itself alone.
  ASSERT_NE(uses.Of("thrice"), nullptr);
  EXPECT_THAT(uses.Of("thrice")->names, IsEmpty());
  EXPECT_THAT(uses.Of("thrice")->callers,
              ElementsAre("aten.both", "onnx.Half"));
  EXPECT_EQ(uses.Of("none"), nullptr);
}

TEST(HostUses, LeavesOutWhatDoesNotParse) {
  const std::vector<NamedSource> sources = {{"bad.rules", "language 1\nop ("},
                                            {"a.rules", kText}};
  const HostUses uses(sources);
  EXPECT_NE(uses.Of("twice"), nullptr);
}

}  // namespace
}  // namespace cleave
