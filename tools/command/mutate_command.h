// The verb `mutate`, apart from the others, as `check` is.

#ifndef CLEAVE_TOOLS_COMMAND_MUTATE_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_MUTATE_COMMAND_H_

#include "tools/command/command_line.h"

namespace cleave {

void AddMutate(CommandLine& line);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_MUTATE_COMMAND_H_
