#include "transforms/partition/min_cut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/status_macros.h"
#include "testing/status_matchers.h"
#include "transforms/partition/memory_budget.h"
#include "transforms/partition/memory_pareto.h"
#include "transforms/partition/partition_figures.h"
#include "transforms/partition/partition_testing.h"
#include "transforms/partition/saving_problem.h"
#include "transforms/partition/transformer_testing.h"

namespace cleave::aot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MinCutTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    rules_ = LoadFunctions(std::make_shared<Context>());
  }
  static void TearDownTestSuite() { rules_.reset(); }

  static inline std::shared_ptr<const RuleSet> rules_;
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

// The same where calls are expanded, and so are cut inside.
TEST_F(MinCutTest, CutsExpandedFunctions) {
  for (const std::string& name : FunctionNames(*rules_)) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(JointGraph joint, JointOf(name, *rules_));
    ASSERT_OK_AND_ASSIGN(joint.graph, Expand(joint.graph, *rules_));
    ASSERT_OK_AND_ASSIGN(const Partition partition,
                         MinCutRematerializationPartition(joint, *rules_));
    EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk());
  }
}

TEST_F(MinCutTest, GivesWhatTheJointGraphGivesUnderAnyPolicy) {
  const std::vector<SavePolicy> policies = {
      NothingSaveable(), EverythingSaveable(), DotsSaveable(*rules_),
      // Any decision anywhere: no value may be lost.
      [](const Graph&, Value v) {
        return static_cast<SaveDecision>(v.id * 2654435761u % 6);
      }};
  for (const std::string& name : FunctionNames(*rules_)) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf(name, *rules_));
    for (const SavePolicy& policy : policies) {
      MinCutOptions options;
      options.policy = policy;
      ASSERT_OK_AND_ASSIGN(
          const Partition partition,
          MinCutRematerializationPartition(joint, *rules_, options));
      EXPECT_THAT(CompareWithJoint(joint, partition, *rules_), IsOk());
    }
  }
}

