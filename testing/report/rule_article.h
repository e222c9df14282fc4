// RuleArticle: what the report says of one rule.

#ifndef CLEAVE_TESTING_REPORT_RULE_ARTICLE_H_
#define CLEAVE_TESTING_REPORT_RULE_ARTICLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"

namespace cleave {

// The class of the style sheet: "not-checked".
std::string VerdictClass(VerdictKind kind);

// The lines and branches that no checked call reached, as a list; empty without
// any.
std::string UncoveredList(const RuleCoverage& coverage);

// An <article> with the anchor of the op: its verdicts, counterexamples,
// profiles, coverage, text and what transforms derive from it. `coverage` is
// that of the op and of its overrides.
std::string RuleArticle(const OpReport& op,
                        const std::vector<const RuleCoverage*>& coverage,
                        const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_RULE_ARTICLE_H_
