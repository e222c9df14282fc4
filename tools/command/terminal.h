// The terminal that reports are printed on.

#ifndef CLEAVE_TOOLS_COMMAND_TERMINAL_H_
#define CLEAVE_TOOLS_COMMAND_TERMINAL_H_

namespace cleave {

// Columns of stdout; 80 where it is no terminal.
int TerminalWidth();

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_TERMINAL_H_
