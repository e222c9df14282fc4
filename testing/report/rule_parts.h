// Parts of pages that say what a rule is: its comment, and what transforms
// derive from it.

#ifndef CLEAVE_TESTING_REPORT_RULE_PARTS_H_
#define CLEAVE_TESTING_REPORT_RULE_PARTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A <header>: the name of an op, and where its rule stands.
std::string ArticleHeader(absl::string_view name, absl::string_view place);

// A <details> element that is closed: `html` below its title.
std::string Details(absl::string_view title, const std::string& html);

// The lines of a comment as a paragraph, with what is between backticks as
// code. Empty without any.
std::string DocParagraph(const std::vector<std::string>& lines);

// A heading and the text of each transform's rule for an op, as `cleave derive`
// prints it, along all inexact inputs, all inputs batched; or the reason why
// there is none. Some ten milliseconds.
std::string DerivedRuleTexts(absl::string_view op, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_RULE_PARTS_H_
