#include "engine/codegen/fuse_totals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/codegen/base_reads.h"
#include "engine/codegen/collapse_axes.h"
#include "engine/codegen/reduction_spaces.h"
#include "ops/element_cost.h"

namespace cleave {
namespace {

// Extents but for those of 1.
Shape NonUnit(const Shape& shape) {
  Shape result;
  for (const Dim& dim : shape) {
    if (dim != Dim(1)) result.push_back(dim);
  }
  return result;
}

// The extents that the reductions of a group run over.
struct GroupSpace {
  Shape shape;
  Shape kept;  // without extents of 1
  bool reduces = false;
  bool keeps_none = true;
};

class Fuser {
 public:
  Fuser(const Graph& graph, FusionPlan plan)
      : graph_(graph), plan_(std::move(plan)) {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      for (const Value v : plan_.groups[g].nodes) group_of_[v] = g;
    }
    for (const NamedValue& output : graph.outputs()) {
      returned_.insert(output.value);
    }
    for (const FusionBoundary& boundary : plan_.boundaries) {
      readers_[boundary.producer].insert(group_of_.at(boundary.consumer));
    }
  }

  FusionPlan Run() && {
    for (size_t rows = 0; rows < plan_.groups.size(); ++rows) {
      const std::set<size_t> totals = ReadersOf(rows);
      if (!AreTotalsOf(rows, totals)) continue;
      const Shape kept = SpaceOf(plan_.groups[rows])->kept;
      const size_t home = *totals.rbegin();
      std::set<size_t> joined = totals;
      joined.insert(rows);
      if (!IsLowered(joined)) continue;
      for (size_t group = 0; group < home; ++group) {
        if (!IsTotalBeside(joined, kept, group)) continue;
        joined.insert(group);
        if (!IsLowered(joined)) joined.erase(group);
      }
      Join(joined, home);
    }
    FusionPlan result;
    for (FusionGroup& group : plan_.groups) {
      if (!group.nodes.empty()) result.groups.push_back(std::move(group));
    }
    for (FusionBoundary& boundary : plan_.boundaries) {
      if (group_of_.at(boundary.producer) != group_of_.at(boundary.consumer)) {
        result.boundaries.push_back(std::move(boundary));
      }
    }
    return result;
  }

 private:
  // nullopt where the group is no reduction over one space.
  std::optional<GroupSpace> SpaceOf(const FusionGroup& group) const {
    if (group.kind != GroupKind::kReduction) return std::nullopt;
    GroupSpace space;
    for (const Value v : group.nodes) {
      if (!IsReduction(graph_, v)) continue;
      const Shape& shape = graph_.type(graph_.operands(v)[0]).shape;
      if (space.reduces && shape != space.shape) return std::nullopt;
      space.reduces = true;
      space.shape = shape;
      space.kept = NonUnit(graph_.type(v).shape);
      space.keeps_none &=
          graph_.attributes(v).GetInts("axes").size() == shape.size();
      if (graph_.attributes(v).GetInts("axes").empty()) return std::nullopt;
    }
    if (!space.reduces) return std::nullopt;
    return space;
  }

  // The groups as one, which is of the kind of the last.
  FusionGroup Joined(const std::set<size_t>& groups) const {
    FusionGroup joined;
    joined.kind = GroupKind::kReduction;
    for (const size_t group : groups) {
      const FusionGroup& part = plan_.groups[group];
      joined.nodes.insert(joined.nodes.end(), part.nodes.begin(),
                          part.nodes.end());
      for (const Value v : part.outputs) {
        if (IsReadOutside(v, groups)) joined.outputs.push_back(v);
      }
    }
    std::sort(joined.nodes.begin(), joined.nodes.end());
    std::sort(joined.outputs.begin(), joined.outputs.end());
    return joined;
  }

  bool IsReadOutside(Value v, const std::set<size_t>& groups) const {
    if (returned_.count(v) > 0) return true;
    const auto readers = readers_.find(v);
    return readers != readers_.end() &&
           !std::includes(groups.begin(), groups.end(), readers->second.begin(),
                          readers->second.end());
  }

  // Whether the groups have rows and totals as one, too. Axes of extent 1 that
  // one of them needs, and not the other, tell their shapes apart.
  bool IsLowered(const std::set<size_t>& groups) const {
    const absl::StatusOr<Graph> graph =
        CollapseAxes(ExtractGroup(graph_, Joined(groups)).graph);
    return graph.ok() && FindRowsAndTotals(*graph).has_value();
  }

  std::set<size_t> ReadersOf(size_t group) const {
    std::set<size_t> all;
    for (const Value v : plan_.groups[group].outputs) {
      const auto readers = readers_.find(v);
      if (readers == readers_.end()) continue;
      all.insert(readers->second.begin(), readers->second.end());
    }
    return all;
  }

