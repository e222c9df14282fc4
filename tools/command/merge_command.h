// The verb `merge`, which programs with `check` and `mutate` have.

#ifndef CLEAVE_TOOLS_COMMAND_MERGE_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_MERGE_COMMAND_H_

#include "tools/command/command_line.h"

namespace cleave {

void AddMerge(CommandLine& line);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_MERGE_COMMAND_H_
