#include "engine/rules/observe_branches.h"

#include <utility>

#include "engine/rules/rule_set_impl.h"

namespace cleave {

std::shared_ptr<const RuleSet> ObserveBranches(
    const RuleSet& base, std::shared_ptr<BranchObserver> observer) {
  auto impl = RuleSet::Impl::WithItemsOf(base.impl());
  impl->branch_observer = std::move(observer);
  return std::make_shared<const RuleSet>(std::move(impl));
}

const Item* FindDef(const RuleSet& rules, absl::string_view name,
                    const Item& reader) {
  const Library& library = rules.impl().library;
  return library.FindDef(name, library.SourceOf(reader));
}

}  // namespace cleave
