#include "tools/command/program.h"

#include <initializer_list>
#include <new>

#include "ops/budget.h"
#include "tools/command/interrupt.h"
#include "tools/command/load.h"
#include "tools/oracle/oracle.h"

namespace cleave {
namespace {

// `limits` has the defaults, and outlives the parsing.
void AddLimitFlags(CommandLine& line, Limits& limits) {
  Verb verb = line.EveryVerb();
  const auto add = [&](const char* flag, auto& value, const char* what) {
    verb.Add(flag, value, what).Positive().Group("Limits").ShowDefault();
  };
  verb.Add("--max-memory", limits.tensor_bytes,
           "Bytes of tensors alive at one time (`2GB`)")
      .Bytes()
      .Group("Limits")
      .ShowDefault();
  add("--max-steps", limits.loop_steps, "Steps of loops in one evaluation");
  add("--max-expressions", limits.expressions,
      "Expressions of rules that one call elaborates");
  add("--max-bodies", limits.bodies, "Bodies that one call compiles");
  add("--max-nodes", limits.nodes, "Nodes of graphs that one call makes");
  add("--max-depth", limits.depth, "Levels of what stands within others");
}

int RunWithin(const Limits& limits, const Action& action) {
  InstallInterrupts();
  Limits all = limits;
  all.cancelled = &Interrupted();
  const BudgetScope scope(all, BudgetScope::Mode::kDefaults);
  int status = kExitUsage;
  try {
    status = action();
  } catch (const std::bad_alloc&) {
    // Counted memory stays far below what a machine has: some is not counted.
    Complain("no memory");
  }
  InterruptsEnd();
  return Interrupted() ? kExitInterrupted : status;
}

}  // namespace

int RunProgram(int argc, char** argv, std::initializer_list<AddVerb> verbs) {
  // This program is also the process of an oracle.
  if (const auto status = RunOracleWorker(argc, argv)) return *status;
  CommandLine line("cleave", "Checks, transforms and runs operator rules.",
                   "cleave 0.1");
  Limits limits;
  AddLimitFlags(line, limits);
  for (const AddVerb verb : verbs) verb(line);
  const ParsedLine parsed = line.Parse(argc, argv);
  if (parsed.action == nullptr) return parsed.exit_status;
  return RunWithin(limits, parsed.action);
}

}  // namespace cleave
