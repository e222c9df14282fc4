// coverage --batching: which ops stay one call under vmap.

#ifndef CLEAVE_TOOLS_COMMAND_SHOW_BATCHING_H_
#define CLEAVE_TOOLS_COMMAND_SHOW_BATCHING_H_

#include <string>
#include <vector>

#include "tools/command/load.h"

namespace cleave {

// Prints a row per op of `names` and subset of its inputs, and the shares; as
// JSON {"ops": {OP: {"no_rank_bound"?, "why"?,
// "subsets": [{"batched", "answer",
// "verdict"?, "calls", "kept_calls", "why"?}]}}, "subsets": {ANSWER: COUNT}}.
// Returns an exit status.
int ShowBatching(const RuleSet& rules, const std::vector<std::string>& names,
                 bool json);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_SHOW_BATCHING_H_
