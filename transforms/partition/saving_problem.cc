#include "transforms/partition/saving_problem.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/partition/partition.h"
#include "transforms/partition/recompute_cost.h"

namespace cleave::aot {
namespace {

class Builder {
 public:
  Builder(const JointGraph& joint, const RuleSet& rules,
          const MinCutOptions& options)
      : joint_(joint),
        graph_(joint.graph),
        options_(options),
        model_(rules, options.cost),
        size_(graph_.size()),
        depends_(DependsOnCotangents(joint)),
        costs_(size_),
        in_forward_(size_, false),
        free_(size_, false),
        decisions_(size_, SaveDecision::kNone) {}

  absl::StatusOr<SavingProblem> Run() {
    CLEAVE_RETURN_IF_ERROR(CheckOptions());
    for (uint32_t id = 0; id < size_; ++id) {
      CLEAVE_ASSIGN_OR_RETURN(costs_[id], model_.Of(graph_, Value{id}));
      // A call whose body does nothing is no leaf.
      if (costs_[id].kind == RecomputeClass::kFree &&
          !graph_.operands(Value{id}).empty()) {
        costs_[id].kind = RecomputeClass::kView;
      }
    }
    problem_.joint = &joint_;
    FindForward();
    FindDecided();
    FindReaders();
    CLEAVE_RETURN_IF_ERROR(AskPolicy());
    problem_.save.assign(size_, 0);
    problem_.recompute.assign(size_, 0);
    problem_.again.assign(size_, 0);
    problem_.bytes.assign(size_, 0);
    problem_.may_drop.assign(size_, false);
    problem_.offload.assign(size_, false);
    for (uint32_t id = 0; id < size_; ++id) {
      if (problem_.decides[id]) SetCosts(Value{id});
    }
    LimitChains();
    return std::move(problem_);
  }

