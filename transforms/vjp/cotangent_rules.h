// The rules of single nodes in reverse, as the table keeps them. None of them
// is simplified yet. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_COTANGENT_RULES_H_
#define CLEAVE_TRANSFORMS_VJP_COTANGENT_RULES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// A composite's rule is its `vjp` override for the operands that it covers, the
// transpose of its `jvp` override for those that this covers, and the
// cotangents of its body for the others; a primitive's is the transpose of its
// tangent rule. `results` are the node's result types. Errors as of
// RuleTable::Cotangent.
absl::StatusOr<CotangentRule> MakeCotangentRule(const Signature& signature,
                                                TypeId results,
                                                const std::vector<bool>& active,
                                                const std::vector<bool>& live,
                                                RuleTable& table);

// A composite transposed, as RuleTable::Transposed says: its `vjp` override
// where that covers the linear operands and reads none of them, else its body.
absl::StatusOr<CotangentRule> MakeTransposedRule(
    const Signature& signature, TypeId results, const std::vector<bool>& linear,
    const std::vector<bool>& live, RuleTable& table);

// The tangents of a loop or branch, cut in two by partial evaluation.
absl::StatusOr<ControlRule> MakeControlRule(const Signature& signature,
                                            TypeId results,
                                            const std::vector<bool>& active,
                                            RuleTable& table);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_COTANGENT_RULES_H_
