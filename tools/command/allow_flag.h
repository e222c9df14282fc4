// `--allow`: verdicts that are no disagreement, and not green either, in spite
// of which a check of rules succeeds.

#ifndef CLEAVE_TOOLS_COMMAND_ALLOW_FLAG_H_
#define CLEAVE_TOOLS_COMMAND_ALLOW_FLAG_H_

#include <set>
#include <string>
#include <vector>

#include "testing/check/compare/verdict.h"
#include "tools/command/command_line.h"

namespace cleave {

void AddAllowFlag(Verb& verb, std::vector<std::string>& allowed);

// The kinds that the flag's values name.
std::set<VerdictKind> AllowedKinds(const std::vector<std::string>& allowed);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_ALLOW_FLAG_H_
