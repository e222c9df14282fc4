// The verb `check`, apart from the others: a program may have it alone, and
// without the layer that compiles kernels.

#ifndef CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_

#include "testing/check/check.h"
#include "tools/command/command_line.h"

namespace cleave {

// `kernels` is CheckKernels of check_kernels.h, or null: then L6 is an error.
void AddCheck(CommandLine& line, KernelCheck kernels);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_CHECK_COMMAND_H_
