#include "transforms/table/rule_tables.h"

#include "absl/status/status.h"

namespace cleave {

RuleTable& RuleTables::at(const TransformOptions& options) {
  const size_t place = static_cast<size_t>(options.keep_identity) |
                       static_cast<size_t>(options.recompute_loops) << 1 |
                       static_cast<size_t>(options.simplify) << 2;
  std::call_once(made_[place], [&] {
    tables_[place] =
        std::make_unique<RuleTable>(rules_, options, MakeMaker(options));
  });
  return *tables_[place];
}

absl::StatusOr<RuleTable*> TableOf(const RuleSet& rules,
                                   const TransformOptions& options) {
  DerivedRules* derived = rules.derived();
  if (derived == nullptr) {
    return absl::FailedPreconditionError(
        "the rules were loaded without transforms: LoadOptions::derive is "
        "null");
  }
  // Nothing else makes them.
  return &static_cast<RuleTables*>(derived)->at(options);
}

}  // namespace cleave
