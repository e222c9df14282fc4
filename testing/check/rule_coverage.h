// RuleCoverage: which lines and branches of a rule the checked calls reached. A
// branch that none of them takes is one of which nothing is known.
//
//   options.coverage = true;
//   absl::StatusOr<CheckReport> report = CheckRules(rules, options);
//   for (const RuleCoverage& item : report->coverage) {
//     item.branches, item.covered_branches, item.uncovered[0].what, ..
//   }
//
// A line is a statement of a body or of a spec: a let, a result, a line of jvp,
// vjp or vmap. A branch is one of the two ways in which a static condition can
// be decided: that of an `if`, of a `cond`, of a comprehension, of an `error`
// clause, of a result with an `if`, and of `a ?? b` whether a is there. They
// are decided by dtypes, ranks, extents, attributes and absent inputs when a
// call is compiled. Conditions on values (`select(c, a, b)`) are none, and the
// conditions of `accuracy`, `special` and laws are judged at each sample.

#ifndef CLEAVE_TESTING_CHECK_RULE_COVERAGE_H_
#define CLEAVE_TESTING_CHECK_RULE_COVERAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "testing/check/layers/branch_log.h"

namespace cleave {

// The `what` of a branch if neither it nor its opposite was taken.
inline constexpr char kNeverAsked[] = "no checked call asks for this condition";

// A line that no checked call evaluated, or a branch that none took.
struct UncoveredArm {
  std::string place;  // "rules/core/loss.rules:12:7"
  std::string what;   // "no checked call takes this branch"
  std::string text;   // of the rule, on one line
  // The line with a caret, as diagnostics show it; empty where it is too long.
  std::string marked;
  bool is_line = false;  // else a branch
  // Which of the item's lines or branches, from 0.
  int index = 0;
};

struct RuleCoverage {
  std::string item;   // "softplus", "override silu", "def mean_of", "jvp tanh"
  std::string file;   // "rules/core/loss.rules"
  std::string place;  // "rules/core/loss.rules:12"
  int lines = 0;
  int covered_lines = 0;
  int branches = 0;
  int covered_branches = 0;
  std::vector<UncoveredArm> uncovered;  // in the order of the text
};

// The coverage of `items` (ops, overrides, jvp items), which are of `rules`, in
// the order of files and lines. `with_defs`: also of the defs that they use.
// Lines of an op that an override replaces are left out.
std::vector<RuleCoverage> CoverageOf(const RuleSet& rules,
                                     const std::vector<const Item*>& items,
                                     bool with_defs, const BranchLog& log);

// A line per file with lines and branches covered, their sum, then every
// uncovered arm with its place and a caret.
std::string CoverageText(const std::vector<RuleCoverage>& coverage);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_RULE_COVERAGE_H_
