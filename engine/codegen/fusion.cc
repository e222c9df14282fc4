#include "engine/codegen/fusion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/fuse_totals.h"
#include "engine/codegen/fusion_planner.h"
#include "engine/codegen/index_tables.h"
#include "engine/codegen/repeat_outer_values.h"
#include "ops/element_cost.h"

namespace cleave {

FusionPlanner::FusionPlanner(const Graph& graph, const FusionOptions& options)
    : graph_(graph),
      options_(options),
      group_of_(graph.size(), -1),
      users_(graph.size()),
      returned_(graph.size(), false),
      needed_(graph.size(), false),
      tables_(options.tables && options.no_code.empty()
                  ? IndexTables(graph)
                  : std::vector<bool>(graph.size())) {}

absl::StatusOr<FusionPlan> FusionPlanner::Plan(
    const HostKernels* host_kernels) {
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

void FusionPlanner::FindNeeded() {
  for (const NamedValue& output : graph_.outputs()) {
    needed_[output.value.id] = true;
    returned_[output.value.id] = true;
  }
  for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
    const Value v{id};
    if (!needed_[id] || tables_[id]) continue;
    for (const Value operand : graph_.operands(v)) {
      needed_[operand.id] = true;
    }
    if (IsMovement(graph_, v) && !returned_[id]) continue;
    for (const BaseRead& read : BaseReads(graph_, v)) {
      users_[read.base.id].push_back(v);
    }
  }
}

int FusionPlanner::NewGroup(GroupKind kind, Value v) {
  Group group;
  group.kind = kind;
  group.nodes = {v};
  group.cost = CostOf(PrimitiveOf(v));
  groups_.push_back(std::move(group));
  const int id = static_cast<int>(groups_.size()) - 1;
  group_of_[v.id] = id;
  return id;
}

void FusionPlanner::Place(Value v) {
  if (!IsPrimitive(graph_.node(v).op)) {
    AddReads(NewGroup(GroupKind::kHost, v), BaseReads(graph_, v));
    return;
  }
  const Primitive primitive = PrimitiveOf(v);
  if (primitive == Primitive::kInput) return;
  if (tables_[v.id]) {
    NewGroup(GroupKind::kTable, v);
    return;
  }
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
  if (const auto scatter = AddedScatter(graph_, v, options_);
      scatter && !returned_[scatter->id] && users_[scatter->id].size() == 1) {
    const int home = group_of_[scatter->id];
    group_of_[v.id] = home;
    groups_[home].nodes.push_back(v);
    AddReads(home, reads);
    return;
  }
  const absl::Status lowered = options_.no_code.empty()
                                   ? CanLower(graph_, v)
                                   : absl::UnimplementedError(options_.no_code);
  if (!lowered.ok()) {
    const int group = NewGroup(GroupKind::kReference, v);
    groups_[group].why = std::string(lowered.message());
    AddReads(group, reads);
    return;
  }
  if (c != PrimitiveClass::kPointwise && c != PrimitiveClass::kReduction &&
      c != PrimitiveClass::kRandom) {
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

int FusionPlanner::Start(Value v) {
  const bool reduction = ClassOf(PrimitiveOf(v)) == PrimitiveClass::kReduction;
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

std::vector<int> FusionPlanner::Identity(int rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::vector<int> FusionPlanner::Kept(const std::vector<bool>& reduced) {
  std::vector<int> axes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) axes.push_back(static_cast<int>(d));
  }
  return axes;
}

std::vector<bool> FusionPlanner::ReducedAxes(Value v) const {
  std::vector<bool> reduced(graph_.type(graph_.operands(v)[0]).rank());
  for (const int64_t a : graph_.attributes(v).GetInts("axes")) {
    reduced[a] = true;
  }
  return reduced;
}

std::vector<int> FusionPlanner::Candidates(const Reads& reads) const {
  std::set<int, std::greater<int>> ids;
  for (const BaseRead& read : reads) {
    if (group_of_[read.base.id] >= 0) ids.insert(group_of_[read.base.id]);
  }
  return {ids.begin(), ids.end()};
}

void FusionPlanner::AddReads(int group, const Reads& reads) {
  for (const int other : Candidates(reads)) {
    if (other != group) groups_[group].reads.insert(other);
  }
}

std::optional<Value> FusionPlanner::ReshapedResult(Value v) const {
  Value base = v;
  while (graph_.node(base).op == ToOpId(Primitive::kReshape)) {
    base = graph_.operands(base)[0];
  }
  if (base == v || IsMovement(graph_, base) || returned_[base.id] ||
      group_of_[base.id] < 0) {
    return std::nullopt;
  }
  const int home = group_of_[base.id];
  const GroupKind kind = groups_[home].kind;
  // A pointwise kernel computes it in its own shape.
  if (!HasCode(kind) || kind == GroupKind::kPointwise) return std::nullopt;
  for (const Value user : users_[base.id]) {
    if (user != v && group_of_[user.id] != home) return std::nullopt;
  }
  return base;
}

void FusionPlanner::AddReturnedMovement() {
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    if (!returned_[id] || !IsMovement(graph_, Value{id})) continue;
    if (const std::optional<Value> base = ReshapedResult(Value{id})) {
      group_of_[id] = group_of_[base->id];
      reshaped_[*base] = Value{id};
      continue;
    }
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

FusionPlan FusionPlanner::Finish() {
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

std::string FusionPlanner::WhyApart(const Group& from, const Group& to) {
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

FusionGroup FusionPlanner::MakeGroup(int id) const {
  FusionGroup result;
  result.kind = groups_[id].kind;
  result.nodes = groups_[id].nodes;
  result.why = groups_[id].why;
  if (result.kind == GroupKind::kTable) {
    const Value table = result.nodes[0];
    result.nodes = NodesOfTable(graph_, table);
    result.outputs = {table};
    return result;
  }
  for (const Value node : result.nodes) {
    if (const auto as = reshaped_.find(node); as != reshaped_.end()) {
      result.outputs.push_back(as->second);
      continue;
    }
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

absl::StatusOr<FusionPlan> PlanFusion(const Graph& graph,
                                      const FusionOptions& options) {
  absl::StatusOr<FusionPlan> plan =
      FusionPlanner(graph, options).Plan(options.host_kernels);
  if (!plan.ok()) return plan;
  if (options.totals_with_rows) plan = FuseTotals(graph, *std::move(plan));
  return RepeatOuterValues(graph, *std::move(plan));
}

}  // namespace cleave
