#include "transforms/partition/min_cut.h"

#include <lemon/preflow.h>
#include <lemon/static_graph.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/partition/memory_budget.h"
#include "transforms/partition/saving_problem.h"

namespace cleave::aot {
namespace {

constexpr int kSource = 0;
constexpr int kSink = 1;
// Capacities are integers, so that the flow is exact: this is the sum of all
// finite ones.
constexpr double kTotalCapacity = int64_t{1} << 50;

// The flow network. Infinite costs are no arcs of it: the nodes that they tie
// to the source, to the sink or to each other are one node.
class Network {
 public:
  int AddNode() { return nodes_++; }

  void AddArc(int from, int to, double capacity) {
    const bool is_constant = from == kSource && to == kSink;
    if (from == to || to == kSource || from == kSink || is_constant) return;
    arcs_.push_back({from, to, capacity});
    if (capacity != kInfinite) sum_ += capacity;
  }

  // Per node: whether it is on the side of the source. If there are several
  // minimal cuts, the one nearest to the sink.
  std::vector<bool> SourceSide() {
    std::stable_sort(
        arcs_.begin(), arcs_.end(),
        [](const Arc& a, const Arc& b) { return a.from < b.from; });
    std::vector<std::pair<int, int>> ends;
    ends.reserve(arcs_.size());
    for (const Arc& arc : arcs_) ends.emplace_back(arc.from, arc.to);
    lemon::StaticDigraph graph;
    graph.build(nodes_, ends.begin(), ends.end());
    lemon::StaticDigraph::ArcMap<int64_t> capacities(graph);
    const double scale = sum_ > 0 ? kTotalCapacity / sum_ : 1;
    const int64_t infinite =
        2 * static_cast<int64_t>(kTotalCapacity) +
        static_cast<int64_t>(arcs_.size());  // each may be rounded up by one
    for (size_t i = 0; i < arcs_.size(); ++i) {
      capacities[graph.arc(static_cast<int>(i))] =
          arcs_[i].capacity == kInfinite
              ? infinite
              : static_cast<int64_t>(std::ceil(arcs_[i].capacity * scale));
    }
    lemon::Preflow<lemon::StaticDigraph, lemon::StaticDigraph::ArcMap<int64_t>>
        flow(graph, capacities, graph.node(kSource), graph.node(kSink));
    flow.runMinCut();
    std::vector<bool> side(nodes_);
    for (int i = 0; i < nodes_; ++i) side[i] = flow.minCut(graph.node(i));
    return side;
  }

 private:
  struct Arc {
    int from;
    int to;
    double capacity;
  };
  int nodes_ = 2;
  std::vector<Arc> arcs_;
  double sum_ = 0;
};

}  // namespace

absl::StatusOr<SavedChoice> SolveMinCut(const SavingProblem& problem) {
  const Graph& graph = problem.joint->graph;
  const uint32_t size = static_cast<uint32_t>(graph.size());
  Network network;
  std::vector<int> in(size, kSource);
  std::vector<int> out(size, kSource);
  for (uint32_t id = 0; id < size; ++id) {
    if (!problem.decides[id]) continue;
    const absl::Span<const Value> operands = graph.operands(Value{id});
    const double save = problem.save[id];
    const double recompute = problem.recompute[id];
    const bool is_target = problem.is_target[id];
    bool fixed = recompute == kInfinite;
    for (Value v : operands) {
      fixed = fixed || (problem.decides[v.id] && out[v.id] == kSource);
    }
    if (save == kInfinite) {
      if (fixed && is_target) {
        return absl::InvalidArgumentError(
            absl::StrCat("partition: node ", id, " (",
                         graph.context()->op_name(graph.node(Value{id}).op),
                         ") must neither be saved nor computed again"));
      }
      in[id] = out[id] =
          fixed ? kSource : (is_target ? kSink : network.AddNode());
    } else {
      in[id] = fixed ? kSource : network.AddNode();
      out[id] = is_target ? kSink : network.AddNode();
      network.AddArc(in[id], out[id], save);
    }
    if (fixed) continue;
    network.AddArc(kSource, in[id], recompute);
    for (Value v : operands) {
      if (problem.decides[v.id]) network.AddArc(out[v.id], in[id], kInfinite);
    }
  }
  const std::vector<bool> is_source = network.SourceSide();
  SavedChoice choice;
  for (uint32_t id = 0; id < size; ++id) {
    if (!problem.decides[id]) continue;
    if (is_source[in[id]]) {
      if (is_source[out[id]]) continue;
      choice.saved.push_back(Value{id});
      if (problem.offload[id]) choice.offloaded.push_back(Value{id});
      choice.cost += problem.save[id];
    } else {
      choice.cost += problem.recompute[id];
    }
  }
  return choice;
}

absl::StatusOr<SavedChoice> ChooseByMinCut(const JointGraph& joint,
                                           const RuleSet& rules,
                                           const MinCutOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const SavingProblem problem,
                          MakeSavingProblem(joint, rules, options));
  return SolveMinCut(problem);
}

absl::StatusOr<Partition> MinCutRematerializationPartition(
    const JointGraph& joint, const RuleSet& rules,
    const MinCutOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const SavingProblem problem,
                          MakeSavingProblem(joint, rules, options));
  CLEAVE_ASSIGN_OR_RETURN(SavedChoice choice, SolveMinCut(problem));
  if (options.activation_memory_budget < 1) {
    choice.saved =
        WithinBudget(problem, choice.saved, options.activation_memory_budget);
  }
  return PartitionBySaved(joint, choice.saved, choice.offloaded);
}

}  // namespace cleave::aot
