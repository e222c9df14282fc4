// TransformCoverage: whether an op has a transform, and how: given by the op,
// derived from its body, or impossible and why. Known before anything runs.
//
//   TransformCoverage(rules, "softmax")->jvp.kind   // Coverage::Kind::kDerived

#ifndef CLEAVE_TRANSFORMS_REPORT_COVERAGE_H_
#define CLEAVE_TRANSFORMS_REPORT_COVERAGE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"
#include "transforms/report/transform.h"

namespace cleave {

struct OpCoverage {
  Coverage vmap;
  Coverage jvp;
  Coverage vjp;

  const Coverage& of(Transform transform) const {
    return transform == Transform::kVmap  ? vmap
           : transform == Transform::kJvp ? jvp
                                          : vjp;
  }
};

// One transform of what another gives: jvp of vmap, say.
struct PairCoverage {
  Transform outer;
  Transform inner;
  Coverage coverage;
};

// Transforms calls of `op`, those that stand for all of them where its
// declaration gives such, else those that a search finds: kGiven, and where, if
// it or an `override` of it gives the transform, kDerived where its bodies give
// the transform for at least one of them, else kImpossible ("ragged: ..",
// "discrete", "no closed form known") or kNotSupported with the reason.
// NotFound for no op.
absl::StatusOr<OpCoverage> TransformCoverage(const RuleSet& rules,
                                             absl::string_view op);

// The same for all pairs of transforms, the outer one as the slower index.
// kGiven does not occur: a pair is derived from the two transforms.
absl::StatusOr<std::vector<PairCoverage>> TransformPairs(const RuleSet& rules,
                                                         absl::string_view op);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_REPORT_COVERAGE_H_