 private:
  absl::Status CheckOptions() const {
    const double budget = options_.activation_memory_budget;
    if (!(budget >= 0 && budget <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "activation_memory_budget is ", budget, ", but must be in [0, 1]"));
    }
    if (options_.max_recompute_chain < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("max_recompute_chain is ", options_.max_recompute_chain,
                       ", but must be at least 1"));
    }
    if (!(options_.memory_weight >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("memory_weight is ", options_.memory_weight,
                       ", but must be at least 0"));
    }
    if (!(options_.cost.operations_per_byte > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operations_per_byte is ",
                       options_.cost.operations_per_byte, ", but must be > 0"));
    }
    if (options_.cost.extent_hint < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("extent_hint is ", options_.cost.extent_hint,
                       ", but must be at least 0"));
    }
    return absl::OkStatus();
  }

  // Marks the values that the outputs of the function need.
  void FindForward() {
    for (int i = 0; i < joint_.outputs; ++i) {
      const Value v = graph_.outputs()[i].value;
      in_forward_[v.id] = true;
      free_[v.id] = true;
    }
    for (uint32_t id = size_; id-- > 0;) {
      if (!in_forward_[id]) continue;
      for (Value v : graph_.operands(Value{id})) in_forward_[v.id] = true;
    }
  }

  void FindDecided() {
    problem_.is_primal.assign(size_, false);
    for (int i = 0; i < joint_.primals; ++i) {
      const Value v = graph_.inputs()[i].value;
      problem_.is_primal[v.id] = true;
      if (options_.static_inputs_are_free && joint_.is_static[i]) {
        free_[v.id] = true;
      }
    }
    problem_.is_target.assign(size_, false);
    std::vector<bool> needed(size_, false);
    for (size_t i = joint_.outputs; i < graph_.outputs().size(); ++i) {
      const Value v = graph_.outputs()[i].value;
      needed[v.id] = true;
      problem_.is_target[v.id] = !depends_[v.id];
    }
    for (uint32_t id = size_; id-- > 0;) {
      if (!needed[id]) continue;
      for (Value v : graph_.operands(Value{id})) {
        needed[v.id] = true;
        if (depends_[id] && !depends_[v.id]) problem_.is_target[v.id] = true;
      }
    }
    problem_.decides.assign(size_, false);
    for (uint32_t id = 0; id < size_; ++id) {
      problem_.decides[id] =
          needed[id] && !depends_[id] &&
          (problem_.is_primal[id] || !graph_.operands(Value{id}).empty());
    }
  }

  // Whether a node reads its operands from memory: it does not join the kernel
  // of what makes them.
  bool ReadsMemory(Value user) const {
    return costs_[user.id].kind >= RecomputeClass::kContraction;
  }

  // Which values a node of either half reads from memory, through views.
  void FindReaders() {
    read_in_forward_.assign(size_, false);
    read_in_backward_.assign(size_, false);
    for (uint32_t id = size_; id-- > 0;) {
      const Value user{id};
      const bool is_view = costs_[id].kind == RecomputeClass::kView;
      const bool reads = ReadsMemory(user);
      for (Value v : graph_.operands(user)) {
        if (in_forward_[id] && (reads || (is_view && read_in_forward_[id]))) {
          read_in_forward_[v.id] = true;
        }
        if ((depends_[id] && reads) || (is_view && read_in_backward_[id])) {
          read_in_backward_[v.id] = true;
        }
      }
    }
  }

  absl::Status AskPolicy() {
    if (!options_.policy) return absl::OkStatus();
    for (uint32_t id = 0; id < size_; ++id) {
      const Value v{id};
      if (!problem_.decides[id] || problem_.is_primal[id]) continue;
      if (!in_forward_[id] || graph_.types(v).size() != 1) continue;
      const SaveDecision decision = options_.policy(graph_, v);
      decisions_[id] = decision;
      // A result is computed again with the node that it is of.
      if (decision == SaveDecision::kMustRecompute &&
          graph_.node(v).op == ToOpId(Primitive::kResult)) {
        decisions_[graph_.operands(v)[0].id] = decision;
      }
    }
    return absl::OkStatus();
  }

  void SetCosts(Value v) {
    const NodeCost& cost = costs_[v.id];
    const bool is_tuple = graph_.types(v).size() != 1;
    const double bytes = model_.Bytes(graph_, v);
    const bool is_free = free_[v.id];
    problem_.again[v.id] = model_.InBytes(cost);
    problem_.bytes[v.id] = is_free ? 0 : bytes;
    double& save = problem_.save[v.id];
    double& recompute = problem_.recompute[v.id];
    if (problem_.is_primal[v.id]) {
      save = (1 + options_.memory_weight) * problem_.bytes[v.id];
      recompute = kInfinite;
      return;
    }
    if (!is_free) {
      save = (InMemory(v) ? 1 : 2) * bytes + options_.memory_weight * bytes;
    }
    if (is_tuple || (cost.kind == RecomputeClass::kView && !is_free)) {
      save = kInfinite;
    }
    double again = 0;
    if (in_forward_[v.id]) {
      again = problem_.again[v.id];
      if (read_in_backward_[v.id] && cost.kind != RecomputeClass::kView) {
        again += bytes;
      }
    }
    recompute = cost.cheap || !in_forward_[v.id] ? again : kInfinite;
    problem_.may_drop[v.id] = true;
    if (KindOf(v) == RecomputeClass::kNever) {
      recompute = kInfinite;
      problem_.may_drop[v.id] = false;
      return;
    }
    switch (decisions_[v.id]) {
      case SaveDecision::kNone:
        break;
      case SaveDecision::kOffload:
        problem_.offload[v.id] = true;
        [[fallthrough]];
      case SaveDecision::kMustSave:
        save = 0;
        recompute = kInfinite;
        problem_.may_drop[v.id] = false;
        break;
      case SaveDecision::kPreferSave:
        save /= kPreference;
        break;
      case SaveDecision::kPreferRecompute:
        save *= kPreference;
        recompute = again;
        break;
      case SaveDecision::kMustRecompute:
        save = kInfinite;
        recompute = 0;
        break;
    }
  }

  // The class of a node, or of the node that it is a result of.
  RecomputeClass KindOf(Value v) const {
    if (costs_[v.id].kind == RecomputeClass::kProjection) {
      v = graph_.operands(v)[0];
    }
    return costs_[v.id].kind;
  }

  // Whether the forward half has a value in memory, saved or not: what makes it
  // and what reads it are not one kernel.
  bool InMemory(Value v) const {
    return read_in_forward_[v.id] || KindOf(v) >= RecomputeClass::kContraction;
  }

  // Ends chains of fused operations that are longer than the limit.
  void LimitChains() {
    std::vector<int> length(size_, 0);
    for (uint32_t id = 0; id < size_; ++id) {
      if (!problem_.decides[id] || !in_forward_[id]) continue;
      const RecomputeClass kind = costs_[id].kind;
      if (kind != RecomputeClass::kFused && kind != RecomputeClass::kView) {
        continue;
      }
      for (Value v : graph_.operands(Value{id})) {
        length[id] = std::max(length[id], length[v.id]);
      }
      if (kind == RecomputeClass::kView) continue;
      if (++length[id] < options_.max_recompute_chain) continue;
      if (decisions_[id] == SaveDecision::kMustRecompute) continue;
      problem_.recompute[id] = kInfinite;
      length[id] = 0;
    }
  }

  const JointGraph& joint_;
  const Graph& graph_;
  const MinCutOptions& options_;
  CostModel model_;
  const uint32_t size_;
  const std::vector<bool> depends_;
  std::vector<NodeCost> costs_;
  std::vector<bool> in_forward_;
  std::vector<bool> free_;  // outputs, and static primals
  std::vector<bool> read_in_forward_;
  std::vector<bool> read_in_backward_;
  std::vector<SaveDecision> decisions_;
  SavingProblem problem_;
};

}  // namespace

absl::StatusOr<SavingProblem> MakeSavingProblem(const JointGraph& joint,
                                                const RuleSet& rules,
                                                const MinCutOptions& options) {
  return Builder(joint, rules, options).Run();
}

std::vector<Value> NeededOf(const SavingProblem& problem,
                            const std::vector<Value>& saved) {
  const Graph& graph = problem.joint->graph;
  std::vector<bool> is_saved(graph.size(), false);
  for (Value v : saved) is_saved[v.id] = true;
  std::vector<bool> needed = problem.is_target;
  std::vector<Value> found;
  for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
    if (!needed[id] || !problem.decides[id]) continue;
    if (is_saved[id] || problem.is_primal[id]) {
      found.push_back(Value{id});
      continue;
    }
    for (Value v : graph.operands(Value{id})) needed[v.id] = true;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

double MemoryOf(const SavingProblem& problem,
                const std::vector<Value>& values) {
  double bytes = 0;
  for (Value v : values) bytes += problem.bytes[v.id];
  return bytes;
}

}  // namespace cleave::aot
