#include "engine/codegen/fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/base_reads.h"
#include "engine/codegen/element_cost.h"
#include "engine/codegen/fuse_totals.h"
#include "ops/check.h"

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
constexpr char kReturned[] = "the graph returns it, too";

class Planner {
 public:
  Planner(const Graph& graph, const FusionOptions& options)
      : graph_(graph),
        options_(options),
        group_of_(graph.size(), -1),
        users_(graph.size()),
        returned_(graph.size(), false),
        needed_(graph.size(), false) {}

  absl::StatusOr<FusionPlan> Plan(const HostKernels* host_kernels) {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const OpId op = graph_.node(Value{id}).op;
      if (IsPrimitive(op)) continue;
      const absl::string_view name = graph_.context()->op_name(op);
      if (host_kernels != nullptr && host_kernels->Has(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("`", name,
                       "` is no primitive: a graph is expanded before it is "
                       "compiled, but for what has a host kernel"));
    }
    FindNeeded();
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (needed_[id] && !IsMovement(graph_, Value{id})) Place(Value{id});
    }
    AddReturnedMovement();
    return Finish();
  }

 private:
  struct Group {
    GroupKind kind = GroupKind::kPointwise;
    std::vector<Value> nodes;
    int cost = 0;  // of all nodes
    Shape space;
    // The reduced axes of the space; nullopt before the first reduction.
    std::optional<std::vector<bool>> reduced;
    // For each node its axes in the space, -1 for one of extent 1.
    std::map<Value, std::vector<int>> axes;
    std::set<int> reads;  // groups
    std::string why;
    bool alive = true;
  };

  Primitive PrimitiveOf(Value v) const {
    return ToPrimitive(graph_.node(v).op);
  }

  void FindNeeded() {
    for (const NamedValue& output : graph_.outputs()) {
      needed_[output.value.id] = true;
      returned_[output.value.id] = true;
    }
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      const Value v{id};
      if (!needed_[id]) continue;
      for (const Value operand : graph_.operands(v)) {
        needed_[operand.id] = true;
      }
      if (IsMovement(graph_, v) && !returned_[id]) continue;
      for (const BaseRead& read : BaseReads(graph_, v)) {
        users_[read.base.id].push_back(v);
      }
    }
  }

  int NewGroup(GroupKind kind, Value v) {
    Group group;
    group.kind = kind;
    group.nodes = {v};
    group.cost = CostOf(PrimitiveOf(v));
    groups_.push_back(std::move(group));
    const int id = static_cast<int>(groups_.size()) - 1;
    group_of_[v.id] = id;
    return id;
  }

  void Place(Value v) {
    if (!IsPrimitive(graph_.node(v).op)) {
      AddReads(NewGroup(GroupKind::kHost, v), BaseReads(graph_, v));
      return;
    }
    const Primitive primitive = PrimitiveOf(v);
    if (primitive == Primitive::kInput) return;
    if (primitive == Primitive::kResult) {
      group_of_[v.id] = group_of_[graph_.operands(v)[0].id];
      groups_[group_of_[v.id]].nodes.push_back(v);
      return;
    }
    const std::vector<BaseRead> reads = BaseReads(graph_, v);
    const PrimitiveClass c = ClassOf(primitive);
    if (options_.no_code.empty() && c == PrimitiveClass::kControl) {
      AddReads(NewGroup(GroupKind::kLoop, v), reads);
      return;
    }
    if (HasRuntimeCode(graph_, v, options_)) {
      AddReads(NewGroup(GroupKind::kRuntime, v), reads);
      return;
    }
    const absl::Status lowered =
        options_.no_code.empty() ? CanLower(graph_, v)
                                 : absl::UnimplementedError(options_.no_code);
    if (!lowered.ok()) {
      const int group = NewGroup(GroupKind::kReference, v);
      groups_[group].why = std::string(lowered.message());
      AddReads(group, reads);
      return;
    }
    if (c != PrimitiveClass::kPointwise && c != PrimitiveClass::kReduction) {
      const int group =
          NewGroup(c == PrimitiveClass::kContraction ? GroupKind::kContraction
                                                     : GroupKind::kStructured,
                   v);
      groups_[group].space = graph_.type(v).shape;
      groups_[group].axes[v] = Identity(graph_.type(v).rank());
      AddReads(group, reads);
      return;
    }
    int home = -1;
    for (const int candidate : Candidates(reads)) {
      if (Join(v, reads, candidate)) {
        home = candidate;
        break;
      }
    }
    if (home < 0) home = Start(v);
    AddReads(home, reads);
    for (const int other : Candidates(reads)) {
      if (groups_[other].alive && other != home) Merge(v, reads, home, other);
    }
    for (const int other : Candidates(reads)) {
      if (groups_[other].alive && other != home) Absorb(home, other);
    }
  }

  // A group of its own for a pointwise node or a reduction.
  int Start(Value v) {
    const bool reduction =
        ClassOf(PrimitiveOf(v)) == PrimitiveClass::kReduction;
    const int id =
        NewGroup(reduction ? GroupKind::kReduction : GroupKind::kPointwise, v);
    Group& group = groups_[id];
    if (!reduction) {
      group.space = graph_.type(v).shape;
      group.axes[v] = Identity(graph_.type(v).rank());
      return id;
    }
    group.space = graph_.type(graph_.operands(v)[0]).shape;
    group.reduced = ReducedAxes(v);
    group.axes[v] = Kept(*group.reduced);
    return id;
  }

  static std::vector<int> Identity(int rank) {
    std::vector<int> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  static std::vector<int> Kept(const std::vector<bool>& reduced) {
    std::vector<int> axes;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (!reduced[d]) axes.push_back(static_cast<int>(d));
    }
    return axes;
  }
  std::vector<bool> ReducedAxes(Value v) const {
    std::vector<bool> reduced(graph_.type(graph_.operands(v)[0]).rank());
    for (const int64_t a : graph_.attributes(v).GetInts("axes")) {
      reduced[a] = true;
    }
    return reduced;
  }

  // Groups that are read, the latest first.
  std::vector<int> Candidates(const std::vector<BaseRead>& reads) const {
    std::set<int, std::greater<int>> ids;
    for (const BaseRead& read : reads) {
      if (group_of_[read.base.id] >= 0) ids.insert(group_of_[read.base.id]);
    }
    return {ids.begin(), ids.end()};
  }

  void AddReads(int group, const std::vector<BaseRead>& reads) {
    for (const int other : Candidates(reads)) {
      if (other != group) groups_[group].reads.insert(other);
    }
  }

  // Whether `a` needs `b`, by way of others or not.
  bool Depends(int a, int b) const {
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

  bool Refuse(Value producer, Value consumer, std::string why) {
    boundaries_[{producer, consumer}] = std::move(why);
    return false;
  }

  // The axes of v in the space of `id`, judged by its reads of that group;
  // nullopt where they do not agree or are of neither level.
  std::optional<std::vector<int>> AxesIn(int id, Value v, const Shape& shape,
                                         const std::vector<BaseRead>& reads) {
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
      if (axes[d] >= 0) {
        rows.push_back(axes[d]);
      } else if (shape[d] != Dim(1)) {
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

  // The kept axes whose extent is not 1.
  std::vector<int> NonUnit(const Group& group) const {
    std::vector<int> axes;
    for (const int d : Kept(*group.reduced)) {
      if (group.space[d] != Dim(1)) axes.push_back(d);
    }
    return axes;
  }

  bool RefuseAll(int id, Value v, const std::vector<BaseRead>& reads,
                 const std::string& why) {
    for (const BaseRead& read : reads) {
      if (group_of_[read.base.id] == id) Refuse(read.base, v, why);
    }
    return false;
  }

  bool Join(Value v, const std::vector<BaseRead>& reads, int id) {
    Group& group = groups_[id];
    if (!HasCode(group.kind) || group.kind == GroupKind::kStructured) {
      return RefuseAll(id, v, reads,
                       absl::StrCat("a ", GroupKindName(group.kind),
                                    " kernel stands alone"));
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

  bool JoinReduction(Value v, const std::vector<BaseRead>& reads, int id) {
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

  void Add(Value v, int id, std::vector<int> axes) {
    groups_[id].nodes.push_back(v);
    groups_[id].cost += CostOf(PrimitiveOf(v));
    groups_[id].axes[v] = std::move(axes);
    group_of_[v.id] = id;
  }

  // `other` becomes a part of `home`, which v is in, where both are kernels
  // over the same space.
  void Merge(Value v, const std::vector<BaseRead>& reads, int home, int other) {
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

  // Whether v reads an element of b's node where its own element is.
  bool AgreesAt(Value v, const BaseRead& read, const Group& a,
                const Group& b) const {
    const bool reduction =
        ClassOf(PrimitiveOf(v)) == PrimitiveClass::kReduction;
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

  void Take(int home, int other) {
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

  // A pointwise group that `home` alone reads is computed where it is read.
  void Absorb(int home, int other) {
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

  // Null where nothing is against it.
  const char* WhyNotAbsorb(int home, int other) const {
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
          if (read.repeated && cost > kCheapOperations) return kRepeated;
        }
      }
    }
    return nullptr;
  }

  // Movement that the graph returns is a kernel of its own, with what it alone
  // reads.
  void AddReturnedMovement() {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!returned_[id] || !IsMovement(graph_, Value{id})) continue;
      const std::vector<BaseRead> reads = BaseReads(graph_, Value{id});
      if (HasRuntimeCode(graph_, Value{id}, options_)) {
        AddReads(NewGroup(GroupKind::kRuntime, Value{id}), reads);
        continue;
      }
      const int group = NewGroup(GroupKind::kPointwise, Value{id});
      groups_[group].space = graph_.type(Value{id}).shape;
      AddReads(group, reads);
      for (const int other : Candidates(reads)) {
        if (other != group) Absorb(group, other);
      }
    }
  }

  FusionPlan Finish() {
    FusionPlan plan;
    std::vector<bool> done(groups_.size(), false);
    // Depth first: what a group reads comes before it.
    std::vector<int> order;
    for (size_t start = 0; start < groups_.size(); ++start) {
      if (!groups_[start].alive || done[start]) continue;
      std::vector<std::pair<int, bool>> stack = {
          {static_cast<int>(start), false}};
      while (!stack.empty()) {
        const auto [id, ready] = stack.back();
        stack.pop_back();
        if (ready) {
          order.push_back(id);
          continue;
        }
        if (done[id]) continue;
        done[id] = true;
        stack.push_back({id, true});
        for (const int read : groups_[id].reads) {
          if (!done[read]) stack.push_back({read, false});
        }
      }
    }
    for (const int id : order) plan.groups.push_back(MakeGroup(id));
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value producer{id};
      for (const Value consumer :
           std::set<Value>(users_[id].begin(), users_[id].end())) {
        const int from = group_of_[producer.id];
        const int to = group_of_[consumer.id];
        if (from < 0 || from == to) continue;
        const auto known = boundaries_.find({producer, consumer});
        plan.boundaries.push_back({producer, consumer,
                                   known == boundaries_.end()
                                       ? WhyApart(groups_[from], groups_[to])
                                       : known->second});
      }
    }
    return plan;
  }

  // The reason why two groups that were never tried together stand apart.
  static std::string WhyApart(const Group& from, const Group& to) {
    for (const Group* group : {&from, &to}) {
      if (!HasCode(group->kind) || group->kind == GroupKind::kStructured) {
        return absl::StrCat("a ", GroupKindName(group->kind),
                            " kernel stands alone");
      }
    }
    if (to.kind == GroupKind::kContraction) {
      return "a contraction reads its operands from memory";
    }
    return "the graph returns the movement by itself";
  }

  FusionGroup MakeGroup(int id) const {
    FusionGroup result;
    result.kind = groups_[id].kind;
    result.nodes = groups_[id].nodes;
    result.why = groups_[id].why;
    for (const Value node : result.nodes) {
      bool read = returned_[node.id];
      for (const Value user : users_[node.id]) {
        read |= group_of_[user.id] != id;
      }
      if (read && graph_.types(node).size() == 1) {
        result.outputs.push_back(node);
      }
    }
    return result;
  }

  const Graph& graph_;
  const FusionOptions& options_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;  // -1: an input or movement
  // Nodes that read a node, movement seen through.
  std::vector<std::vector<Value>> users_;
  std::vector<bool> returned_;
  std::vector<bool> needed_;
  std::map<std::pair<Value, Value>, std::string> boundaries_;
};

}  // namespace

absl::StatusOr<FusionPlan> PlanFusion(const Graph& graph,
                                      const FusionOptions& options) {
  absl::StatusOr<FusionPlan> plan =
      Planner(graph, options).Plan(options.host_kernels);
  if (!plan.ok() || !options.totals_with_rows) return plan;
  return FuseTotals(graph, *std::move(plan));
}

}  // namespace cleave
