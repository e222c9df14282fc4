// The `cleave` command with its verbs `check`, `verify-certificate`, `mutate`
// and `merge` alone, and these without L6, which compiles: they need three
// fifths of the code, so that the first check is ready that much sooner after a
// clone.

#include "tools/command/check_command.h"
#include "tools/command/command_line.h"
#include "tools/command/merge_command.h"
#include "tools/command/mutate_command.h"
#include "tools/command/program.h"
#include "tools/command/verify_command.h"

int main(int argc, char** argv) {
  return cleave::RunProgram(argc, argv,
                            {
                                [](cleave::CommandLine& line) {
                                  cleave::AddCheck(line, cleave::KernelLayer());
                                },
                                [](cleave::CommandLine& line) {
                                  cleave::AddVerifyCertificate(
                                      line, cleave::KernelLayer());
                                },
                                cleave::AddMutate,
                                cleave::AddMerge,
                            });
}