  // Whether the groups `totals` reduce what group `rows` makes, for them alone.
  bool AreTotalsOf(size_t rows, const std::set<size_t>& totals) const {
    const std::optional<GroupSpace> space = SpaceOf(plan_.groups[rows]);
    if (!space.has_value() || space->keeps_none || space->kept.empty() ||
        totals.empty()) {
      return false;
    }
    for (const Value v : plan_.groups[rows].outputs) {
      if (returned_.count(v) > 0) return false;
    }
    int cost = CostOfNodes(graph_, plan_.groups[rows].nodes);
    for (const size_t total : totals) {
      if (!IsTotalOf(rows, space->kept, total)) return false;
      cost += CostOfNodes(graph_, plan_.groups[total].nodes);
      // The kernel of all runs where the last of them did.
      for (const size_t reader : ReadersOf(total)) {
        if (reader < *totals.rbegin()) return false;
      }
    }
    return cost <= kMaxGroupCost;
  }

  bool IsTotalOf(size_t rows, const Shape& kept, size_t total) const {
    const FusionGroup& group = plan_.groups[total];
    const std::optional<GroupSpace> space = SpaceOf(group);
    if (!space.has_value() || !space->keeps_none ||
        NonUnit(space->shape) != kept) {
      return false;
    }
    for (const Value v : group.outputs) {
      if (graph_.type(v).rank() != 0) return false;
    }
    for (const Value v : group.nodes) {
      for (const BaseRead& read : BaseReads(graph_, v)) {
        const auto producer = group_of_.find(read.base);
        if (producer == group_of_.end() || producer->second != rows) continue;
        if (!ReadsRows(read, kept)) return false;
      }
    }
    return true;
  }

  // Whether the read is of rows, each at its own place.
  bool ReadsRows(const BaseRead& read, const Shape& rows) const {
    if (read.moved || read.scattered || read.repeated) return false;
    const Shape& shape = graph_.type(read.base).shape;
    if (NonUnit(shape) != rows) return false;
    int last = -1;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == Dim(1)) continue;
      if (read.axes[d] <= last) return false;
      last = read.axes[d];
    }
    return true;
  }

  // Whether the group reduces values per row to totals, and makes others, for
  // the rows and totals that are `joined` alone: weights and their sum, say.
  bool IsTotalBeside(const std::set<size_t>& joined, const Shape& kept,
                     size_t group) const {
    if (joined.count(group) > 0) return false;
    const FusionGroup& beside = plan_.groups[group];
    const std::optional<GroupSpace> space = SpaceOf(beside);
    const std::set<size_t> readers = ReadersOf(group);
    if (!space.has_value() || !space->keeps_none ||
        NonUnit(space->shape) != kept || readers.empty() ||
        !std::includes(joined.begin(), joined.end(), readers.begin(),
                       readers.end())) {
      return false;
    }
    const FusionGroup home = Joined(joined);
    if (CostOfNodes(graph_, home.nodes) + CostOfNodes(graph_, beside.nodes) >
        kMaxGroupCost)
      return false;
    for (const Value v : beside.outputs) {
      if (returned_.count(v) > 0) return false;
    }
    for (const Value v : home.nodes) {
      for (const BaseRead& read : BaseReads(graph_, v)) {
        const auto producer = group_of_.find(read.base);
        if (producer == group_of_.end() || producer->second != group) continue;
        if (graph_.type(read.base).rank() == 0 || ReadsRows(read, kept)) {
          continue;
        }
        // As an index: it is computed where it is read.
        const PrimitiveClass c =
            ClassOf(ToPrimitive(graph_.node(read.base).op));
        if (read.scattered || c != PrimitiveClass::kPointwise) return false;
      }
    }
    return true;
  }

  // One group in the place of `home`.
  void Join(const std::set<size_t>& groups, size_t home) {
    FusionGroup joined = Joined(groups);
    for (const size_t group : groups) plan_.groups[group] = {};
    for (const Value v : joined.nodes) group_of_[v] = home;
    plan_.groups[home] = std::move(joined);
    for (auto& [value, readers] : readers_) {
      for (const size_t group : groups) {
        if (readers.erase(group) > 0) readers.insert(home);
      }
      if (group_of_.at(value) == home) readers.erase(home);
    }
  }

  const Graph& graph_;
  FusionPlan plan_;
  std::map<Value, size_t> group_of_;
  std::map<Value, std::set<size_t>> readers_;  // other groups
  std::set<Value> returned_;
};

}  // namespace

int CostOfNodes(const Graph& graph, const std::vector<Value>& nodes) {
  int cost = 0;
  for (const Value v : nodes) cost += CostOf(ToPrimitive(graph.node(v).op));
  return cost;
}

FusionPlan FuseTotals(const Graph& graph, FusionPlan plan) {
  return Fuser(graph, std::move(plan)).Run();
}

}  // namespace cleave
