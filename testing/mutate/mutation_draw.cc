#include "testing/mutate/mutation_draw.h"

#include <utility>

namespace cleave {
namespace {

// Takes out the element at `place`; the last one takes its place.
template <typename T>
T Take(std::vector<T>& list, size_t place) {
  std::swap(list[place], list.back());
  T taken = std::move(list.back());
  list.pop_back();
  return taken;
}

}  // namespace

void MutationDraw::Add(std::vector<Mutation> mutations) {
  const size_t rule = rules_++;
  total_ += static_cast<int64_t>(mutations.size());
  for (Mutation& mutation : mutations) {
    std::vector<OfRule>& rules = operators_[static_cast<int>(mutation.op)];
    if (rules.empty() || rules.back().rule != rule) rules.push_back({rule, {}});
    rules.back().mutations.push_back(std::move(mutation));
  }
}

std::optional<MutationDraw::Drawn> MutationDraw::Next() {
  std::vector<size_t> left;
  for (size_t op = 0; op < operators_.size(); ++op) {
    if (!operators_[op].empty()) left.push_back(op);
  }
  if (left.empty()) return std::nullopt;
  std::vector<OfRule>& rules = operators_[left[Place(left.size())]];
  const size_t place = Place(rules.size());
  OfRule& rule = rules[place];
  Drawn drawn = {rule.rule, Take(rule.mutations, Place(rule.mutations.size()))};
  if (rule.mutations.empty()) Take(rules, place);
  return drawn;
}

}  // namespace cleave
