// Identity-keeping batching: vmap of `softmax(axis: 0)` is `softmax(axis: 1)`,
// one call, nothing decomposed. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_IDENTITY_H_
#define CLEAVE_TRANSFORMS_IDENTITY_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rewrite/rule_set.h"
#include "transforms/synthetic_rules.h"

namespace cleave {

// A call of the op itself that batches it: on the operands with the batch in
// front, its axis attributes moved behind the batch, or as they were. Proposed,
// then proved for this signature, symbolic extents included: the call and
// `derived`, the transform of the body, expand to the same hash-consed nodes.
// Nullopt where neither proposal does.
std::optional<BatchRule> KeepIdentity(const Signature& signature,
                                      const BatchRule& derived,
                                      const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_IDENTITY_H_
