// The verb `check`, apart from the others: a program may have it alone, and
// without the layer that compiles kernels.

#ifndef CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_

#include <string>

#include "testing/check/check.h"
#include "tools/command/command_line.h"

namespace cleave {

// L6, of a program that has a code generator.
struct KernelLayer {
  KernelCheck check = nullptr;             // CheckKernels of check_kernels.h
  std::string (*environment)() = nullptr;  // KernelEnvironment
};

// With a KernelLayer without functions L6 is an error.
void AddCheck(CommandLine& line, const KernelLayer& kernels);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_
