// The `cleave` command: stdout is data, stderr is diagnostics; exits 0, 1 (a
// verdict against) or 2 (usage or bad input).

#include <string>

#include "CLI/CLI.hpp"
#include "tools/command/command.h"

int main(int argc, char** argv) {
  CLI::App app("Checks, transforms and runs operator rules.", "cleave");
  app.set_version_flag("--version", std::string("cleave 0.1"));
  app.require_subcommand(1);
  cleave::Action action;
  cleave::AddCheck(app, action);
  cleave::AddFmt(app, action);
  cleave::AddConvert(app, action);
  cleave::AddExpand(app, action);
  cleave::AddExplain(app, action);
  cleave::AddVmap(app, action);
  cleave::AddJvp(app, action);
  cleave::AddVjp(app, action);
  cleave::AddDerive(app, action);
  cleave::AddRun(app, action);
  cleave::AddCompile(app, action);
  cleave::AddCoverage(app, action);
  cleave::AddConformance(app, action);
  cleave::AddExample(app, action);
  cleave::AddAot(app, action);
  cleave::AddReplay(app, action);
  cleave::AddDoc(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cleave::kExitOk : cleave::kExitUsage;
  }
  return action();
}
