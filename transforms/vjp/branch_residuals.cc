#include "transforms/vjp/branch_residuals.h"

#include <algorithm>
#include <cstddef>

namespace cleave {
namespace {

// The known input that the value is; -1 where it is none.
int InputOf(const Graph& graph, Value v) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i].value == v) return static_cast<int>(i);
  }
  return -1;
}

Value ResidualOf(const PartialEvaluation& cut, int i) {
  const std::vector<NamedValue>& outputs = cut.known.outputs();
  return outputs[outputs.size() - cut.residuals + i].value;
}

}  // namespace

BranchResiduals ShareResiduals(const PartialEvaluation& then_cut,
                               const PartialEvaluation& else_cut) {
  const PartialEvaluation* const cuts[] = {&then_cut, &else_cut};
  BranchResiduals result;
  for (const PartialEvaluation* cut : cuts) {
    for (int i = 0; i < cut->residuals; ++i) {
      const int input = InputOf(cut->known, ResidualOf(*cut, i));
      if (input >= 0 &&
          std::count(result.inputs.begin(), result.inputs.end(), input) == 0) {
        result.inputs.push_back(input);
      }
    }
  }
  for (int k = 0; k < 2; ++k) {
    std::vector<bool> taken(result.slots.size(), false);
    for (int i = 0; i < cuts[k]->residuals; ++i) {
      const Graph& known = cuts[k]->known;
      const Value residual = ResidualOf(*cuts[k], i);
      const int input = InputOf(known, residual);
      if (input >= 0) {
        result.places[k].push_back(static_cast<int>(
            std::find(result.inputs.begin(), result.inputs.end(), input) -
            result.inputs.begin()));
        continue;
      }
      size_t slot = 0;
      while (slot < result.slots.size() &&
             (taken[slot] || result.slots[slot] != known.type(residual))) {
        ++slot;
      }
      if (slot == result.slots.size()) {
        result.slots.push_back(known.type(residual));
        taken.push_back(false);
      }
      taken[slot] = true;
      result.places[k].push_back(static_cast<int>(result.inputs.size() + slot));
    }
  }
  return result;
}

}  // namespace cleave
