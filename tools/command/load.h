// The first steps of every verb: read rule files and report what is wrong.

#ifndef CLEAVE_TOOLS_COMMAND_LOAD_H_
#define CLEAVE_TOOLS_COMMAND_LOAD_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/lang/parser.h"
#include "engine/lang/source.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `cleave: <message>` on stderr; returns kExitUsage.
int Complain(absl::string_view message);
int Complain(const absl::Status& status);

// " (did you mean `softplus`?)", or nothing where no candidate is close.
std::string DidYouMean(absl::string_view name,
                       const std::vector<std::string>& candidates);

// `names`, or the names of all ops and host ops where it is empty. Nullopt
// after complaining of one that is not there.
std::optional<std::vector<std::string>> OpNames(
    const RuleSet& rules, const std::vector<std::string>& names);

// The graph of a declared `fn`. NotFound with the closest name.
absl::StatusOr<Graph> DeclaredFunction(const RuleSet& rules,
                                       absl::string_view name);

// One line of progress on stderr, where that is a terminal; an empty one clears
// it.
void ShowProgress(absl::string_view line);

// Rule text, or its JSON twin for a name that ends in `.json`.
ParseResult ParseAny(const Source& source);

struct LoadedRules {
  std::shared_ptr<const RuleSet> rules;
  // The sources of the given paths, by the names that they were loaded with.
  std::set<std::string> sources;
  // All that was loaded.
  std::vector<NamedSource> texts;

  // Whether one of them declares the op, or an `override` of it.
  bool Gives(absl::string_view op) const;
};

// The shipped rules (the folder that $CLEAVE_RULES names; those of the program
// where it is not set; none where it is empty) and those of `paths`; files of
// both are loaded once. So are those of `uses`, which the sources leave out
// that are not among `paths` too. Nullopt after printing what is wrong.
std::optional<LoadedRules> LoadRulePaths(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& uses = {});

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_LOAD_H_
