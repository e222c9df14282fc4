// RegionSafety: the harm that a region can do if it is evaluated for examples
// that do not take it: none, an infinite derivative, or a failure. How a branch
// is batched rests on it. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VMAP_REGION_SAFETY_H_
#define CLEAVE_TRANSFORMS_VMAP_REGION_SAFETY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

enum class RegionSafety : uint8_t {
  // Nothing that select does not undo, nor do its derivatives: moves and sums.
  kLinear,
  // It has values everywhere, but its derivatives may be infinite or NaN, and 0
  // times them is NaN.
  kTotal,
  // Its evaluation can fail (an index out of range, an integer division by
  // zero) or not end.
  kMayFail,
};

// The worst of the nodes of `region`; calls are looked into. Errors of the
// bodies of the rules.
absl::StatusOr<RegionSafety> SafetyOf(const Graph& region,
                                      const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_REGION_SAFETY_H_
