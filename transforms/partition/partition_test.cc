#include "transforms/partition/partition.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/partition/partition_testing.h"
#include "transforms/vmap/vmap.h"

namespace cleave::aot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PartitionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    rules_ = LoadFunctions(std::make_shared<Context>());
  }
  static void TearDownTestSuite() { rules_.reset(); }

  static inline std::shared_ptr<const RuleSet> rules_;
};

TEST_F(PartitionTest, DefaultGivesWhatTheJointGraphGives) {
  for (const std::string& name : FunctionNames(*rules_)) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf(name, *rules_));
    ASSERT_OK_AND_ASSIGN(const Partition partition, DefaultPartition(joint));
    EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk())
        << PrintGraph(joint.graph) << PrintGraph(partition.forward)
        << PrintGraph(partition.backward);
  }
}

// Nothing but the primals is saved.
TEST_F(PartitionTest, RecomputingAllGivesTheSame) {
  for (const std::string& name : FunctionNames(*rules_)) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf(name, *rules_));
    ASSERT_OK_AND_ASSIGN(const Partition partition,
                         PartitionBySaved(joint, {}));
    EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk())
        << PrintGraph(joint.graph) << PrintGraph(partition.backward);
  }
}

TEST_F(PartitionTest, RejectsWhatCannotBeSaved) {
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf("sorted", *rules_));
  const Graph& graph = joint.graph;
  const auto expect_rejected = [&](Value v, const std::string& text) {
    EXPECT_THAT(PartitionBySaved(joint, {v}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  expect_rejected(graph.outputs().back().value, "depends on a cotangent");
  expect_rejected(Value{static_cast<uint32_t>(graph.size())},
                  "which the joint graph does not have");
  bool found = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(Value{id}).op != ToOpId(Primitive::kSort)) continue;
    expect_rejected(Value{id}, "has several results");
    found = true;
  }
  EXPECT_TRUE(found);
}

// Names of the function's own do not meet those of what is saved.
TEST_F(PartitionTest, NamesStayApart) {
  GraphBuilder b(rules_->context());
  const TensorType type{DType::kF32, {Dim::Variable("n")}};
  const Value x = b.Input("x", type);
  const Value y = b.Apply(Primitive::kSin, {x});
  const Graph graph = *std::move(b).Build(
      {{"saved.0", y}, {"saved.saved.1", b.Apply(Primitive::kExp, {y})}});
  ASSERT_OK_AND_ASSIGN(const JointGraph joint,
                       MakeJointGraph(graph, {{true}}, *rules_));
  ASSERT_OK_AND_ASSIGN(const Partition partition, DefaultPartition(joint));
  EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk());
  EXPECT_EQ(partition.backward.inputs()[0].name, "saved.saved.saved.0");
}

// A sort runs once, in the forward half, whichever of its results the backward
// half needs.
TEST_F(PartitionTest, NodesWithSeveralResultsAreNotSplit) {
  ASSERT_OK_AND_ASSIGN(const JointGraph joint,
                       JointOf("smallest_first", *rules_));
  ASSERT_OK_AND_ASSIGN(const Partition partition, DefaultPartition(joint));
  EXPECT_THAT(PrintGraph(partition.forward), HasSubstr("sort("));
  EXPECT_THAT(PrintGraph(partition.backward), Not(HasSubstr("sort(")));
}

