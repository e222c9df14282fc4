#include "engine/codegen/fuse_totals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/codegen/base_reads.h"
#include "engine/codegen/element_cost.h"

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
      Join(rows, totals);
      for (size_t group = 0; group < home; ++group) {
        if (IsTotalBeside(home, kept, group)) Move(group, home);
      }
      DropInnerOutputs(home);
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
      const Primitive primitive = ToPrimitive(graph_.node(v).op);
      if (ClassOf(primitive) != PrimitiveClass::kReduction) continue;
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

  int CostOfGroup(const FusionGroup& group) const {
    int cost = 0;
    for (const Value v : group.nodes) {
      cost += CostOf(ToPrimitive(graph_.node(v).op));
    }
    return cost;
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
    int cost = CostOfGroup(plan_.groups[rows]);
    for (const size_t total : totals) {
      if (!IsTotalOf(rows, space->kept, total)) return false;
      cost += CostOfGroup(plan_.groups[total]);
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
  // the rows and totals of `home` alone: weights and their sum, say.
  bool IsTotalBeside(size_t home, const Shape& kept, size_t group) const {
    const FusionGroup& beside = plan_.groups[group];
    const std::optional<GroupSpace> space = SpaceOf(beside);
    if (!space.has_value() || !space->keeps_none ||
        NonUnit(space->shape) != kept ||
        ReadersOf(group) != std::set<size_t>{home} ||
        CostOfGroup(plan_.groups[home]) + CostOfGroup(beside) > kMaxGroupCost) {
      return false;
    }
    for (const Value v : beside.outputs) {
      if (returned_.count(v) > 0) return false;
    }
    for (const Value v : plan_.groups[home].nodes) {
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

  // Into the last of `totals`.
  void Join(size_t rows, std::set<size_t> totals) {
    const size_t home = *totals.rbegin();
    totals.erase(home);
    totals.insert(rows);
    for (const size_t other : totals) Move(other, home);
  }

  void Move(size_t other, size_t home) {
    FusionGroup& from = plan_.groups[other];
    std::vector<Value>& nodes = plan_.groups[home].nodes;
    for (const Value v : from.nodes) group_of_[v] = home;
    nodes.insert(nodes.end(), from.nodes.begin(), from.nodes.end());
    std::sort(nodes.begin(), nodes.end());
    std::vector<Value>& outputs = plan_.groups[home].outputs;
    outputs.insert(outputs.end(), from.outputs.begin(), from.outputs.end());
    from.nodes.clear();
    from.outputs.clear();
    for (auto& [value, groups] : readers_) {
      if (groups.erase(other) > 0) groups.insert(home);
    }
  }

  // A value that only the kernel itself reads is no output.
  void DropInnerOutputs(size_t home) {
    std::vector<Value> outputs;
    for (const Value v : plan_.groups[home].outputs) {
      const auto readers = readers_.find(v);
      bool read = returned_.count(v) > 0;
      if (readers != readers_.end()) {
        readers->second.erase(home);
        read |= !readers->second.empty();
      }
      if (read) outputs.push_back(v);
    }
    std::sort(outputs.begin(), outputs.end());
    plan_.groups[home].outputs = std::move(outputs);
  }

  const Graph& graph_;
  FusionPlan plan_;
  std::map<Value, size_t> group_of_;
  std::map<Value, std::set<size_t>> readers_;  // other groups
  std::set<Value> returned_;
};

}  // namespace

FusionPlan FuseTotals(const Graph& graph, FusionPlan plan) {
  return Fuser(graph, std::move(plan)).Run();
}

}  // namespace cleave
