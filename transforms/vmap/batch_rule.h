// MakeBatchRule: the batch rule of one node, as the table keeps it. Internal to
// transforms.

#ifndef CLEAVE_TRANSFORMS_VMAP_BATCH_RULE_H_
#define CLEAVE_TRANSFORMS_VMAP_BATCH_RULE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/table/rule_table.h"
#include "transforms/vmap/identity.h"

namespace cleave {

// A composite's rule is its `vmap` override, or a call of it found by
// `identity`, or the batch of its body; one that declares derivatives becomes a
// call that goes on having them (RuleSet::BatchOf). Without `identity`, null,
// no call is looked for. `batch` is the extent of the batch in front of the
// operands in `batched`. Errors as of RuleTable::Batch.
absl::StatusOr<BatchRule> MakeBatchRule(const Signature& signature,
                                        const std::vector<bool>& batched,
                                        const Dim& batch, RuleTable& table,
                                        IdentityFinder* identity);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_BATCH_RULE_H_
