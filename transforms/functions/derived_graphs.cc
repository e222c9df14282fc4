#include "transforms/functions/derived_graphs.h"

#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_key.h"
#include "ops/status_macros.h"

namespace cleave::functional {

DerivedGraphs::DerivedGraphs(const std::shared_ptr<const RuleSet>& rules)
    : rules_(rules),
      kept_(
          std::make_unique<RuleCache<std::string, DerivedGraph>>(kMaxGraphs)) {}

DerivedGraphs& DerivedGraphs::Of(const std::shared_ptr<const RuleSet>& rules) {
  thread_local std::list<DerivedGraphs> of_rules;
  of_rules.remove_if(
      [](const DerivedGraphs& one) { return one.rules_.expired(); });
  for (DerivedGraphs& one : of_rules) {
    if (one.rules_.lock() == rules) return one;
  }
  of_rules.push_front(DerivedGraphs(rules));
  return of_rules.front();
}

absl::StatusOr<std::shared_ptr<const DerivedGraph>> DerivedGraphs::Get(
    const Graph& graph, const std::string& transform,
    absl::FunctionRef<absl::StatusOr<DerivedGraph>()> make) {
  const std::string key = absl::StrCat(transform, "\n", GraphKey(graph));
  std::shared_ptr<const DerivedGraph> found = kept_->Find(key);
  if (found != nullptr) return found;
  ++made_;
  CLEAVE_ASSIGN_OR_RETURN(DerivedGraph derived, make());
  return kept_->Add(key, std::move(derived));
}

}  // namespace cleave::functional
