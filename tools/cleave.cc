// The `cleave` command: stdout is data, stderr is diagnostics; exits 0, 1 (a
// verdict against), 2 (usage or bad input, or beyond a limit) or 130
// (interrupted).

#include <string>

#include "CLI/CLI.hpp"
#include "ops/budget.h"
#include "tools/command/command.h"
#include "tools/command/limit_flags.h"

int main(int argc, char** argv) {
  CLI::App app("Checks, transforms and runs operator rules.", "cleave");
  app.set_version_flag("--version", std::string("cleave 0.1"));
  app.require_subcommand(1);
  cleave::Limits limits;
  cleave::AddLimitFlags(app, limits);  // before the verbs, which take them, too
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
  return cleave::RunWithin(limits, action);
}
