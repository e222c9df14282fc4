// A program of verbs: their flags, the limits of ops/budget.h as flags of every
// verb, and the frame in which a verb runs: its limits, its interrupts, and its
// last resorts.

#ifndef CLEAVE_TOOLS_COMMAND_PROGRAM_H_
#define CLEAVE_TOOLS_COMMAND_PROGRAM_H_

#include <initializer_list>

#include "tools/command/command_line.h"

namespace cleave {

// Adds a verb, its options and what it does.
using AddVerb = void (*)(CommandLine& line);

// The exit status of the `cleave` command with `verbs`: that of the verb that
// the arguments name, kExitInterrupted where it was interrupted, kExitUsage
// where the arguments are wrong or there was no memory.
int RunProgram(int argc, char** argv, std::initializer_list<AddVerb> verbs);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_PROGRAM_H_
