// The values that the backward half of a transformer block holds in memory, and
// those that it computes again, by how the block is cut in two.

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/substitute.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/memory_pareto.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/partition.h"
#include "transforms/partition/partition_figures.h"
#include "transforms/partition/recompute_cost.h"

namespace cleave {
namespace {

// 8 sequences of 128 embeddings of 128 numbers, 4 heads.
const DimSubstitution& Sizes() {
  static const auto& sizes =
      *new DimSubstitution{{"B", Dim(8)}, {"T", Dim(128)}, {"D", Dim(128)},
                           {"H", Dim(4)}, {"E", Dim(32)},  {"M", Dim(512)}};
  return sizes;
}

// Numbers of a normal distribution; weights so small that the variance stays.
Tensor Draw(const TensorType& type, double scale, std::mt19937_64& random) {
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
  Tensor tensor(type.dtype, shape);
  std::normal_distribution<double> normal(0, scale);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, normal(random));
  }
  return tensor;
}

// Relative to the largest element of each tensor.
double LargestDifference(const std::vector<Tensor>& got,
                         const std::vector<Tensor>& want) {
  double result = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double difference = 0;
    double size = 0;
    for (int64_t k = 0; k < want[i].size(); ++k) {
      const double x = want[i].GetDouble(k);
      size = std::max(size, std::abs(x));
      difference = std::max(difference, std::abs(got[i].GetDouble(k) - x));
    }
    result = std::max(result, difference / size);
  }
  return result;
}

// Both halves as kernels.
class Halves {
 public:
  static absl::StatusOr<Halves> Compile(const aot::Partition& partition,
                                        const RuleSet& rules) {
    CLEAVE_ASSIGN_OR_RETURN(Kernel forward,
                            CompileCalls(partition.forward, rules));
    CLEAVE_ASSIGN_OR_RETURN(Kernel backward,
                            CompileCalls(partition.backward, rules));
    return Halves(std::move(forward), std::move(backward));
  }

  // The cotangents of all inputs, for that of the one output.
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                          const Tensor& cotangent) const {
    CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results, forward_.Run(inputs));
    results.erase(results.begin());
    results.push_back(cotangent);
    return backward_.Run(results);
  }

 private:
  Halves(Kernel forward, Kernel backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  Kernel forward_;
  Kernel backward_;
};

}  // namespace

absl::Status RunTransformerBlock(const ExampleContext& context,
                                 std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(const auto rules,
                          LoadExampleRules(context, "transformer_block.rules"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph any_size,
                          rules->Function("transformer_block"));
  const Graph block = *SubstituteDims(any_size, Sizes());
  const int weights = static_cast<int>(block.inputs().size()) - 1;

  aot::JointGraphOptions options;
  options.active.assign(weights + 1, true);
  options.num_params_buffers = weights;  // they live on: to save them is free
  CLEAVE_ASSIGN_OR_RETURN(const aot::JointGraph joint,
                          aot::MakeJointGraph(block, options, *rules));

  // The values that are saved without a choice; those that a minimum cut saves;
  // and those that fit in a part of the memory that the cut needs.
  struct Choice {
    std::string name;
    absl::StatusOr<aot::Partition> partition;
  };
  std::vector<Choice> choices;
  choices.push_back({"default", aot::DefaultPartition(joint)});
  for (const double budget : {1.0, 0.5, 0.0}) {
    aot::MinCutOptions min_cut;
    min_cut.activation_memory_budget = budget;
    choices.push_back(
        {absl::StrFormat("min-cut, %3.0f %%", 100 * budget),
         aot::MinCutRematerializationPartition(joint, *rules, min_cut)});
  }

  std::mt19937_64 random(1);
  std::vector<Tensor> inputs;
  for (const NamedValue& input : block.inputs()) {
    const bool is_x = input.name == "x";
    inputs.push_back(
        Draw(block.type(input.value), is_x ? 1 : 1 / std::sqrt(128), random));
  }
  const Tensor cotangent =
      Draw(block.type(block.outputs()[0].value), 1, random);

  aot::CostModel costs(*rules);
  CLEAVE_ASSIGN_OR_RETURN(const double operations,
                          costs.Operations(joint.graph));
  std::vector<Tensor> expected;
  double difference = 0;
  out << "partition         saved         held  computed again"
      << (context.times ? "      time\n" : "\n");
  for (const Choice& choice : choices) {
    CLEAVE_RETURN_IF_ERROR(choice.partition.status());
    CLEAVE_ASSIGN_OR_RETURN(const aot::PartitionFigures figures,
                            aot::FiguresOf(joint, *choice.partition, costs));
    const int64_t held =
        std::count_if(figures.saved.begin(), figures.saved.end(),
                      [](const aot::SavedFigure& saved) {
                        return saved.kind == aot::SavedKind::kActivation ||
                               saved.kind == aot::SavedKind::kInput;
                      });
    out << absl::StrFormat("%-16s  %5d  %8.1f MB  %12.1f %%", choice.name, held,
                           figures.saved_bytes / 1e6,
                           100 * figures.recomputed_operations / operations);

    CLEAVE_ASSIGN_OR_RETURN(const Halves halves,
                            Halves::Compile(*choice.partition, *rules));
    std::vector<Tensor> cotangents;
    const auto run = [&]() -> absl::Status {
      CLEAVE_ASSIGN_OR_RETURN(cotangents, halves.Run(inputs, cotangent));
      return absl::OkStatus();
    };
    if (context.times) {
      CLEAVE_ASSIGN_OR_RETURN(const double milliseconds, Milliseconds(run));
      out << absl::StrFormat("  %5.1f ms", milliseconds);
    } else {
      CLEAVE_RETURN_IF_ERROR(run());
    }
    out << "\n";
    if (expected.empty()) expected = cotangents;
    difference = std::max(difference, LargestDifference(cotangents, expected));
  }
  out << "the gradients agree " << Agreement(difference, /*digits=*/5) << "\n";

  // Prints what each part of the memory buys, without compiling anything.
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<aot::ParetoPoint> points,
      aot::MemoryPareto(joint, *rules, /*options=*/{}, /*steps=*/10));
  out << "\nbudget         held  computed again\n";
  for (const aot::ParetoPoint& point : points) {
    out << absl::StrFormat("%4.0f %%  %8.1f MB  %12.1f %%%s\n",
                           100 * point.budget, point.saved_bytes / 1e6,
                           100 * point.recomputed_share,
                           point.is_optimal ? "" : "  (another is better)");
  }
  return absl::OkStatus();
}

}  // namespace cleave
