// The verbs of the `cleave` command. Each Add* declares a subcommand and its
// flags; parsing it sets `action`, which main then runs.
//
// stdout is data, stderr is diagnostics. Exit status: 0, 1 (a verdict against),
// 2 (usage or bad input).

#ifndef CLEAVE_TOOLS_COMMAND_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_COMMAND_H_

#include <functional>

#include "CLI/App.hpp"

namespace cleave {

enum ExitStatus { kExitOk = 0, kExitVerdict = 1, kExitUsage = 2 };

using Action = std::function<int()>;

void AddCheck(CLI::App& app, Action& action);        // check_command.cc
void AddFmt(CLI::App& app, Action& action);          // syntax_commands.cc
void AddConvert(CLI::App& app, Action& action);      // syntax_commands.cc
void AddExpand(CLI::App& app, Action& action);       // graph_commands.cc
void AddExplain(CLI::App& app, Action& action);      // graph_commands.cc
void AddVmap(CLI::App& app, Action& action);         // graph_commands.cc
void AddJvp(CLI::App& app, Action& action);          // graph_commands.cc
void AddVjp(CLI::App& app, Action& action);          // graph_commands.cc
void AddDerive(CLI::App& app, Action& action);       // derive_command.cc
void AddRun(CLI::App& app, Action& action);          // run_command.cc
void AddCompile(CLI::App& app, Action& action);      // compile_command.cc
void AddCoverage(CLI::App& app, Action& action);     // coverage_command.cc
void AddConformance(CLI::App& app, Action& action);  // conformance_command.cc
void AddExample(CLI::App& app, Action& action);      // example_command.cc
void AddAot(CLI::App& app, Action& action);          // aot_command.cc
void AddReplay(CLI::App& app, Action& action);       // aot_command.cc
void AddDoc(CLI::App& app, Action& action);          // doc_command.cc

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_COMMAND_H_
