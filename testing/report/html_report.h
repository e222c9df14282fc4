// HtmlReport: what a check found, as one page that needs nothing else: no
// script, no other file.
//
//   CheckOptions options;
//   options.coverage = true;
//   options.error_profiles = true;
//   absl::StatusOr<CheckReport> report = CheckRules(rules, options);
//   WriteFileAtomically("report/index.html", HtmlReport(*report, *rules));
//
// The page has a summary, a table of the verdicts of all rules, the coverage of
// each file, and for each rule its verdicts, counterexamples, the errors along
// the line of inputs beside those of the derivative, the lines and branches
// that no call reached, the rule's text and what transforms derive from it.
// It follows the light or dark scheme of the reader. Anchors: `op-softplus`,
// `file-rules-2fcore-2floss.rules`.

#ifndef CLEAVE_TESTING_REPORT_HTML_REPORT_H_
#define CLEAVE_TESTING_REPORT_HTML_REPORT_H_

#include <string>

#include "engine/rules/rule_set.h"
#include "testing/check/check.h"

namespace cleave {

// `rules` are those that were checked. Parts that the report lacks (coverage,
// profiles) are left out of the page. A part of a millisecond for each rule,
// and ten for each that is derived from an op.
std::string HtmlReport(const CheckReport& report, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_HTML_REPORT_H_
