// Whether a graph is linear in some of its inputs: what a derivative must be in
// its tangents.

#ifndef CLEAVE_ENGINE_RULES_LINEARITY_H_
#define CLEAVE_ENGINE_RULES_LINEARITY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Degree in the inputs that are marked; kUnknown where loops decide.
enum class Linearity : uint8_t {
  kZero,
  kConstant,
  kLinear,
  kNonlinear,
  kUnknown
};

// One per output. Composite calls are looked into.
absl::StatusOr<std::vector<Linearity>> LinearityOf(
    const Graph& graph, const std::vector<Linearity>& inputs,
    const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_LINEARITY_H_
