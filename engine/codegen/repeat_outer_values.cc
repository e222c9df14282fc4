#include "engine/codegen/repeat_outer_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/codegen/base_reads.h"
#include "engine/codegen/fuse_totals.h"
#include "engine/codegen/stored.h"
#include "ops/element_cost.h"
#include "ops/outer_shape.h"

namespace cleave {
namespace {

// Operations per element that take less time than to store it and read it back.
constexpr int kMaxCost = 8;

class Repeater {
 public:
  Repeater(const Graph& graph, FusionPlan plan)
      : graph_(graph), plan_(std::move(plan)) {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      for (const Value v : plan_.groups[g].nodes) group_of_[v] = g;
    }
    for (const NamedValue& output : graph.outputs()) {
      returned_.insert(output.value);
    }
    for (const FusionBoundary& boundary : plan_.boundaries) {
      readers_[boundary.producer].insert(boundary.consumer);
    }
  }

  FusionPlan Run() && {
    for (FusionGroup& group : plan_.groups) {
      if (!IsFused(group)) continue;
      const std::vector<Value> outputs = group.outputs;
      for (const Value v : outputs) Repeat(v, group);
    }
    FusionPlan result;
    for (FusionGroup& group : plan_.groups) {
      if (!group.outputs.empty()) result.groups.push_back(std::move(group));
    }
    for (FusionBoundary& boundary : plan_.boundaries) {
      if (repeated_.count(boundary.producer) > 0) continue;
      result.boundaries.push_back(std::move(boundary));
    }
    return result;
  }

 private:
  // How a value is made: the nodes, and the values of the same group that they
  // begin at, which have far fewer elements.
  struct Cone {
    std::vector<Value> nodes;
    std::set<Value> small;
  };

  static bool IsFused(const FusionGroup& group) {
    return group.kind == GroupKind::kPointwise ||
           group.kind == GroupKind::kReduction;
  }

  static bool IsOutput(const FusionGroup& group, Value v) {
    return std::count(group.outputs.begin(), group.outputs.end(), v) > 0;
  }

  void Repeat(Value v, FusionGroup& group) {
    const auto readers = readers_.find(v);
    if (returned_.count(v) > 0 || readers == readers_.end()) return;
    const std::optional<Cone> cone = CheapCone(v, group);
    if (!cone.has_value()) return;
    const std::vector<Value>& nodes = cone->nodes;
    std::set<size_t> homes;
    for (const Value reader : readers->second) {
      if (!ReadsEachOnce(reader, v)) return;
      homes.insert(group_of_.at(reader));
    }
    for (const size_t home : homes) {
      if (!IsFused(plan_.groups[home]) ||
          CostOfNodes(graph_, plan_.groups[home].nodes) +
                  CostOfNodes(graph_, nodes) >
              kMaxGroupCost) {
        return;
      }
    }
    for (const size_t home : homes) {
      std::set<Value> all(plan_.groups[home].nodes.begin(),
                          plan_.groups[home].nodes.end());
      all.insert(nodes.begin(), nodes.end());
      plan_.groups[home].nodes.assign(all.begin(), all.end());
    }
    group.outputs.erase(
        std::find(group.outputs.begin(), group.outputs.end(), v));
    Store(*cone, group);
    group.nodes = NodesOf(group);
    repeated_.insert(v);
  }

  // Makes the small values that the cone begins at results of their group.
  void Store(const Cone& cone, FusionGroup& group) {
    for (const Value node : cone.nodes) {
      for (const BaseRead& read : BaseReads(graph_, node)) {
        if (cone.small.count(read.base) == 0) continue;
        if (!readers_[read.base].insert(node).second) continue;
        plan_.boundaries.push_back(
            {read.base, node,
             "what is made of it is computed where it is read"});
      }
    }
    std::set<Value> outputs(group.outputs.begin(), group.outputs.end());
    outputs.insert(cone.small.begin(), cone.small.end());
    group.outputs.assign(outputs.begin(), outputs.end());
  }

  // The nodes of the group that its outputs need.
  std::vector<Value> NodesOf(const FusionGroup& group) const {
    const std::set<Value> members(group.nodes.begin(), group.nodes.end());
    std::set<Value> nodes;
    std::vector<Value> stack;
    const auto visit = [&](Value v) {
      if (members.count(v) > 0 && nodes.insert(v).second) stack.push_back(v);
    };
    for (const Value v : group.outputs) {
      visit(v);
      if (IsMovement(graph_, v)) {
        for (const BaseRead& read : BaseReads(graph_, v)) visit(read.base);
      }
    }
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      for (const BaseRead& read : BaseReads(graph_, at)) visit(read.base);
    }
    return {nodes.begin(), nodes.end()};
  }

  // The nodes of the group that make `v` of smaller values.
  std::optional<Cone> CheapCone(Value v, const FusionGroup& group) const {
    const std::set<Value> members(group.nodes.begin(), group.nodes.end());
    std::set<Value> nodes, small;
    std::vector<Value> stack = {v};
    int cost = 0;
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      if (!nodes.insert(at).second) continue;
      const Primitive primitive = ToPrimitive(graph_.node(at).op);
      cost += CostOf(primitive);
      // Another result of the group stays one: it may be an index, which is
      // checked where it is stored.
      const bool result = at != v && IsOutput(group, at);
      if (ClassOf(primitive) != PrimitiveClass::kPointwise || result ||
          IsStored(graph_, at) || cost > kMaxCost) {
        return std::nullopt;
      }
      for (const BaseRead& read : BaseReads(graph_, at)) {
        if (read.scattered) return std::nullopt;
        const bool member = members.count(read.base) > 0;
        const bool outer =
            IsOuter(graph_.type(v).shape, graph_.type(read.base).shape);
        if (member && outer && IsOfReductions(read.base, members)) {
          small.insert(read.base);
        } else if (member) {
          stack.push_back(read.base);
        } else if (!outer) {
          return std::nullopt;
        }
      }
    }
    return Cone{{nodes.begin(), nodes.end()}, std::move(small)};
  }

  // Whether the member is a reduction, or made of one's results.
  bool IsOfReductions(Value v, const std::set<Value>& members) const {
    std::set<Value> seen = {v};
    std::vector<Value> stack = {v};
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      if (ClassOf(ToPrimitive(graph_.node(at).op)) ==
          PrimitiveClass::kReduction) {
        return true;
      }
      for (const BaseRead& read : BaseReads(graph_, at)) {
        if (members.count(read.base) == 0) continue;
        if (seen.insert(read.base).second) stack.push_back(read.base);
      }
    }
    return false;
  }

  bool ReadsEachOnce(Value reader, Value v) const {
    for (const BaseRead& read : BaseReads(graph_, reader)) {
      if (read.base != v) continue;
      if (read.moved || read.repeated || read.scattered) return false;
    }
    return true;
  }

  const Graph& graph_;
  FusionPlan plan_;
  std::map<Value, size_t> group_of_;
  std::map<Value, std::set<Value>> readers_;  // of other groups
  std::set<Value> returned_;
  std::set<Value> repeated_;
};

}  // namespace

FusionPlan RepeatOuterValues(const Graph& graph, FusionPlan plan) {
  return Repeater(graph, std::move(plan)).Run();
}

}  // namespace cleave
