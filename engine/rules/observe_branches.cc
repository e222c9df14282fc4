#include "engine/rules/observe_branches.h"

#include <utility>

#include "engine/rules/rule_set_impl.h"

namespace cleave {

std::shared_ptr<const RuleSet> ObserveBranches(
    const RuleSet& base, std::shared_ptr<BranchObserver> observer) {
  auto impl = std::make_unique<RuleSet::Impl>();
  impl->context = base.impl().context;
  impl->options = base.impl().options;
  impl->library = base.impl().library;
  impl->branch_observer = std::move(observer);
  return std::make_shared<const RuleSet>(std::move(impl));
}

const Item* FindDef(const RuleSet& rules, absl::string_view name) {
  return rules.impl().library.FindDef(name);
}

}  // namespace cleave