TEST_F(PartitionTest, ChecksWhatAUserGives) {
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf("sine", *rules_));
  ASSERT_OK_AND_ASSIGN(const Partition good, DefaultPartition(joint));
  EXPECT_THAT(CheckPartition(joint, good), IsOk());
  const auto expect_rejected = [&](const Partition& partition,
                                   const std::string& text) {
    EXPECT_THAT(CheckPartition(joint, partition),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  Partition partition = good;
  partition.saved = 1;
  expect_rejected(partition,
                  "the outputs of the forward graph are 3, but must be 2");
  partition.saved = -1;
  expect_rejected(partition, "saved is negative");
  partition = good;
  partition.offloaded = {2};
  expect_rejected(partition, "number 2 is offloaded");
  partition = good;
  std::swap(partition.forward, partition.backward);
  expect_rejected(partition, "the inputs of the forward graph are 3");
  partition = good;
  partition.forward = Graph();
  expect_rejected(partition, "not of the joint graph's context");

  // Halves of the right numbers and the wrong types.
  const auto parsed = [&](const std::string& text) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, rules_->context());
    EXPECT_THAT(graph, IsOk());
    return graph.ok() ? *graph : Graph();
  };
  partition = good;
  partition.forward = parsed(
      "graph (%x: f32[n, m]) -> (y: f32[m, n], a: f32[n, m], b: f32[n, m]) {\n"
      "  %1: f32[m, n] = transpose(%x, axes: [1, 0])\n"
      "  return y = %1, a = %x, b = %x\n"
      "}\n");
  expect_rejected(partition, "the forward output `y` is f32[m, n]");
  partition.forward = parsed(
      "graph (%x: f32[n, m]) -> (y: f32[n, m], a: f32[m, n], b: f32[n, m]) {\n"
      "  %1: f32[m, n] = transpose(%x, axes: [1, 0])\n"
      "  return y = %x, a = %1, b = %x\n"
      "}\n");
  expect_rejected(partition, "the forward graph saves `a`, which is f32[m, n]");
  partition = good;
  partition.backward = parsed(
      "graph (%a: f32[n, m], %b: f32[n, m], %y.cotangent: f32[n, m]) -> "
      "(x.cotangent: f32[m, n]) {\n"
      "  %1: f32[m, n] = transpose(%a, axes: [1, 0])\n"
      "  return x.cotangent = %1\n"
      "}\n");
  expect_rejected(partition, "the backward output `x.cotangent` is f32[m, n]");
}

// A named value is saved through other transforms, too.
TEST_F(PartitionTest, NamesAreTransparent) {
  const LoadResult loaded =
      ExtendRules(rules_, {"named.rules",
                           "language 1\n\n"
                           "fn named(x: f32[n]) -> f32[n] = "
                           "exp(checkpoint_name(sin(x), name: \"s\"))\n\n"
                           "fn plain(x: f32[n]) -> f32[n] = exp(sin(x))\n"});
  ASSERT_NE(loaded.rules, nullptr) << loaded.diagnostics[0];
  const auto expanded = [&](const absl::StatusOr<Graph>& graph) {
    const absl::StatusOr<Graph> primitives = Expand(*graph, *loaded.rules);
    return primitives.ok() ? PrintGraph(*primitives)
                           : primitives.status().ToString();
  };
  ASSERT_OK_AND_ASSIGN(const Graph named, loaded.rules->Function("named"));
  ASSERT_OK_AND_ASSIGN(const Graph plain, loaded.rules->Function("plain"));
  for (const int order : {1, 2}) {
    Graph a = named;
    Graph b = plain;
    for (int i = 0; i < order; ++i) {
      const std::vector<bool> active(a.inputs().size(), true);
      ASSERT_OK_AND_ASSIGN(JvpResult jvp_a, Jvp(a, active, *loaded.rules));
      ASSERT_OK_AND_ASSIGN(JvpResult jvp_b, Jvp(b, active, *loaded.rules));
      a = std::move(jvp_a.graph);
      b = std::move(jvp_b.graph);
    }
    EXPECT_THAT(PrintGraph(a), HasSubstr("checkpoint_name"));
    EXPECT_EQ(expanded(a), expanded(b));
  }
  const auto batched = [&](const Graph& graph) {
    return Vmap(graph, {0}, Dim::Variable("B"), {0}, *loaded.rules);
  };
  ASSERT_OK_AND_ASSIGN(const Graph batch, batched(named));
  EXPECT_THAT(PrintGraph(batch), HasSubstr("checkpoint_name"));
  EXPECT_EQ(expanded(batch), expanded(batched(plain)));
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf("named", *loaded.rules));
  ASSERT_OK_AND_ASSIGN(const JointGraph other, JointOf("plain", *loaded.rules));
  EXPECT_THAT(PrintGraph(joint.graph), HasSubstr("checkpoint_name"));
  EXPECT_EQ(expanded(joint.graph), expanded(other.graph));
}

}  // namespace
}  // namespace cleave::aot
