// Flags of every verb for the limits of ops/budget.h, and the frame in which a
// verb runs: its limits, its interrupts, and its last resorts.

#ifndef CLEAVE_TOOLS_COMMAND_LIMIT_FLAGS_H_
#define CLEAVE_TOOLS_COMMAND_LIMIT_FLAGS_H_

#include "ops/budget.h"
#include "tools/command/command_line.h"

namespace cleave {

// `limits` has the defaults, and outlives the parsing.
void AddLimitFlags(CommandLine& line, Limits& limits);

// The exit status of `action`: kExitInterrupted where it was interrupted,
// kExitUsage where there was no memory.
int RunWithin(const Limits& limits, const Action& action);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_LIMIT_FLAGS_H_
