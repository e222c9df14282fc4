// Which groups of FusionPlanner become one, and the reasons why others do not.

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/fuse_totals.h"
#include "engine/codegen/fusion_planner.h"
#include "engine/codegen/matrix_product.h"
#include "engine/codegen/stored.h"
#include "ops/element_cost.h"

namespace cleave {
namespace {

// Cheap operations per element that computing again may take where a value is
// read more than once, rather than storing it.
constexpr int kCheapOperations = 3;

// Why an edge is not inside a group: of the value that is read.
constexpr char kElsewhere[] = "it is read at other places than it is made at";
constexpr char kOtherAxes[] = "it is read along other axes";
constexpr char kOtherShape[] = "its reader has another shape";
constexpr char kOtherReduction[] = "its reader is reduced over other axes";
constexpr char kCircle[] = "the kernels would need each other";
constexpr char kLarge[] = "the kernel is large already";
constexpr char kComputedThere[] = "it is computed where it is read";
constexpr char kRepeated[] = "computing it again at each read costs more";
constexpr char kOthersRead[] = "other kernels read it, too";
constexpr char kLibraryProduct[] = "a library computes the product alone";
constexpr char kReturned[] = "the graph returns it, too";

}  // namespace

bool FusionPlanner::Depends(int a, int b) const {
  std::vector<int> stack = {a};
  std::set<int> seen = {a};
  while (!stack.empty()) {
    const int at = stack.back();
    stack.pop_back();
    for (const int next : groups_[at].reads) {
      if (next == b) return true;
      if (seen.insert(next).second) stack.push_back(next);
    }
  }
  return false;
}

bool FusionPlanner::Refuse(Value producer, Value consumer, std::string why) {
  boundaries_[{producer, consumer}] = std::move(why);
  return false;
}

std::optional<std::vector<int>> FusionPlanner::AxesIn(int id, Value v,
                                                      const Shape& shape,
                                                      const Reads& reads) {
  const Group& group = groups_[id];
  std::vector<int> axes(shape.size(), -1);
  for (const BaseRead& read : reads) {
    if (group_of_[read.base.id] != id) continue;
    if (read.scattered || read.moved) {
      Refuse(read.base, v, kElsewhere);
      return std::nullopt;
    }
    const auto base = group.axes.find(read.base);
    if (base == group.axes.end()) {
      Refuse(read.base, v, kComputedThere);
      return std::nullopt;
    }
    for (size_t d = 0; d < read.axes.size(); ++d) {
      const int reader = read.axes[d];
      const int space = base->second[d];
      if (reader < 0 || space < 0) continue;
      if (axes[reader] >= 0 && axes[reader] != space) {
        Refuse(read.base, v, kOtherAxes);
        return std::nullopt;
      }
      axes[reader] = space;
    }
  }
  if (shape == group.space) {
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] >= 0 && axes[d] != static_cast<int>(d)) {
        RefuseAll(id, v, reads, kOtherAxes);
        return std::nullopt;
      }
      axes[d] = static_cast<int>(d);
    }
    return axes;
  }
  // The level of the reductions' results.
  std::vector<int> rows;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (shape[d] == Dim(1)) continue;
    if (axes[d] >= 0) {
      rows.push_back(axes[d]);
    } else {
      RefuseAll(id, v, reads, kOtherShape);
      return std::nullopt;
    }
  }
  if (!group.reduced.has_value() || rows != NonUnit(group)) {
    RefuseAll(id, v, reads, kOtherShape);
    return std::nullopt;
  }
  return axes;
}

std::vector<int> FusionPlanner::NonUnit(const Group& group) const {
  std::vector<int> axes;
  for (const int d : Kept(*group.reduced)) {
    if (group.space[d] != Dim(1)) axes.push_back(d);
  }
  return axes;
}

bool FusionPlanner::RefuseAll(int id, Value v, const Reads& reads,
                              const std::string& why) {
  for (const BaseRead& read : reads) {
    if (group_of_[read.base.id] == id) Refuse(read.base, v, why);
  }
  return false;
}

bool FusionPlanner::Join(Value v, const Reads& reads, int id) {
  Group& group = groups_[id];
  if (!HasCode(group.kind) || group.kind == GroupKind::kStructured) {
    return RefuseAll(
        id, v, reads,
        absl::StrCat("a ", GroupKindName(group.kind), " kernel stands alone"));
  }
  if (options_.library_products && group.kind == GroupKind::kContraction &&
      IsLargeProduct(graph_, group.nodes[0])) {
    return RefuseAll(id, v, reads, kLibraryProduct);
  }
  if (group.cost + CostOf(PrimitiveOf(v)) > kMaxGroupCost) {
    return RefuseAll(id, v, reads, kLarge);
  }
  for (const int other : Candidates(reads)) {
    if (other != id && Depends(other, id)) {
      return RefuseAll(id, v, reads, kCircle);
    }
  }
  if (ClassOf(PrimitiveOf(v)) == PrimitiveClass::kReduction) {
    return JoinReduction(v, reads, id);
  }
  auto axes = AxesIn(id, v, graph_.type(v).shape, reads);
  if (!axes.has_value()) return false;
  Add(v, id, *std::move(axes));
  return true;
}