TEST_F(MinCutTest, RejectsOptionsThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, JointOf("sine", *rules_));
  const auto expect_rejected = [&](const MinCutOptions& options,
                                   const std::string& text) {
    EXPECT_THAT(MinCutRematerializationPartition(joint, *rules_, options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  MinCutOptions options;
  options.activation_memory_budget = 1.5;
  expect_rejected(options, "activation_memory_budget is 1.5");
  options.activation_memory_budget = std::numeric_limits<double>::quiet_NaN();
  expect_rejected(options, "must be in [0, 1]");
  options = {};
  options.max_recompute_chain = 0;
  expect_rejected(options, "max_recompute_chain is 0");
  options = {};
  options.memory_weight = -1;
  expect_rejected(options, "memory_weight is -1");
  options = {};
  options.cost.operations_per_byte = 0;
  expect_rejected(options, "operations_per_byte is 0");
  options = {};
  options.cost.extent_hint = -1;
  expect_rejected(options, "extent_hint is -1");
  EXPECT_THAT(
      MemoryPareto(joint, *rules_, {}, 0),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps is 0")));
}

// A graph of `size` nodes that only adds, of one or two values before each;
// some are read by what depends on the cotangent.
JointGraph RandomJoint(const std::shared_ptr<Context>& context, int size,
                       std::mt19937& random) {
  const TensorType type{DType::kF32, {Dim(8)}};
  GraphBuilder b(context);
  std::vector<Value> values = {b.Input("x", type), b.Input("w", type)};
  Value cotangent = b.Input("y.cotangent", type);
  while (static_cast<int>(values.size()) < size) {
    const Value u = values[random() % values.size()];
    const Value v = values[random() % values.size()];
    const Value next = random() % 2 == 0 ? b.Apply(Primitive::kSin, {u})
                                         : b.Apply(Primitive::kSub, {u, v});
    if (next.id == b.graph().size() - 1) values.push_back(next);
  }
  for (Value v : values) {
    if (random() % 3 != 0) continue;
    cotangent = b.Apply(Primitive::kMul, {cotangent, v});
  }
  JointGraph joint;
  joint.graph =
      *std::move(b).Build({{"y", values.back()}, {"x.cotangent", cotangent}});
  joint.primals = 2;
  joint.outputs = 1;
  joint.is_static = {false, false};
  joint.depends = {true};
  return joint;
}

// The least cost over all choices of what to save.
double BruteForce(const SavingProblem& problem) {
  const Graph& graph = problem.joint->graph;
  std::vector<uint32_t> decided;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (problem.decides[id]) decided.push_back(id);
  }
  double best = kInfinite;
  for (uint64_t set = 0; set < (uint64_t{1} << decided.size()); ++set) {
    std::vector<bool> is_saved(graph.size(), false);
    for (size_t i = 0; i < decided.size(); ++i) {
      is_saved[decided[i]] = (set >> i & 1) != 0;
    }
    double cost = 0;
    std::vector<bool> needed = problem.is_target;
    for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
      if (!needed[id] || !problem.decides[id]) continue;
      cost += is_saved[id] ? problem.save[id] : problem.recompute[id];
      if (is_saved[id]) continue;
      for (Value v : graph.operands(Value{id})) needed[v.id] = true;
    }
    best = std::min(best, cost);
  }
  return best;
}

TEST_F(MinCutTest, IsOptimal) {
  std::mt19937 random(20261122);
  int nontrivial = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const JointGraph joint = RandomJoint(
        rules_->context(), 4 + static_cast<int>(random() % 8), random);
    ASSERT_OK_AND_ASSIGN(SavingProblem problem,
                         MakeSavingProblem(joint, *rules_, {}));
    for (size_t id = 0; id < problem.decides.size(); ++id) {
      const auto draw = [&] {
        return random() % 5 == 0 ? kInfinite
                                 : static_cast<double>(random() % 20);
      };
      problem.save[id] =
          problem.is_primal[id] ? static_cast<double>(random() % 20) : draw();
      problem.recompute[id] = problem.is_primal[id] ? kInfinite : draw();
    }
    const double best = BruteForce(problem);
    const absl::StatusOr<SavedChoice> choice = SolveMinCut(problem);
    if (best == kInfinite) {
      EXPECT_THAT(choice, StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("must neither be saved")));
      continue;
    }
    ASSERT_THAT(choice, IsOk());
    EXPECT_NEAR(choice->cost, best, 1e-6);
    // And the choice costs what it says.
    double cost = 0;
    std::vector<bool> needed = problem.is_target;
    for (uint32_t id = static_cast<uint32_t>(needed.size()); id-- > 0;) {
      if (!needed[id] || !problem.decides[id]) continue;
      const bool is_saved =
          std::find(choice->saved.begin(), choice->saved.end(), Value{id}) !=
          choice->saved.end();
      cost += is_saved ? problem.save[id] : problem.recompute[id];
      if (is_saved) continue;
      for (Value v : joint.graph.operands(Value{id})) needed[v.id] = true;
    }
    EXPECT_LE(cost, best + 1e-6);
    nontrivial += best > 0;
  }
  EXPECT_GT(nontrivial, 100);
}

// Whatever the graph and the costs: what is saved stays within the limit, and
// the limit falls with the budget.
TEST_F(MinCutTest, BudgetsHold) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const JointGraph joint = RandomJoint(
        rules_->context(), 4 + static_cast<int>(random() % 30), random);
    ASSERT_OK_AND_ASSIGN(SavingProblem problem,
                         MakeSavingProblem(joint, *rules_, {}));
    for (size_t id = 0; id < problem.decides.size(); ++id) {
      problem.bytes[id] = static_cast<double>(random() % 20);
      problem.save[id] = problem.bytes[id];
      problem.again[id] = static_cast<double>(random() % 20);
    }
    ASSERT_OK_AND_ASSIGN(const SavedChoice choice, SolveMinCut(problem));
    double limit_before = 0;
    for (int step = 0; step <= 10; ++step) {
      const double limit = MemoryLimit(problem, choice.saved, step / 10.0);
      EXPECT_GE(limit, limit_before);
      limit_before = limit;
      const std::vector<Value> kept =
          WithinBudget(problem, choice.saved, step / 10.0);
      EXPECT_LE(MemoryOf(problem, NeededOf(problem, kept)), limit);
    }
    EXPECT_EQ(limit_before, MemoryOf(problem, NeededOf(problem, choice.saved)));
  }
}

