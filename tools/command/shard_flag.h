// `--shard I/N`: the part of a run that a verb does, and what the reports of
// its parts have in common, by which they are merged.

#ifndef CLEAVE_TOOLS_COMMAND_SHARD_FLAG_H_
#define CLEAVE_TOOLS_COMMAND_SHARD_FLAG_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/rules/rule_set.h"
#include "tools/command/command_line.h"

namespace cleave {

// `what` are the things that are divided, for the help: "mutants".
Option AddShardFlag(Verb& verb, std::string& shard, const std::string& what);

// {2, 4} of `2/4`, which the flag has accepted; {1, 1} of an empty one.
std::pair<int, int> ParsedShard(const std::string& shard);

// A hash of the names and texts of rule files, in any order.
std::string HashOfTexts(const std::vector<NamedSource>& texts);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_SHARD_FLAG_H_
