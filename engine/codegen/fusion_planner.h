// FusionPlanner: the state of PlanFusion while it goes through a graph.
// Internal to engine/codegen.
//
// Node by node, each is placed in a group of its own (fusion.cc) or in one that
// it reads, which takes in others then (join_groups.cc).

#ifndef CLEAVE_ENGINE_CODEGEN_FUSION_PLANNER_H_
#define CLEAVE_ENGINE_CODEGEN_FUSION_PLANNER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/codegen/base_reads.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"

namespace cleave {

class FusionPlanner {
 public:
  // Both must outlive it.
  FusionPlanner(const Graph& graph, const FusionOptions& options);

  // The plan, as PlanFusion describes it; called once.
  absl::StatusOr<FusionPlan> Plan(const HostKernels* host_kernels);

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

  using Reads = std::vector<BaseRead>;

  Primitive PrimitiveOf(Value v) const {
    return ToPrimitive(graph_.node(v).op);
  }
  static std::vector<int> Identity(int rank);
  static std::vector<int> Kept(const std::vector<bool>& reduced);
  std::vector<bool> ReducedAxes(Value v) const;

  // fusion.cc: groups of one node, and the plan.
  void FindNeeded();
  void Place(Value v);
  int NewGroup(GroupKind kind, Value v);
  // A group of its own for a pointwise node or a reduction.
  int Start(Value v);
  // Groups that are read, the latest first.
  std::vector<int> Candidates(const Reads& reads) const;
  void AddReads(int group, const Reads& reads);
  // Movement that the graph returns is a kernel of its own, with what it alone
  // reads; but a reshape of one kernel's result is that result.
  void AddReturnedMovement();
  // The value that `v`, which is returned, is a reshape of, where the kernel of
  // that value can give it in this shape: nothing else reads it.
  std::optional<Value> ReshapedResult(Value v) const;
  FusionPlan Finish();
  // The reason why two groups that were never tried together stand apart.
  static std::string WhyApart(const Group& from, const Group& to);
  FusionGroup MakeGroup(int id) const;

  // join_groups.cc: groups of several nodes.
  // Makes v a part of the group `id` where it can be one, and says whether.
  bool Join(Value v, const Reads& reads, int id);
  bool JoinReduction(Value v, const Reads& reads, int id);
  void Add(Value v, int id, std::vector<int> axes);
  // `other` becomes a part of `home`, which v is in, where both are kernels
  // over the same space.
  void Merge(Value v, const Reads& reads, int home, int other);
  // A pointwise group that `home` alone reads is computed where it is read.
  void Absorb(int home, int other);
  // Null where nothing is against it.
  const char* WhyNotAbsorb(int home, int other) const;
  void Take(int home, int other);
  // Whether `a` needs `b`, by way of others or not.
  bool Depends(int a, int b) const;
  // Both say false.
  bool Refuse(Value producer, Value consumer, std::string why);
  bool RefuseAll(int id, Value v, const Reads& reads, const std::string& why);
  // The axes of v in the space of `id`, judged by its reads of that group;
  // nullopt where they do not agree or are of neither level.
  std::optional<std::vector<int>> AxesIn(int id, Value v, const Shape& shape,
                                         const Reads& reads);
  // The kept axes whose extent is not 1.
  std::vector<int> NonUnit(const Group& group) const;
  // Whether v reads an element of b's node where its own element is.
  bool AgreesAt(Value v, const BaseRead& read, const Group& a,
                const Group& b) const;

  const Graph& graph_;
  const FusionOptions& options_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;  // -1: an input or movement
  // Nodes that read a node, movement seen through.
  std::vector<std::vector<Value>> users_;
  std::vector<bool> returned_;
  std::vector<bool> needed_;
  std::vector<bool> tables_;
  // Results of kernels that are returned in another shape.
  std::map<Value, Value> reshaped_;
  std::map<std::pair<Value, Value>, std::string> boundaries_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FUSION_PLANNER_H_