bool FusionPlanner::JoinReduction(Value v, const Reads& reads, int id) {
  Group& group = groups_[id];
  if (group.kind == GroupKind::kContraction) {
    return RefuseAll(id, v, reads, "a contraction's results are not reduced");
  }
  const Shape& shape = graph_.type(graph_.operands(v)[0]).shape;
  if (shape != group.space) {
    return RefuseAll(id, v, reads, kOtherShape);
  }
  if (!AxesIn(id, v, shape, reads).has_value()) return false;
  const std::vector<bool> reduced = ReducedAxes(v);
  if (group.reduced.has_value() && *group.reduced != reduced) {
    return RefuseAll(id, v, reads, kOtherReduction);
  }
  group.kind = GroupKind::kReduction;
  group.reduced = reduced;
  Add(v, id, Kept(reduced));
  return true;
}

void FusionPlanner::Add(Value v, int id, std::vector<int> axes) {
  groups_[id].nodes.push_back(v);
  groups_[id].cost += CostOf(PrimitiveOf(v));
  groups_[id].axes[v] = std::move(axes);
  group_of_[v.id] = id;
}

void FusionPlanner::Merge(Value v, const Reads& reads, int home, int other) {
  Group& a = groups_[home];
  Group& b = groups_[other];
  const auto fusable = [](const Group& g) {
    return g.kind == GroupKind::kPointwise || g.kind == GroupKind::kReduction;
  };
  if (!fusable(a) || !fusable(b)) return;
  const auto refuse = [&](const char* why) {
    for (const BaseRead& read : reads) {
      if (group_of_[read.base.id] == other) {
        boundaries_.try_emplace({read.base, v}, why);
      }
    }
  };
  if (a.space != b.space) return refuse(kOtherShape);
  if (a.reduced && b.reduced && *a.reduced != *b.reduced) {
    return refuse(kOtherReduction);
  }
  if (a.cost + b.cost > kMaxGroupCost) return refuse(kLarge);
  for (const BaseRead& read : reads) {
    if (group_of_[read.base.id] != other) continue;
    if (read.moved || read.scattered) return refuse(kElsewhere);
    if (!AgreesAt(v, read, a, b)) return refuse(kOtherAxes);
  }
  for (const Value node : a.nodes) {
    for (const BaseRead& read : BaseReads(graph_, node)) {
      const bool elsewhere = read.moved || read.scattered;
      if (group_of_[read.base.id] == other && elsewhere) {
        return refuse(kElsewhere);
      }
    }
  }
  for (const int x : a.reads) {
    if (x != other && Depends(x, other)) return refuse(kCircle);
  }
  for (const int x : b.reads) {
    if (x == home || Depends(x, home)) return refuse(kCircle);
  }
  Take(home, other);
}

bool FusionPlanner::AgreesAt(Value v, const BaseRead& read, const Group& a,
                             const Group& b) const {
  const bool reduction = ClassOf(PrimitiveOf(v)) == PrimitiveClass::kReduction;
  const std::vector<int>& mine = a.axes.at(v);
  const auto base = b.axes.find(read.base);
  if (base == b.axes.end()) return false;
  for (size_t d = 0; d < read.axes.size(); ++d) {
    if (read.axes[d] < 0 || base->second[d] < 0) continue;
    const int space = reduction ? read.axes[d] : mine[read.axes[d]];
    if (space != base->second[d]) return false;
  }
  return true;
}

void FusionPlanner::Take(int home, int other) {
  Group& a = groups_[home];
  Group& b = groups_[other];
  for (const Value node : b.nodes) group_of_[node.id] = home;
  a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
  std::sort(a.nodes.begin(), a.nodes.end());
  a.cost += b.cost;
  a.axes.insert(b.axes.begin(), b.axes.end());
  a.reads.insert(b.reads.begin(), b.reads.end());
  a.reads.erase(home);
  a.reads.erase(other);
  if (b.reduced) {
    a.reduced = b.reduced;
    a.kind = GroupKind::kReduction;
  }
  for (Group& group : groups_) {
    if (group.reads.erase(other) > 0) group.reads.insert(home);
  }
  a.reads.erase(home);
  b.alive = false;
}

void FusionPlanner::Absorb(int home, int other) {
  const Group& b = groups_[other];
  if (b.kind != GroupKind::kPointwise) return;
  if (const char* why = WhyNotAbsorb(home, other)) {
    for (const Value node : b.nodes) {
      for (const Value user : users_[node.id]) {
        if (group_of_[user.id] != home) continue;
        std::string& reason = boundaries_[{node, user}];
        if (reason != kCircle) reason = why;
      }
    }
    return;
  }
  // An absorbed group has no place in the space: no group joins by it.
  groups_[other].axes.clear();
  Take(home, other);
}

const char* FusionPlanner::WhyNotAbsorb(int home, int other) const {
  const Group& b = groups_[other];
  if (groups_[home].cost + b.cost > kMaxGroupCost) return kLarge;
  int cost = 0;
  for (const Value node : b.nodes) {
    if (returned_[node.id]) return kReturned;
    cost += CostOf(PrimitiveOf(node));
    for (const Value user : users_[node.id]) {
      const int of = group_of_[user.id];
      if (of != other && of != home) return kOthersRead;
    }
  }
  for (const Value node : b.nodes) {
    for (const Value user : users_[node.id]) {
      if (group_of_[user.id] != home) continue;
      for (const BaseRead& read : BaseReads(graph_, user)) {
        if (read.base != node) continue;
        if (read.scattered) return kElsewhere;
        if (read.repeated &&
            (cost > kCheapOperations || IsStored(graph_, node))) {
          return kRepeated;
        }
      }
    }
  }
  return nullptr;
}

}  // namespace cleave
