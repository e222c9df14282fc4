// What every verb does first: read rule files and report what is wrong.

#ifndef CLEAVE_TOOLS_COMMAND_LOAD_H_
#define CLEAVE_TOOLS_COMMAND_LOAD_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/lang/parser.h"
#include "engine/lang/source.h"
#include "engine/rewrite/rule_set.h"

namespace cleave {

// `cleave: <message>` on stderr; returns kExitUsage.
int Complain(absl::string_view message);
int Complain(const absl::Status& status);

// One line of progress on stderr, where that is a terminal; an empty one clears
// it.
void ShowProgress(absl::string_view line);

// Rule text, or its JSON twin for a name that ends in `.json`.
ParseResult ParseAny(const Source& source);

struct LoadedRules {
  std::shared_ptr<const RuleSet> rules;
  // The sources of the given paths, by the names that they were loaded with.
  std::set<std::string> sources;
};

// The shipped rules (the folder that $CLEAVE_RULES names) and those of `paths`;
// files of both are loaded once. Nullopt after printing what is wrong.
std::optional<LoadedRules> LoadRulePaths(const std::vector<std::string>& paths);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_LOAD_H_
