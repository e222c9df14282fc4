// The `cleave` command: stdout is data, stderr is diagnostics; exits 0, 1 (a
// verdict against), 2 (usage or bad input, or beyond a limit) or 130
// (interrupted).

#include "ops/budget.h"
#include "tools/command/command.h"
#include "tools/command/command_line.h"
#include "tools/command/limit_flags.h"

int main(int argc, char** argv) {
  cleave::CommandLine line(
      "cleave", "Checks, transforms and runs operator rules.", "cleave 0.1");
  cleave::Limits limits;
  cleave::AddLimitFlags(line, limits);
  cleave::AddCheck(line);
  cleave::AddFmt(line);
  cleave::AddConvert(line);
  cleave::AddExpand(line);
  cleave::AddExplain(line);
  cleave::AddVmap(line);
  cleave::AddJvp(line);
  cleave::AddVjp(line);
  cleave::AddDerive(line);
  cleave::AddRun(line);
  cleave::AddCompile(line);
  cleave::AddCoverage(line);
  cleave::AddConformance(line);
  cleave::AddExample(line);
  cleave::AddAot(line);
  cleave::AddReplay(line);
  cleave::AddDoc(line);
  const cleave::ParsedLine parsed = line.Parse(argc, argv);
  if (parsed.action == nullptr) return parsed.exit_status;
  return cleave::RunWithin(limits, parsed.action);
}
