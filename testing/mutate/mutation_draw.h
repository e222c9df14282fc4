// MutationDraw: the mutations of all rules in a random order that is fair to
// operators and rules: an operator is drawn first, then a rule that has
// mutations of it left, then one of these. Each is drawn once.

#ifndef CLEAVE_TESTING_MUTATE_MUTATION_DRAW_H_
#define CLEAVE_TESTING_MUTATE_MUTATION_DRAW_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "testing/mutate/mutation.h"

namespace cleave {

class MutationDraw {
 public:
  // A mutation of the rule that was added as number `rule`.
  struct Drawn {
    size_t rule = 0;
    Mutation mutation;
  };

  explicit MutationDraw(uint64_t seed) : random_(seed) {}

  // The rule is drawn no less often for being one of few.
  void Add(std::vector<Mutation> mutations);

  // How many were added.
  int64_t total() const { return total_; }

  // Nullopt: all were drawn.
  std::optional<Drawn> Next();

 private:
  struct OfRule {
    size_t rule;
    std::vector<Mutation> mutations;
  };

  // A random place among `size`.
  size_t Place(size_t size) { return random_() % size; }

  std::mt19937_64 random_;
  size_t rules_ = 0;
  int64_t total_ = 0;
  // By operator, those that have some left.
  std::vector<std::vector<OfRule>> operators_ =
      std::vector<std::vector<OfRule>>(kNumMutationOperators);
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_MUTATION_DRAW_H_
