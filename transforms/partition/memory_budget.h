// A memory budget: which of the values that a partitioner would save are saved,
// where not all of them may be. Internal to transforms/aot.
//
// The memory that a choice holds is that of the saved values and of the primals
// that the backward half comes down to; outputs of the function and static
// primals hold none. Budget 1 is the memory M1 of the whole choice, budget 0
// the memory M0 that is left where all is computed again that may be; in
// between the limit is M0 + budget (M1 - M0). Where M1 <= M0, the whole choice
// is within every budget.
//
// Which values to keep is a 0-1 knapsack: the weight of a value is its bytes,
// its worth what it takes to compute it again from the other saved values and
// the primals. It is solved exactly over weights in units of 1/4096 of the
// capacity, rounded up: the limit holds, and at most a unit for each value is
// given away. Values that then still fit are added, the most worth for a byte
// first.

#ifndef CLEAVE_TRANSFORMS_PARTITION_MEMORY_BUDGET_H_
#define CLEAVE_TRANSFORMS_PARTITION_MEMORY_BUDGET_H_

#include <vector>

#include "engine/ir/graph.h"
#include "transforms/partition/saving_problem.h"

namespace cleave::aot {

inline constexpr int kBudgetResolution = 4096;

// The memory that a budget in [0, 1] allows for a choice.
double MemoryLimit(const SavingProblem& problem,
                   const std::vector<Value>& choice, double budget);

// The part of the choice that is saved. O(nodes + choice * kBudgetResolution),
// and more if values share nodes that are computed again.
std::vector<Value> WithinBudget(const SavingProblem& problem,
                                const std::vector<Value>& choice,
                                double budget);

struct KnapsackItem {
  double weight = 0;  // >= 0
  double worth = 0;
};

// The items to take, ascending: their weights, each rounded up to a multiple of
// capacity / resolution, sum up to at most the capacity, and no others that do
// are worth more.
std::vector<int> SolveKnapsack(const std::vector<KnapsackItem>& items,
                               double capacity,
                               int resolution = kBudgetResolution);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_MEMORY_BUDGET_H_
