#include "transforms/partition/memory_budget.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace cleave::aot {
namespace {

std::vector<Value> WithoutDroppable(const SavingProblem& problem,
                                    const std::vector<Value>& choice) {
  std::vector<Value> kept;
  for (Value v : choice) {
    if (!problem.may_drop[v.id]) kept.push_back(v);
  }
  return kept;
}

// The work of computing a value again, given all other saved values.
class CostAgain {
 public:
  CostAgain(const SavingProblem& problem, const std::vector<Value>& saved)
      : problem_(problem), is_given_(problem.is_primal) {
    for (Value v : saved) is_given_[v.id] = true;
    seen_by_.assign(is_given_.size(), UINT32_MAX);
  }

  // O(nodes between it and what is given).
  double Of(Value v) {
    double cost = 0;
    open_.assign(1, v);
    seen_by_[v.id] = v.id;
    while (!open_.empty()) {
      const Value node = open_.back();
      open_.pop_back();
      cost += problem_.again[node.id];
      for (Value operand : problem_.joint->graph.operands(node)) {
        uint32_t& seen_by = seen_by_[operand.id];
        if (!problem_.decides[operand.id] || is_given_[operand.id] ||
            seen_by == v.id) {
          continue;
        }
        seen_by = v.id;
        open_.push_back(operand);
      }
    }
    return cost;
  }

 private:
  const SavingProblem& problem_;
  std::vector<bool> is_given_;
  std::vector<uint32_t> seen_by_;  // per node: the last value walked from
  std::vector<Value> open_;
};

std::vector<Value> Sorted(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

double MemoryLimit(const SavingProblem& problem,
                   const std::vector<Value>& choice, double budget) {
  const double all = MemoryOf(problem, NeededOf(problem, choice));
  const double least =
      MemoryOf(problem, NeededOf(problem, WithoutDroppable(problem, choice)));
  return all <= least ? all : least + budget * (all - least);
}

std::vector<int> SolveKnapsack(const std::vector<KnapsackItem>& items,
                               double capacity, int resolution) {
  // best[w]: the most worth that w units of weight can have, and taken[i][w]
  // whether it has item i.
  std::vector<double> best(resolution + 1, 0);
  std::vector<std::vector<bool>> taken(items.size());
  std::vector<int64_t> units(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    // A weight of nothing fits into a capacity of nothing.
    const double exact =
        items[i].weight == 0
            ? 0
            : std::ceil(items[i].weight * resolution / capacity);
    taken[i].assign(resolution + 1, false);
    if (!(exact <= resolution)) {
      units[i] = resolution + 1;
      continue;
    }
    units[i] = static_cast<int64_t>(exact);
    for (int64_t w = resolution; w >= units[i]; --w) {
      const double worth = best[w - units[i]] + items[i].worth;
      if (worth > best[w]) {
        best[w] = worth;
        taken[i][w] = true;
      }
    }
  }
  std::vector<int> chosen;
  int64_t w = resolution;
  for (size_t i = items.size(); i-- > 0;) {
    if (!taken[i][w]) continue;
    chosen.push_back(static_cast<int>(i));
    w -= units[i];
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<Value> WithinBudget(const SavingProblem& problem,
                                const std::vector<Value>& choice,
                                double budget) {
  std::vector<Value> kept = WithoutDroppable(problem, choice);
  const double least = MemoryOf(problem, NeededOf(problem, kept));
  const double limit = MemoryLimit(problem, choice, budget);
  if (limit <= least && MemoryOf(problem, NeededOf(problem, choice)) <= limit) {
    return choice;
  }
  CostAgain again(problem, choice);
  std::vector<Value> open;
  std::vector<KnapsackItem> items;
  for (Value v : choice) {
    if (!problem.may_drop[v.id]) continue;
    open.push_back(v);
    items.push_back({problem.bytes[v.id], again.Of(v)});
  }
  std::vector<bool> is_kept(open.size(), false);
  for (int i : SolveKnapsack(items, limit - least)) {
    is_kept[i] = true;
    kept.push_back(open[i]);
  }
  // Fewer primals may be needed than in the worst case, and rounding leaves
  // some room.
  std::vector<int> rest;
  for (size_t i = 0; i < open.size(); ++i) {
    if (!is_kept[i]) rest.push_back(static_cast<int>(i));
  }
  std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) {
    return items[a].worth * items[b].weight > items[b].worth * items[a].weight;
  });
  // A value more adds its own bytes at most.
  double memory = MemoryOf(problem, NeededOf(problem, kept));
  for (int i : rest) {
    if (memory + items[i].weight > limit) continue;
    memory += items[i].weight;
    kept.push_back(open[i]);
  }
  return Sorted(std::move(kept));
}

}  // namespace cleave::aot