TEST(Knapsack, IsOptimalUpToItsResolution) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<KnapsackItem> items;
    const int count = static_cast<int>(random() % 10);
    for (int i = 0; i < count; ++i) {
      items.push_back({static_cast<double>(random() % 30),
                       static_cast<double>(random() % 100)});
    }
    // Rounding takes nothing away from a capacity in whole numbers.
    const int capacity = 1 + static_cast<int>(random() % 60);
    double best = 0;
    for (int set = 0; set < (1 << count); ++set) {
      double weight = 0;
      double worth = 0;
      for (int i = 0; i < count; ++i) {
        if ((set >> i & 1) == 0) continue;
        weight += items[i].weight;
        worth += items[i].worth;
      }
      if (weight <= capacity) best = std::max(best, worth);
    }
    double weight = 0;
    double worth = 0;
    for (int i : SolveKnapsack(items, capacity, capacity)) {
      weight += items[i].weight;
      worth += items[i].worth;
    }
    EXPECT_EQ(worth, best);
    EXPECT_LE(weight, capacity);
    // A coarse one keeps the capacity, too.
    weight = 0;
    for (int i : SolveKnapsack(items, capacity, 7)) weight += items[i].weight;
    EXPECT_LE(weight, capacity);
  }
  EXPECT_THAT(SolveKnapsack({{0, 1}, {1, 1}}, 0), ElementsAre(0));
}

class TransformerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    rules_ = LoadTransformer(std::make_shared<Context>());
  }
  static void TearDownTestSuite() { rules_.reset(); }

  absl::StatusOr<JointGraph> Joint(const TransformerSizes& sizes,
                                   const RuleSet& rules) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph, Transformer(rules, sizes));
    JointGraphOptions options;
    options.active.assign(graph.inputs().size(), true);
    options.num_params_buffers = static_cast<int>(graph.inputs().size()) - 1;
    return MakeJointGraph(graph, options, rules);
  }

  static inline std::shared_ptr<const RuleSet> rules_;
};

// Memory stays below what the budget allows and never falls with it; what is
// computed again never grows with it.
TEST_F(TransformerTest, BudgetsAreMonotone) {
  TransformerSizes sizes;
  sizes.layers = 3;
  ASSERT_OK_AND_ASSIGN(JointGraph joint, Joint(sizes, *rules_));
  for (const bool expanded : {false, true}) {
    if (expanded) {
      ASSERT_OK_AND_ASSIGN(joint.graph, Expand(joint.graph, *rules_));
    }
    ASSERT_OK_AND_ASSIGN(const SavingProblem problem,
                         MakeSavingProblem(joint, *rules_, {}));
    ASSERT_OK_AND_ASSIGN(const SavedChoice choice, SolveMinCut(problem));
    ASSERT_OK_AND_ASSIGN(const std::vector<ParetoPoint> points,
                         MemoryPareto(joint, *rules_, {}, 40));
    ASSERT_EQ(points.size(), 41u);
    double before = 0;
    for (const ParetoPoint& point : points) {
      SCOPED_TRACE(point.budget);
      EXPECT_LE(point.saved_bytes,
                MemoryLimit(problem, choice.saved, point.budget));
      EXPECT_GE(point.saved_bytes, before);
      before = point.saved_bytes;
      // Recomputing the one or the other of two layers is as good.
      if (point.budget > 0) {
        EXPECT_LE(point.recomputed_share, points[0].recomputed_share + 1e-12);
      }
    }
    for (size_t i = 1; i < points.size(); ++i) {
      EXPECT_LE(points[i].recomputed_operations,
                points[i - 1].recomputed_operations * (1 + 1e-9))
          << points[i].budget;
    }
    // Only the input is saved at 0; at 1, what the cut saves.
    EXPECT_EQ(points.front().saved_bytes, 8 * 128 * 128 * 4);
    EXPECT_EQ(points.back().saved_bytes,
              MemoryOf(problem, NeededOf(problem, choice.saved)));
    EXPECT_GT(points.back().saved_bytes, 10 * points.front().saved_bytes);
  }
}

// Twelve blocks in f64, by the interpreter.
TEST_F(TransformerTest, GradientsAreThoseOfTheJointGraph) {
  const auto rules = LoadTransformer(std::make_shared<Context>(), DType::kF64);
  TransformerSizes sizes;
  sizes.batch = 2;
  sizes.time = 3;
  sizes.width = 8;
  sizes.heads = 2;
  sizes.mlp = 12;
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, Joint(sizes, *rules));
  for (double budget : {1.0, 0.4, 0.0}) {
    MinCutOptions options;
    options.activation_memory_budget = budget;
    ASSERT_OK_AND_ASSIGN(
        const Partition partition,
        MinCutRematerializationPartition(joint, *rules, options));
    EXPECT_THAT(CompareWithJoint(joint, partition, *rules), IsOk()) << budget;
  }
  ASSERT_OK_AND_ASSIGN(const Partition partition, DefaultPartition(joint));
  EXPECT_THAT(CompareWithJoint(joint, partition, *rules), IsOk());
}

