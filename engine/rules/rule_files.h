// Rule files on disk, as LoadRules takes them.
//
//   auto shipped = ReadRuleFiles({"rules"});
//   LoadResult loaded = LoadRules(*shipped, std::make_shared<Context>());

#ifndef CLEAVE_ENGINE_RULES_RULE_FILES_H_
#define CLEAVE_ENGINE_RULES_RULE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// The files that `paths` name, in their order; in place of a folder all the
// `.rules` files below it, sorted. NotFound for a path that is not there, and a
// folder without rule files.
absl::StatusOr<std::vector<std::string>> ListRuleFiles(
    const std::vector<std::string>& paths);

// The same files with their text; JSON is told by the ending `.json`. Each file
// once, however often it is named. Names are the paths as they were given.
absl::StatusOr<std::vector<NamedSource>> ReadRuleFiles(
    const std::vector<std::string>& paths);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_RULE_FILES_H_
