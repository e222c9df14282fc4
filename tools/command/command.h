// The verbs of the `cleave` command but for `check` (check_command.h) and
// `mutate` (mutate_command.h). Each Add* adds a verb, its options and what it
// does.
//
// stdout is data, stderr is diagnostics. Exit status: 0, 1 (a verdict against),
// 2 (usage or bad input).

#ifndef CLEAVE_TOOLS_COMMAND_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_COMMAND_H_

#include "tools/command/command_line.h"

namespace cleave {

void AddFmt(CommandLine& line);          // syntax_commands.cc
void AddConvert(CommandLine& line);      // syntax_commands.cc
void AddExpand(CommandLine& line);       // graph_commands.cc
void AddExplain(CommandLine& line);      // graph_commands.cc
void AddVmap(CommandLine& line);         // graph_commands.cc
void AddJvp(CommandLine& line);          // graph_commands.cc
void AddVjp(CommandLine& line);          // graph_commands.cc
void AddDerive(CommandLine& line);       // derive_command.cc
void AddRun(CommandLine& line);          // run_command.cc
void AddDebug(CommandLine& line);        // debug_command.cc
void AddCompile(CommandLine& line);      // compile_command.cc
void AddCoverage(CommandLine& line);     // coverage_command.cc
void AddConformance(CommandLine& line);  // conformance_command.cc
void AddExample(CommandLine& line);      // example_command.cc
void AddAot(CommandLine& line);          // aot_command.cc
void AddReplay(CommandLine& line);       // aot_command.cc
void AddDoc(CommandLine& line);          // doc_command.cc
// The verbs that tools/cleave hands to the Python package.
void AddPythonVerbs(CommandLine& line);  // python_commands.cc

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_COMMAND_H_