// The figures that are reported, within bounds that say what they are worth.
TEST_F(TransformerTest, SavesLessForLittle) {
  ASSERT_OK_AND_ASSIGN(const JointGraph joint, Joint({}, *rules_));
  CostModel costs(*rules_);
  ASSERT_OK_AND_ASSIGN(const Partition plain, DefaultPartition(joint));
  ASSERT_OK_AND_ASSIGN(const PartitionFigures all,
                       FiguresOf(joint, plain, costs));
  ASSERT_OK_AND_ASSIGN(const Partition cut,
                       MinCutRematerializationPartition(joint, *rules_));
  ASSERT_OK_AND_ASSIGN(const PartitionFigures some,
                       FiguresOf(joint, cut, costs));
  EXPECT_EQ(all.recomputed_nodes, 0);
  EXPECT_EQ(all.recomputed_operations, 0);
  EXPECT_LT(some.saved_bytes, 0.8 * all.saved_bytes);
  ASSERT_OK_AND_ASSIGN(const double operations, costs.Operations(joint.graph));
  EXPECT_GT(some.recomputed_operations, 0);
  EXPECT_LT(some.recomputed_operations, 0.02 * operations);
}

// Weights cost nothing where they are static, and bytes where they are not.
TEST_F(TransformerTest, StaticInputsAreFree) {
  TransformerSizes sizes;
  sizes.layers = 1;
  ASSERT_OK_AND_ASSIGN(JointGraph joint, Joint(sizes, *rules_));
  MinCutOptions options;
  ASSERT_OK_AND_ASSIGN(const SavingProblem free,
                       MakeSavingProblem(joint, *rules_, options));
  options.static_inputs_are_free = false;
  ASSERT_OK_AND_ASSIGN(const SavingProblem paid,
                       MakeSavingProblem(joint, *rules_, options));
  const Value weight = joint.graph.inputs()[2].value;  // wq
  EXPECT_EQ(free.save[weight.id], 0);
  EXPECT_EQ(free.bytes[weight.id], 0);
  EXPECT_EQ(paid.bytes[weight.id], 128 * 128 * 4);
  EXPECT_EQ(paid.save[weight.id], 2 * 128 * 128 * 4);
}

TEST_F(MinCutTest, LongChainsEnd) {
  GraphBuilder b(rules_->context());
  const TensorType type{DType::kF32, {Dim(64)}};
  const Value x = b.Input("x", type);
  Value y = x;
  for (int i = 0; i < 50; ++i) y = b.Apply(Primitive::kAbs, {y});
  const Value z = b.Apply(Primitive::kSin, {y});
  const Value cotangent = b.Input("z.cotangent", type);
  const Value back = b.Apply(Primitive::kMul, {cotangent, y});
  JointGraph joint;
  joint.graph = *std::move(b).Build({{"z", z}, {"x.cotangent", back}});
  joint.primals = 1;
  joint.outputs = 1;
  joint.is_static = {true};
  joint.depends = {true};
  MinCutOptions options;
  options.cost.operations_per_byte = 1e9;
  ASSERT_OK_AND_ASSIGN(SavedChoice choice,
                       ChooseByMinCut(joint, *rules_, options));
  EXPECT_THAT(choice.saved, ElementsAre(joint.graph.inputs()[0].value));
  options.max_recompute_chain = 20;
  ASSERT_OK_AND_ASSIGN(choice, ChooseByMinCut(joint, *rules_, options));
  ASSERT_THAT(choice.saved, Not(IsEmpty()));
  EXPECT_GE(choice.saved.front().id, 40u);
}

TEST_F(MinCutTest, PictureHasAllPoints) {
  std::vector<ParetoPoint> points(3);
  points[0] = {0, 1e6, 5, 3e9, 0.3, true};
  points[1] = {0.5, 4e6, 3, 2e9, 0.2, true};
  points[2] = {1, 5e6, 3, 2e9, 0.2, false};
  const std::string svg = ParetoSvg(points, "a < b");
  EXPECT_THAT(svg, HasSubstr("<title>budget 0</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>budget 0.5</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>budget 1</title>"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("memory held for the backward half, MB"));
  EXPECT_THAT(svg, HasSubstr("operations computed again, of all"));
  // The line has the optimal points alone.
  EXPECT_THAT(svg, HasSubstr("points=\"204.0,50.0 576.0,160.0 \""));
  // One point alone, and nothing computed again.
  EXPECT_THAT(ParetoSvg({ParetoPoint{}}, ""), HasSubstr("budget 0"));
}

}  // namespace
}  // namespace cleave::aot
