// The shipped rules, which are in the program: found without any path.
//
//   LoadResult shipped = LoadShippedRules();
//   if (shipped.rules == nullptr) { .. shipped.diagnostics .. }
//   absl::StatusOr<Graph> primitive = Expand(graph, *shipped.rules);
//
// A program that needs no more than one rule set takes SharedShippedRules(),
// which loads it once, for all threads. A host's own ops are added by
// ExtendRules.

#ifndef CLEAVE_TRANSFORMS_SHIPPED_RULES_SHIPPED_RULES_H_
#define CLEAVE_TRANSFORMS_SHIPPED_RULES_SHIPPED_RULES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/context.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct ShippedRulesOptions {
  // A folder whose rule files stand in for those of the program; an empty text
  // stands for no rules. nullopt: the folder that the environment variable
  // CLEAVE_RULES names, and the rules of the program where it is not set.
  std::optional<std::string> folder;
  // Null: a new one.
  std::shared_ptr<Context> context;
  // As LoadOptions::cache_folder. Rules of the program need none.
  std::optional<std::string> cache_folder;
};

// The rules with transforms (MakeDerivedRules). 20 ms: those of the program
// were checked as it was built, and are only parsed here; so are the same texts
// in a folder. Others are checked, as LoadRules does. A folder that cannot be
// read is a diagnostic. Names of sources are `rules/core/activation.rules`,
// wherever they lie.
LoadResult LoadShippedRules(const ShippedRulesOptions& options = {});

// LoadShippedRules(), once for the process: all callers get the same rule set,
// or the same InvalidArgument with the diagnostics. Thread-safe.
absl::StatusOr<std::shared_ptr<const RuleSet>> SharedShippedRules();

// The shipped rules and a host's: SharedShippedRules(), extended by `text`
// under the name `name`.
//
//   const auto rules = ShippedRulesWith(R"(language 1
//   override silu { jvp x = 2 * dx }
//   )");
//
// The shared rules stay as they are. An op of the text that has the name of a
// shipped one, `op relu`, is `host_relu` outside of the text, by the name of
// the source. InvalidArgument with the diagnostics.
absl::StatusOr<std::shared_ptr<const RuleSet>> ShippedRulesWith(
    absl::string_view text, absl::string_view name = "host.rules");

// The rule files of the program, sorted by name.
std::vector<NamedSource> EmbeddedRules();

// Whether `sources` have the texts of EmbeddedRules(), in that order, and no
// mistake was found in these as the program was built: LoadOptions::trusted may
// be set for them.
bool WereCheckedByBuild(const std::vector<NamedSource>& sources);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_SHIPPED_RULES_SHIPPED_RULES_H_
