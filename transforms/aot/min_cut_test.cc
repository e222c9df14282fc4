#include "transforms/aot/min_cut.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/partition_testing.h"

namespace cleave::aot {
namespace {

class MinCutTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadFunctions(context_);
};

TEST_F(MinCutTest, GivesWhatTheJointGraphGivesAtAnyBudget) {
  for (const std::string& name : FunctionNames(*rules_)) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf(name, *rules_));
    for (double budget : {1.0, 0.5, 0.0}) {
      MinCutOptions options;
      options.activation_memory_budget = budget;
      ASSERT_OK_AND_ASSIGN(
          const Partition partition,
          MinCutRematerializationPartition(joint, *rules_, options));
      EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk())
          << "budget " << budget << "\n"
          << PrintGraph(joint.graph) << PrintGraph(partition.forward)
          << PrintGraph(partition.backward);
    }
  }
}

}  // namespace
}  // namespace cleave::aot
