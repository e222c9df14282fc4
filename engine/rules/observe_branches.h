// ObserveBranches: rules that tell which of their branches calls take.
//
//   auto taken = std::make_shared<Taken>();  // a BranchObserver
//   const std::shared_ptr<const RuleSet> rules = ObserveBranches(base, taken);
//   .. calls, transforms ..: taken->Decided(condition, holds)

#ifndef CLEAVE_ENGINE_RULES_OBSERVE_BRANCHES_H_
#define CLEAVE_ENGINE_RULES_OBSERVE_BRANCHES_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// The rules of `base`, its items and its context, in a rule set that has
// compiled nothing yet. Its bodies, and the clauses of each call, tell
// the observer; a body is compiled once, so it tells once for each signature.
std::shared_ptr<const RuleSet> ObserveBranches(
    const RuleSet& base, std::shared_ptr<BranchObserver> observer);

// The `def` that a call in `reader` names; null if there is none.
const Item* FindDef(const RuleSet& rules, absl::string_view name,
                    const Item& reader);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_OBSERVE_BRANCHES_H_
