// ReferencePages: the loaded ops as a folder of pages that needs no network,
// and no script but for its search box.
//
//   ReferenceOptions options;
//   options.sources = texts;
//   for (const ReferencePage& page : ReferencePages(rules, options)) {
//     WriteFileAtomically("reference/" + page.name, page.html);
//   }
//
// `index.html` has all ops, each with a link to the page of its rule file:
// `core.activation.html`, `aten.loss.html`. The pages are HTML and XML at once,
// and follow the light or dark scheme of the reader.

#ifndef CLEAVE_TOOLS_REFERENCE_REFERENCE_PAGES_H_
#define CLEAVE_TOOLS_REFERENCE_REFERENCE_PAGES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"

namespace cleave {

struct ReferencePage {
  std::string name;  // of a file
  std::string html;
};

struct ReferenceOptions {
  // The texts that the rules were loaded from.
  std::vector<NamedSource> sources;
  // The ops that have articles; all where it is empty.
  std::vector<std::string> ops;
  // The last verdicts of the checker on an op; null where none are known.
  std::function<const OpReport*(absl::string_view op)> measured;
  // Called before each page, with its name and how many are done.
  std::function<void(absl::string_view page, size_t done, size_t all)> progress;
};

// The index, then the pages, those of the core first. Some ten milliseconds for
// each op of the core. Where PollBudget ends the work, what is done.
std::vector<ReferencePage> ReferencePages(const RuleSet& rules,
                                          const ReferenceOptions& options);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_REFERENCE_PAGES_H_
