#include "transforms/aot/partition.h"

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

using ::testing::HasSubstr;

class PartitionTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadFunctions(context_);
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

}  // namespace
}  // namespace cleave::aot
