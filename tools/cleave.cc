// The `cleave` command: stdout is data, stderr is diagnostics; exits 0, 1 (a
// verdict against), 2 (usage or bad input, or beyond a limit) or 130
// (interrupted).

#include "testing/certificate/kernel_environment.h"
#include "testing/check/layers/check_kernels.h"
#include "tools/command/check_command.h"
#include "tools/command/command.h"
#include "tools/command/command_line.h"
#include "tools/command/merge_command.h"
#include "tools/command/mutate_command.h"
#include "tools/command/program.h"
#include "tools/command/verify_command.h"

constexpr cleave::KernelLayer kKernels{cleave::CheckKernels,
                                       cleave::KernelEnvironment};

int main(int argc, char** argv) {
  return cleave::RunProgram(
      argc, argv,
      {
          [](cleave::CommandLine& line) { cleave::AddCheck(line, kKernels); },
          [](cleave::CommandLine& line) {
            cleave::AddVerifyCertificate(line, kKernels);
          },
          cleave::AddMutate,
          cleave::AddMerge,
          cleave::AddFmt,
          cleave::AddConvert,
          cleave::AddExpand,
          cleave::AddExplain,
          cleave::AddVmap,
          cleave::AddJvp,
          cleave::AddVjp,
          cleave::AddDerive,
          cleave::AddRun,
          cleave::AddDebug,
          cleave::AddCompile,
          cleave::AddCoverage,
          cleave::AddConformance,
          cleave::AddExample,
          cleave::AddAot,
          cleave::AddReplay,
          cleave::AddDoc,
          cleave::AddPythonVerbs,
      });
}
