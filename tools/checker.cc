// The `cleave` command with its verb `check` alone, and that without L6, which
// compiles: it needs three fifths of the code, so that the first check is ready
// that much sooner after a clone.

#include "tools/command/check_command.h"
#include "tools/command/command_line.h"
#include "tools/command/program.h"

int main(int argc, char** argv) {
  return cleave::RunProgram(argc, argv, {[](cleave::CommandLine& line) {
                              cleave::AddCheck(line, /*kernels=*/nullptr);
                            }});
}
