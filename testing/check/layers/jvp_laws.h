// The laws of forward mode, and what CheckJvp needs for its other parts, too.
// Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_JVP_LAWS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_JVP_LAWS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "testing/check/compare/compare_tangents.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Sets the graphs of `jvp`, with their calls expanded.
absl::Status ExpandDerivative(const Graph& derivative, const RuleSet& rules,
                              JvpGraphs& jvp);

// The call in forward mode, along the operands that are `active`.
absl::StatusOr<JvpGraphs> Differentiate(const OpContext& context,
                                        const Graph& call,
                                        const std::vector<bool>& active,
                                        const RuleSet& rules);

// Adds a status that is no verdict against the op. False if it settles the
// layer: there is no derivative, or no reference.
bool AddStatus(const std::string& where, const absl::Status& status,
               Verdict& verdict);

// jvp(x, 2 t) = 2 jvp(x, t), jvp(x, 0) = 0, jvp along one operand alone is that
// along zeros of the others, and jvp of vmap = vmap of jvp. False once the
// layer is settled.
bool CheckJvpLaws(const OpContext& context, const PreparedCall& prepared,
                  DomainSampler& sampler, const RuleSet& rules,
                  Verdict& verdict);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_JVP_LAWS_H_
