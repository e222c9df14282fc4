// MakeTangentRule: the tangent rule of one node, as the table keeps it.
// Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_JVP_TANGENT_RULE_H_
#define CLEAVE_TRANSFORMS_JVP_TANGENT_RULE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// A composite's rule is its `jvp` override for the operands that it covers, and
// the tangents of its body for the others; a pointwise primitive's is the `jvp`
// item of the rules. `results` are the node's result types, `active` its
// operands with a tangent, one at least. Not simplified yet. Errors as of
// RuleTable::Tangent.
absl::StatusOr<TangentRule> MakeTangentRule(const Signature& signature,
                                            TypeId results,
                                            const std::vector<bool>& active,
                                            RuleTable& table);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_JVP_TANGENT_RULE_H_
