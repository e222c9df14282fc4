#include "engine/ir/graph_dot.h"

#include <memory>
#include <string>

#include "engine/ir/graph_json.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kText[] =
    "graph (%\"x \\\"y\\\"\": f32[n]) -> (z: f32[n], one: f32[]) {\n"
    "  %1: f32[] = constant(dtype: f32, value: 0.1)\n"
    "  %2: f32[n] = broadcast_in_dim(%1, axes: [], shape: [n])\n"
    "  %3: f32[n] = mul(%\"x \\\"y\\\"\", %2)\n"
    "  %4: f32[n] = sub(%3, %\"x \\\"y\\\"\")\n"
    "  guard n >= 2: \"why\"\n"
    "  return z = %4, one = %1\n"
    "}\n";

Graph Parsed() {
  const auto graph = ParseGraph(kText, std::make_shared<Context>());
  EXPECT_OK(graph);
  return *graph;
}

TEST(GraphDotTest, ConstantsStandInTheBoxesOfTheirUsers) {
  DotOptions options;
  options.title = "f: \"g\"";
  options.emphasized = {"z"};
  const std::string dot = GraphToDot(Parsed(), options);
  EXPECT_THAT(dot, HasSubstr("label=\"f: \\\"g\\\"\""));
  EXPECT_THAT(dot, HasSubstr("label=\"mul(_, 0.1)\\nf32[n]\""));
  EXPECT_THAT(dot, HasSubstr("label=\"x \\\"y\\\"\\nf32[n]\""));
  EXPECT_THAT(dot, Not(HasSubstr("broadcast_in_dim")));
  // An output that is a number says so; others are reached by an edge.
  EXPECT_THAT(dot, HasSubstr("out1 [label=\"one\\n0.1\""));
  EXPECT_THAT(dot, Not(HasSubstr("-> out1")));
  EXPECT_THAT(dot, HasSubstr("-> out0"));
  EXPECT_THAT(dot, HasSubstr("out0 [label=\"z\", shape=ellipse, "
                             "fillcolor=\"#ffe599\"]"));
  EXPECT_THAT(dot, HasSubstr("[headlabel=\"1\"]"));
}

TEST(GraphJsonTest, SaysAllThatTheTextSays) {
  const auto json = nlohmann::json::parse(GraphToJson(Parsed()));
  EXPECT_EQ(json["inputs"][0]["name"], "x \"y\"");
  EXPECT_EQ(json["inputs"][0]["type"], "f32[n]");
  ASSERT_EQ(json["nodes"].size(), 4);
  EXPECT_EQ(json["nodes"][1]["op"], "broadcast_in_dim");
  EXPECT_EQ(json["nodes"][1]["attributes"]["shape"], "[n]");
  EXPECT_EQ(json["nodes"][3]["operands"],
            nlohmann::json::parse("[" + json["nodes"][2]["node"].dump() + ", " +
                                  json["inputs"][0]["node"].dump() + "]"));
  EXPECT_EQ(json["guards"][0], "n >= 2: \"why\"");
  EXPECT_EQ(json["outputs"][1]["name"], "one");
}

}  // namespace
}  // namespace cleave
