// CurrentRules: the rules that ops on this thread use, for what makes graphs of
// them.
//
//   CLEAVE_ASSIGN_OR_RETURN(const auto rules, CurrentRules());

#ifndef CLEAVE_ENGINE_EAGER_CURRENT_RULES_H_
#define CLEAVE_ENGINE_EAGER_CURRENT_RULES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"

namespace cleave::functional {

// The rules of the innermost trace, else of the session. FailedPrecondition if
// there is neither, and in a trace of primitives alone.
absl::StatusOr<std::shared_ptr<const RuleSet>> CurrentRules();

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_CURRENT_RULES_H_
