// RuleTables: what transforms keep of one rule set, which owns it: a table of
// rules for each choice of options.
//
//   CLEAVE_ASSIGN_OR_RETURN(RuleTable* table, TableOf(rules));
//
// All transforms by the same rules and options share a table, on any number of
// threads; so do the bodies of `jvp f(..)(..)` in rules. Internal to
// transforms.

#ifndef CLEAVE_TRANSFORMS_TABLE_RULE_TABLES_H_
#define CLEAVE_TRANSFORMS_TABLE_RULE_TABLES_H_

#include <array>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// The folders above implement the rest (transforms/derived_rules.cc).
class RuleTables : public DerivedRules {
 public:
  // Made when it is first asked for; lives as long as the rule set.
  RuleTable& at(const TransformOptions& options);

 protected:
  // The rule set must outlive it.
  explicit RuleTables(const RuleSet& rules) : rules_(rules) {}

  virtual std::unique_ptr<RuleMaker> MakeMaker(
      const TransformOptions& options) const = 0;

  const RuleSet& rules() const { return rules_; }

 private:
  // One for each combination of the three options.
  static constexpr size_t kTables = 8;

  const RuleSet& rules_;
  std::array<std::once_flag, kTables> made_;
  std::array<std::unique_ptr<RuleTable>, kTables> tables_;
};

// FailedPrecondition where the rules were loaded without transforms
// (LoadOptions::derive).
absl::StatusOr<RuleTable*> TableOf(const RuleSet& rules,
                                   const TransformOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_RULE_TABLES_H_
